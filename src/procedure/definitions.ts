/** The operations of a router: made once, at the start, from the definitions of its procedures. */
import type { AnyTRPCRouter } from '@trpc/server'
import { z } from 'zod'
import { ChainedOperation, type Step } from './chain.ts'
import { inputOf } from './inputs.ts'
import type { AccessMeta, RestMeta } from './meta.ts'
import type { Middleware } from './middleware.ts'
import { Operation, type Parts, type Resolver } from './operation.ts'
import { errorFormatter } from './procedure.ts'

/** The parts of a procedure that tRPC declares on its internal types only. */
interface Definition {
  type: 'query' | 'mutation' | 'subscription'
  meta?: { rest?: RestMeta; access?: AccessMeta; openapi?: unknown }
  experimental_caller?: boolean
  /** The inputs, the output and the resolver are middlewares, too. */
  middlewares: (Middleware & { _type?: 'input' | 'output' | 'errors' })[]
  inputs: z.ZodType[]
  output?: z.ZodType
  resolver: Resolver
  /** That of the initTRPC which has made it. */
  config: AnyTRPCRouter['_def']['_config']
}

const FOREIGN =
  'is made by another initTRPC, with its own errors and encoding: make it by src/procedure/procedure.ts'

/** Characters of a name, dots included, which is kept with each Idempotency-Key. */
const MAX_NAME = 64

/**
 * Returns the operations of a router and of the routers in it, whose names have dots: `pets.list`. Throws TypeError
 * for a procedure that contradicts its description, for a lazy router, and for one of another initTRPC, whose clients
 * would have another encoding.
 */
export function operationsOf({ _def: { procedures, lazy, _config } }: AnyTRPCRouter): Operation[] {
  if (_config.errorFormatter !== errorFormatter) throw new TypeError(`The router ${FOREIGN}`)
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
  const { type, meta, inputs, output, resolver, config } = definition
  function need(condition: unknown, what: string): asserts condition {
    if (!condition) throw new TypeError(`The procedure ${name} ${what}`)
  }
  need(config.errorFormatter === errorFormatter, FOREIGN)
  need(name.length <= MAX_NAME, `has a name of more than ${MAX_NAME} characters`)
  need(
    type !== 'subscription',
    'is a subscription, which the service does not serve: let clients repeat a query',
  )
  need(
    !definition.experimental_caller,
    'has experimental_caller(…), which the service never calls: call it by the client',
  )
  const isSchema = output === undefined || output instanceof z.ZodType
  need(isSchema, 'has an output that is no schema of zod')
  const rest = meta?.rest
  need(rest || !meta?.openapi, 'has the meta of trpc-to-openapi alone: REST needs restMeta({ … })')
  const access = meta?.access ?? {}
  const parts = { name, type, rest, access, input: inputOf(name, inputs, rest), output }
  const steps = stepsOf(name, definition)
  const operationWith = (own: Parts) =>
    steps.length > inputs.length
      ? new ChainedOperation(own, resolver, meta, steps)
      : new Operation(own, resolver)
  if (!rest) return operationWith({ ...parts, isPaged: false })
  const { method, takesKey, creates } = rest
  const isQuery = type === 'query'
  // A query by POST is a search by a body.
  const fits = method === 'POST' || (method === 'GET') === isQuery
  need(fits, `is a ${type}, which does not fit the method ${method}`)
  need(!(isQuery && takesKey), 'is a query, which takes no Idempotency-Key')
  need(!(access.isPublic && takesKey), 'is public, so it takes no Idempotency-Key')
  need(!(isQuery && creates), 'is a query, which creates nothing')
  const isPaged = rest.isPaged === true
  need(isQuery || !isPaged, 'is a mutation, whose output cannot be a page')
  need(!isPaged || method === 'GET', 'is a query by POST, whose pages would have no Link')
  need(!isPaged || output instanceof z.ZodPipe, 'has isPaged: true, so it needs .output(paged(…))')
  const ofItems = output instanceof z.ZodPipe && isPaged ? (output.def.out as z.ZodType) : output
  return operationWith({ ...parts, output: ofItems, isPaged })
}

/** Returns the middlewares and the inputs of a procedure, in their order. */
function stepsOf(name: string, { middlewares, inputs }: Definition): Step[] {
  const left = [...inputs]
  // The last one calls the resolver. The output is checked with the resolver, wherever it stands.
  return middlewares.slice(0, -1).flatMap((middleware): Step[] => {
    if (middleware._type === 'errors') {
      throw new TypeError(
        `The procedure ${name} has .errors(…): all errors have the form of the service`,
      )
    }
    if (middleware._type === 'input') return left.splice(0, 1)
    return middleware._type === 'output' ? [] : [middleware]
  })
}
