/** tRPC, set up for this service, and the one middleware of all procedures. */
import { initTRPC } from '@trpc/server'
import type { OpenApiMeta } from 'trpc-to-openapi'
import { transformer } from '../../client/src/encoding.ts'
import { errorShape, readOnlyKey, toProblem, unauthorized } from '../errors/problem.ts'
import { type Auth, MISSING } from '../keys/auth.ts'
import type { Caller, Context } from './context.ts'
import type { RestMeta } from './description.ts'

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

/** The caller of a request, who may do what it asks for. Throws UNAUTHORIZED, FORBIDDEN. */
export function authorize(auth: Auth, type: 'query' | 'mutation' | 'subscription'): Caller {
  if (auth.kind !== 'caller') throw unauthorized(auth.kind)
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
