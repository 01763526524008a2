/** The description of a procedure: what the surfaces and the document say of it. */
import type { TRPC_ERROR_CODE_KEY } from '@trpc/server/rpc'
import type { OpenApiMeta } from 'trpc-to-openapi'

/** The description of an operation. What does not fit its procedure is an error at the start. */
export interface RestMeta {
  method: 'GET' | 'POST' | 'PATCH' | 'PUT' | 'DELETE'
  /** A path template, such as `/pets/{petId}`. Each parameter is a field of the input. */
  path: `/${string}`
  /** The tag of the operation in the document, and its text, which all operations of a resource have. */
  tag: { name: string; description: string }
  summary: string
  description: string
  /** An output. A DELETE has none: it returns nothing, with 204. */
  example?: unknown
  /** A body, unless all fields of the input are in the path or the query. */
  exampleInput?: object
  /** The name of the body in the document, where the input has several schemas: their own ids are lost. */
  inputId?: string
  /**
   * For an operation that creates a resource, and returns it with 201: the path template of `Location`,
   * whose parameters are fields of the output or of the path.
   */
  creates?: `/${string}`
  /** Whether a query returns a page: then it has the output of `paged`, and the inputs of `pagingInputs`. */
  isPaged?: boolean
  /** Whether a mutation takes an Idempotency-Key: then its resolver calls `writeIdempotent` or `create`, otherwise `write`. */
  takesKey?: boolean
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
  /** The message of 404, for an operation on a resource that may not exist; of several resources, all of them. */
  notFound?: string | string[]
  /** The message of 409: a unique value is taken, or the state of the resource forbids the action. */
  conflict?: string | string[]
  /**
   * The name of the procedure that brings the resource into the state that this one needs, such as `startTour` for
   * `finishTour`. Its path has no other parameters.
   */
  after?: string
  /**
   * The messages of 400 for what no field alone breaks, such as `until must be after from`: what `refine` of an object or a
   * list says, with the field before it; of the items of a list that of the first one, `lines.0.until must be after from`.
   */
  rules?: string[]
}

/**
 * What the middlewares of a base procedure ask of a call, under a key of its own: tRPC merges the meta of a procedure
 * and of its base one level deep, so that `access` of the procedure would replace that of the base.
 */
export interface AccessMeta {
  /** Anyone may call, without an API key, and so without an Idempotency-Key. The rate is that of the IP address. */
  isPublic?: true
  /**
   * The headers that the middlewares read, by their names, such as one with the token of a user behind the API key of a
   * frontend. The document has them, pages of other origins may send them, and the tests send their examples.
   */
  headers?: Record<string, AccessHeader>
  /** What the middlewares throw. The document has these errors alone, and the tests of errors meet each of them. */
  errors?: AccessError[]
}

/** A header of a request, in the document. */
export interface AccessHeader {
  description: string
  example: string
  isOptional?: true
}

/** An error of a middleware: of any call of the procedures, before their resolvers. */
export interface AccessError {
  code: TRPC_ERROR_CODE_KEY
  message: string
  /** When it is thrown, in the document. */
  description: string
  /** What a test changes of a good call to meet it: headers, of which undefined removes one, or the API key. */
  metBy: { headers?: Record<string, string | undefined>; readOnlyKey?: true }
}

/** Returns the meta of a procedure, for this service (`rest`) and for trpc-to-openapi (`openapi`). */
export function restMeta(rest: RestMeta): OpenApiMeta<{ rest: RestMeta }> {
  const { method, path, tag, summary, description, deprecated } = rest
  const texts = { tags: [tag.name], summary, description, deprecated: deprecated !== undefined }
  // surface/rest/openapi/ adds the responses, errors included.
  return { rest, openapi: { method, path, ...texts, errorResponses: [] } }
}
