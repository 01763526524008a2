/**
 * What a procedure is written with (the builder, the description for REST, the errors of resources), and how
 * it is called. tRPC's own call costs 20 µs, because it copies its options five times. Here the input, the
 * resolver and the output are called directly, which costs 1 µs.
 */
import { type AnyTRPCRouter, initTRPC } from '@trpc/server'
import type { OpenApiMeta } from 'trpc-to-openapi'
import type { z } from 'zod'
import { transformer } from '../../client/src/encoding.ts'
import { DuplicateError } from '../../db/errors.ts'
import { MAX_BODY } from '../config/product.ts'
import { Problem, problem, problemOfInput, toProblem } from '../errors/problem.ts'
import type { Context, Maker, Resolver } from './context.ts'

/** The description of an operation. What does not fit its procedure is an error at the start. */
export interface RestMeta {
  method: 'GET' | 'POST' | 'PATCH' | 'PUT' | 'DELETE'
  /** A path template, such as `/pets/{petId}`. Each parameter is a field of the input. */
  path: `/${string}`
  /** The tag of the operation in the document. */
  tag: string
  summary: string
  description: string
  /** An output. A DELETE has none: it returns nothing, with 204. */
  example?: unknown
  /** A body, unless all fields of the input are in the path or the query. */
  exampleInput?: object
  /**
   * For an operation that creates a resource, and returns it with 201: the path template of `Location`,
   * whose parameters are fields of the output or of the path.
   */
  creates?: `/${string}`
  /** A call by the TypeScript client, for the document. */
  sample?: string
  /** The headers `Deprecation`, `Sunset` and `Link`. */
  deprecated?: {
    /** The date of the deprecation. */
    since: Date
    /** The date of the removal. */
    sunset: Date
    /** The path that replaces the operation, without parameters. */
    successor: `/${string}`
  }
  /** The message of 404, for an operation on one resource that may not exist. */
  notFound?: string
  /** The message of 409: a unique value is taken, or the state of the resource forbids the action. */
  conflict?: string
}

/**
 * The builders (https://trpc.io/docs/server/procedures). A procedure has one input, one output and no
 * middleware: its `ctx` exists only for a caller whose API key allows the call.
 */
export const { router, procedure } = initTRPC
  .context<Context>()
  .meta<OpenApiMeta<{ rest?: RestMeta }>>()
  .create({
    transformer: { ...transformer, deserialize: decodeInput },
    allowOutsideOfServer: true, // the client package's stand-in may run in a browser
    isDev: false, // with NODE_ENV=development, responses would contain stack traces
    errorFormatter: ({ error }) => toProblem(error).shape,
  })

/** Returns the meta of a procedure, for this service (`rest`) and for trpc-to-openapi (`openapi`). */
export function restMeta(rest: RestMeta): OpenApiMeta<{ rest: RestMeta }> {
  const { method, path, tag, summary, description, deprecated } = rest
  const texts = { tags: [tag], summary, description, deprecated: deprecated !== undefined }
  // surface/rest/openapi/ adds the responses, errors included.
  return { rest, openapi: { method, path, ...texts, errorResponses: [] } }
}

/** Returns the value. Throws NOT_FOUND with this message if it is undefined. */
export function found<Value>(value: Value | undefined, message: string): Value {
  if (value === undefined) throw new Problem('NOT_FOUND', message)
  return value
}

/**
 * Returns the result of a change. Throws CONFLICT with this message if a unique value is taken.
 * @public Resources with a unique value need it, such as test/visits.
 */
export async function unique<Result>(changing: Promise<Result>, message: string): Promise<Result> {
  try {
    return await changing
  } catch (cause) {
    throw cause instanceof DuplicateError ? new Problem('CONFLICT', message, { cause }) : cause
  }
}

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

/** The parts of a procedure that tRPC declares on its internal types only. */
interface Definition {
  type: 'query' | 'mutation' // the check of `rest` below leaves no subscriptions
  meta?: { rest?: RestMeta }
  middlewares: unknown[]
  inputs: z.ZodType[]
  output?: z.ZodType
  resolver: Resolver<unknown, unknown> & { maker?: Maker }
}

export type Procedure = ReturnType<typeof procedureOf>

/** Returns the procedures of a router. Throws TypeError for one with other parts than a procedure here has. */
export const proceduresOf = (router: AnyTRPCRouter): Procedure[] =>
  Object.entries<{ _def: unknown }>(router._def.procedures).map(([name, { _def }]) =>
    procedureOf(name, _def as Definition),
  )

function procedureOf(name: string, definition: Definition) {
  const { type, meta, middlewares, inputs, output, resolver } = definition
  const [input] = inputs
  const rest = meta?.rest
  const { maker } = resolver
  // tRPC counts the input, the output and the resolver as middlewares.
  if (!rest || !input || !output || middlewares.length !== 3) {
    throw new TypeError(
      `The procedure ${name} needs .meta(restMeta({ … })), one .input(…) and one .output(…), and no .use(…)`,
    )
  }
  if ((type === 'query') !== (maker === undefined || maker === 'paged')) {
    throw new TypeError(
      `The procedure ${name} must be made by write(…) or idempotentWrite(…) if it is a mutation, and by neither if it is a query`,
    )
  }
  /** Calls the procedure and returns its output. Throws the errors of the procedure. */
  const run = async (ctx: Context, raw: unknown): Promise<unknown> => {
    const { success, data, error } = input.safeParse(raw)
    if (!success) throw problemOfInput(error)
    const made = await resolver({ ctx, input: data, path: name, output })
    // `write` has checked it before the commit. A stored output may be of an earlier release.
    return type === 'mutation' ? made : checkOutput(output, made)
  }
  return { name, type, rest, input, output, maker, run }
}

/** Returns an output as its schema returns it. Throws INTERNAL_SERVER_ERROR for one that it rejects. */
export function checkOutput(schema: z.ZodType, output: unknown): unknown {
  const { success, data, error } = schema.safeParse(output)
  if (!success) throw problem('internal', error)
  return data
}
