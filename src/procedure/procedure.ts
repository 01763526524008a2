/** tRPC's set-up: the builder of all procedures and routers, and the check that precedes every call. */
import { initTRPC } from '@trpc/server'
import type { OpenApiMeta } from 'trpc-to-openapi'
import { transformer } from '../../client/src/encoding.ts'
import { problem, toProblem } from '../errors/catalogue.ts'
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
      return toProblem(thrown).shape
    },
  })

export const { router } = t

/**
 * The builder of all procedures (https://trpc.io/docs/server/procedures). A procedure has one input, one
 * output and no middleware: its `ctx` exists only for a caller that `authorize` has let through.
 */
export const { procedure } = t

/**
 * Returns the caller, if its API key allows a procedure of this type. Throws UNAUTHORIZED without a
 * valid key, and FORBIDDEN for a mutation with a read-only key. Whoever makes a Context calls it, before
 * the body is read.
 */
export function authorize(auth: Auth, type: 'query' | 'mutation'): Caller {
  if (typeof auth === 'string') throw problem(auth)
  if (auth.readOnly && type === 'mutation') throw problem('readOnlyKey')
  return auth
}
