/** tRPC's set-up, and the middleware of all procedures: the check of the API key. */
import { initTRPC } from '@trpc/server'
import type { OpenApiMeta } from 'trpc-to-openapi'
import { transformer } from '../../client/src/encoding.ts'
import { errorShape, readOnlyKey, toProblem, unauthorized } from '../errors/problem.ts'
import type { Auth, Caller } from '../keys/key.ts'
import type { Context } from './context.ts'
import { decodeInput } from './decode.ts'
import type { RestMeta } from './rest-meta.ts'

const t = initTRPC
  .context<Context>()
  .meta<OpenApiMeta<{ rest?: RestMeta }>>()
  .create({
    transformer: { ...transformer, deserialize: decodeInput },
    allowOutsideOfServer: true, // the client package's stand-in may run in a browser
    isDev: false, // with NODE_ENV=development, responses would contain stack traces
    errorFormatter({ error: thrown }) {
      return errorShape(toProblem(thrown))
    },
  })

export const { router } = t

/**
 * Returns the caller, if its API key allows a procedure of this type. Throws UNAUTHORIZED without a
 * valid key, and FORBIDDEN for a mutation with a read-only key.
 */
export function authorize(auth: Auth, type: 'query' | 'mutation' | 'subscription'): Caller {
  if (typeof auth === 'string') throw unauthorized(auth)
  if (auth.readOnly && type === 'mutation') throw readOnlyKey()
  return auth
}

const keyCheck = t.middleware(({ ctx, type, next }) =>
  next({ ctx: { caller: authorize(ctx.auth ?? 'missing', type) } }),
)

/** Returns whether a middleware is the key check of `keyedProcedure`. */
export const isKeyCheck = (middleware: object): boolean =>
  keyCheck._middlewares.includes(middleware as never)

/**
 * The builder of all procedures (https://trpc.io/docs/server/procedures). The procedure rejects calls
 * without a valid API key, and mutations with a read-only key, before it parses the input.
 */
export const keyedProcedure = t.procedure.use(keyCheck)
