/** tRPC, set up for this service. */
import { initTRPC } from '@trpc/server'
import type { OpenApiMeta } from 'trpc-to-openapi'
import { type Context, requireCaller } from '../context.ts'
import { fieldErrors, toApiError, toTRPCError } from '../errors.ts'
import { errorShape } from './envelope.ts'
import { transformer } from './transformer.ts'

/** What REST and the OpenAPI document need to know of a procedure beyond trpc-to-openapi's own. */
export interface RestMeta {
  /** Examples of the body or the message, for the document. `input` only where there is a body. */
  examples: { input?: object; output: unknown; badRequest: string; notFound?: string }
  /** The operation answers 201, with the path of what it made in `Location`. */
  location?: (created: never) => string
  /** The operation gives pages: `Link` with rel="next" leads to the next (RFC 8288). */
  paged?: true
  /** The operation makes something only once per `Idempotency-Key`: it answers 409 and 422 too. */
  idempotent?: true
  /** Since when the operation is deprecated, when it ends, and which path replaces it. */
  deprecation?: { since: Date; sunset: Date; successor: `/${string}` }
}

const t = initTRPC
  .context<Context>()
  .meta<OpenApiMeta<{ rest?: RestMeta }>>()
  .create({
    transformer,
    isDev: false, // no stack in an answer, whatever NODE_ENV says
    errorFormatter({ error: thrown }) {
      const error = toTRPCError(thrown)
      return errorShape(toApiError(error), fieldErrors(error))
    },
  })

export const { router } = t

/**
 * A procedure for callers with a valid API key, which is checked before the input is even read.
 * Its `ctx.deadline` is given up when the call has taken too long, or nobody waits for it any more.
 */
export const keyedProcedure = t.procedure
  .use(async ({ next }) => {
    const result = await next()
    if (!result.ok) throw toTRPCError(result.error)
    return result
  })
  .use(({ ctx, next }) => next({ ctx: { caller: requireCaller(ctx) } }))
