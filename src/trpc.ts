/** tRPC, set up for this service: what a call is made with, and the one middleware of all procedures. */
import { initTRPC } from '@trpc/server'
import type { OpenApiMeta } from 'trpc-to-openapi'
import { transformer } from '../client/src/encoding.ts'
import type { Deadline } from '../db/deadline.ts'
import { errorShape, readOnlyKey, toProblem, unauthorized } from './errors.ts'
import type { Idempotency } from './idempotency/store.ts'
import { type Auth, MISSING } from './keys/auth.ts'
import type { RestMeta } from './operation.ts'
import type { Stores } from './stores.ts'
import type { CallTrace } from './tracing.ts'
import type { Transact } from './transact.ts'

/** What every call is made with, on both surfaces. */
export interface Context {
  /** Whose key the call came with. */
  auth: Auth | undefined
  /** The same once the key was checked. */
  caller: Caller | undefined
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
      return errorShape(toProblem(thrown))
    },
  })

export const { router } = t

/** A caller with a valid API key. */
export type Caller = Extract<Auth, { kind: 'caller' }>

/** The caller of a request, who may do what it asks for. Throws UNAUTHORIZED, FORBIDDEN. */
export function authorize(auth: Auth, type: 'query' | 'mutation' | 'subscription'): Caller {
  if (auth.kind !== 'caller') throw unauthorized(auth)
  if (auth.readOnly && type === 'mutation') throw readOnlyKey()
  return auth
}

const keyCheck = t.middleware(({ ctx, type, next }) =>
  next({ ctx: { caller: authorize(ctx.auth ?? MISSING, type) } }),
)

/** Whether a middleware of a procedure is the key check of `keyedProcedure`. */
export const isKeyCheck = (middleware: object): boolean =>
  keyCheck._middlewares.includes(middleware as never)

/**
 * A procedure for callers with a valid API key, which for a mutation must be one that may write; both
 * are checked before the input is even looked at.
 */
export const keyedProcedure = t.procedure.use(keyCheck)
