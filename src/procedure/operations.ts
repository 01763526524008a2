/** The operations of a router: made once, at the start. */
import type { AnyTRPCRouter } from '@trpc/server'
import { z } from 'zod'
import { Operation, type Options } from './call.ts'
import { Chain, type Middleware, type Step } from './chain.ts'
import type { AccessMeta, RestMeta } from './meta.ts'

/** The parts of a procedure that tRPC declares on its internal types only. */
interface Definition {
  type: 'query' | 'mutation' // the check of `rest` below leaves no subscriptions
  meta?: { rest?: RestMeta; access?: AccessMeta }
  /** The inputs, the output and the resolver are middlewares, too. */
  middlewares: (Middleware & { _type?: 'input' | 'output' | 'errors' })[]
  inputs: z.ZodType[]
  output?: z.ZodType
  resolver(options: Options): Promise<unknown>
}

/** Characters of a name, dots included, which is kept with each Idempotency-Key. */
const MAX_NAME = 64

/**
 * Returns the operations of a router and of the routers in it, whose names have dots: `pets.list`. Throws TypeError
 * for a procedure that contradicts its description, and for a lazy router.
 */
export function operationsOf({ _def: { procedures, lazy } }: AnyTRPCRouter): Operation[] {
  for (const name in lazy) {
    throw new TypeError(
      `The router ${name} is lazy, so its procedures are unknown at the start: import it without lazy(…)`,
    )
  }
  return Object.entries<{ _def: unknown }>(procedures).map(([name, { _def }]) =>
    operationOf(name, _def as Definition),
  )
}

function operationOf(name: string, definition: Definition): Operation {
  const { type, meta, inputs, output, resolver } = definition
  const [input] = inputs
  const rest = meta?.rest
  const access = meta?.access ?? {}
  if (!rest || !input || !output || inputs.length > 1) {
    throw new TypeError(
      `The procedure ${name} needs .meta(restMeta({ … })), one .input(…) and one .output(…)`,
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
  need(!(access.isPublic && takesKey), 'is public, so it takes no Idempotency-Key')
  const isPaged = rest.isPaged === true
  need(isQuery || !isPaged, 'is a mutation, whose output cannot be a page')
  need(!isPaged || output instanceof z.ZodPipe, 'has isPaged: true, so it needs .output(paged(…))')
  const ofItems = output instanceof z.ZodPipe && isPaged ? (output.def.out as z.ZodType) : output
  const parts = { name, type, rest, access, input, output: ofItems, isPaged }
  return new Operation(parts, resolver, chainOf(name, definition))
}

/** Returns the chain of a procedure that has middlewares; undefined for one that has none. */
function chainOf(name: string, { type, meta, middlewares, inputs }: Definition): Chain | undefined {
  const left = [...inputs]
  // The last one calls the resolver. The output is checked with the resolver, wherever it stands.
  const steps = middlewares.slice(0, -1).flatMap((middleware): Step[] => {
    if (middleware._type === 'errors') {
      throw new TypeError(
        `The procedure ${name} has .errors(…): all errors have the form of the service`,
      )
    }
    if (middleware._type === 'input') return left.splice(0, 1)
    return middleware._type === 'output' ? [] : [middleware]
  })
  return steps.length > inputs.length ? new Chain(name, type, meta, steps) : undefined
}
