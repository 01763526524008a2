/** tRPC, set up for this service: what a call is made with, and the one middleware of all procedures. */
import { initTRPC } from '@trpc/server'
import type { OpenApiMeta } from 'trpc-to-openapi'
import { transformer } from '../client/src/encoding.ts'
import type { Deadline } from '../db/deadline.ts'
import {
  errorShape,
  fieldErrors,
  readOnlyKey,
  toApiError,
  toTRPCError,
  unauthorized,
} from './errors.ts'
import type { Idempotency } from './idempotency/store.ts'
import type { Auth } from './keys/auth.ts'
import type { RestMeta } from './operation.ts'
import type { Stores } from './stores.ts'
import type { CallTrace } from './tracing.ts'
import type { Transact } from './transact.ts'

/** What every call is made with, on both surfaces. */
export interface Context {
  /** Who calls. Procedures that need a key find the caller in `ctx.caller`. */
  auth: Auth
  /** When the call is to be given up; every store takes it. */
  deadline: Deadline
  /** The span of the request; undefined where nothing is traced. */
  trace: CallTrace | undefined
  /** Inside `write` and `once` those of their transaction. */
  stores: Stores
  /** What `write` uses; procedures need not. */
  transact: Transact
  idempotency: Idempotency
  /** The Idempotency-Key header as it was sent; only `once` looks at it. */
  idempotencyHeader: string | undefined
  /** Where a paged procedure leaves the cursor of the next page; see `paged`. */
  page: { next: bigint | string | undefined }
}

const t = initTRPC
  .context<Context>()
  .meta<OpenApiMeta<{ rest?: RestMeta }>>()
  .create({
    transformer,
    allowOutsideOfServer: true, // the stand-in of the client package may run in a browser
    isDev: false, // no stack in an answer, whatever NODE_ENV says
    errorFormatter({ error: thrown }) {
      const error = toTRPCError(thrown)
      return errorShape(toApiError(error), fieldErrors(error))
    },
  })

export const { router } = t

/**
 * A procedure for callers with a valid API key, which for a mutation must be one that may write; both
 * are checked before the input is even looked at.
 * Every middleware is paid for by every call, so this is the only one.
 */
export const keyedProcedure = t.procedure.use(({ ctx, type, next }) => {
  if (ctx.auth.kind !== 'caller') throw unauthorized(ctx.auth)
  if (ctx.auth.readOnly && type === 'mutation') throw readOnlyKey()
  return next({ ctx: { caller: ctx.auth } })
})
