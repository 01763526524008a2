/** The operations of a router: made once, at the start. */
import type { AnyTRPCRouter } from '@trpc/server'
import { z } from 'zod'
import { type Call, Operation } from './call.ts'
import type { RestMeta } from './meta.ts'

/** The parts of a procedure that tRPC declares on its internal types only. */
interface Definition {
  type: 'query' | 'mutation' // the check of `rest` below leaves no subscriptions
  meta?: { rest?: RestMeta }
  middlewares: unknown[]
  inputs: z.ZodType[]
  output?: z.ZodType
  resolver(options: { ctx: Call; input: unknown }): Promise<unknown>
}

/** Characters of a name, which is kept with each Idempotency-Key. */
const MAX_NAME = 64

/** Returns the operations of a router. Throws TypeError for a procedure that contradicts its description. */
export const operationsOf = (router: AnyTRPCRouter): Operation[] =>
  Object.entries<{ _def: unknown }>(router._def.procedures).map(([name, { _def }]) =>
    operationOf(name, _def as Definition),
  )

function operationOf(name: string, definition: Definition): Operation {
  const { type, meta, middlewares, inputs, output, resolver } = definition
  const [input] = inputs
  const rest = meta?.rest
  // tRPC counts the input, the output and the resolver as middlewares.
  if (!rest || !input || !output || middlewares.length !== 3) {
    throw new TypeError(
      `The procedure ${name} needs .meta(restMeta({ … })), one .input(…) and one .output(…), and no .use(…)`,
    )
  }
  function need(condition: unknown, what: string): asserts condition {
    if (!condition) throw new TypeError(`The procedure ${name} ${what}`)
  }
  need(name.length <= MAX_NAME, `has a name of more than ${MAX_NAME} characters`)
  const { method, takesKey } = rest
  const isQuery = type === 'query'
  need((method === 'GET') === isQuery, `is a ${type}, which does not fit the method ${method}`)
  need(!(isQuery && takesKey), 'is a query, which takes no Idempotency-Key')
  const isPaged = rest.isPaged === true
  need(isQuery || !isPaged, 'is a mutation, whose output cannot be a page')
  need(!isPaged || output instanceof z.ZodPipe, 'has isPaged: true, so it needs .output(paged(…))')
  const ofItems = output instanceof z.ZodPipe && isPaged ? (output.def.out as z.ZodType) : output
  return new Operation({ name, type, rest, input, output: ofItems, isPaged }, resolver)
}
