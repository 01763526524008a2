/** tRPC's set-up: the encoding of inputs, the builder of procedures, and the check before each call. */
import { initTRPC } from '@trpc/server'
import type { OpenApiMeta } from 'trpc-to-openapi'
import { transformer } from '../../client/src/encoding.ts'
import { MAX_BODY } from '../config/limits.ts'
import { problem, toProblem } from '../errors/catalogue.ts'
import type { Auth, Caller } from '../keys/key.ts'
import type { Context } from './context.ts'
import type { RestMeta } from './rest-meta.ts'

/**
 * Returns the input in devalue's encoding, which has equal values once: a short text may be a very long
 * input. Throws PARSE_ERROR for other values, and PAYLOAD_TOO_LARGE for more than `MAX_BODY` characters
 * and values, the limit that REST has by the size of its body.
 */
export function decodeInput(encoded: unknown): unknown {
  if (typeof encoded !== 'string') throw problem('malformed')
  try {
    const input = transformer.deserialize(encoded)
    if (sizeOf(input, new Map()) <= MAX_BODY) return input
  } catch (cause) {
    throw problem('malformed', cause) // one that is nested too deeply has no size
  }
  throw problem('inputTooLarge')
}

/** Returns the number of values in a value, and of their characters; Infinity if it contains itself. */
function sizeOf(value: unknown, known: Map<object, number>): number {
  if (typeof value === 'string') return value.length
  if (typeof value !== 'object' || value === null) return 1
  const before = known.get(value)
  if (before !== undefined) return before
  known.set(value, Number.POSITIVE_INFINITY)
  let size = 1
  for (const inner of Object.values(value)) size += sizeOf(inner, known)
  known.set(value, size)
  return size
}

const t = initTRPC
  .context<Context>()
  .meta<OpenApiMeta<{ rest?: RestMeta }>>()
  .create({
    transformer: { ...transformer, deserialize: decodeInput },
    allowOutsideOfServer: true, // the client package's stand-in may run in a browser
    isDev: false, // with NODE_ENV=development, responses would contain stack traces
    errorFormatter: ({ error }) => toProblem(error).shape,
  })

/**
 * The builders (https://trpc.io/docs/server/procedures). A procedure has one input, one output and no
 * middleware: its `ctx` exists only for a caller that `authorize` has let through.
 */
export const { router, procedure } = t

/**
 * Returns the caller, if its API key allows a procedure of this type. Throws UNAUTHORIZED without a
 * valid key, and FORBIDDEN for a mutation with a read-only key. Whatever makes a Context calls it,
 * before the body is read.
 */
export function authorize(auth: Auth, type: 'query' | 'mutation'): Caller {
  if (typeof auth === 'string') throw problem(auth)
  if (auth.readOnly && type === 'mutation') throw problem('readOnlyKey')
  return auth
}
