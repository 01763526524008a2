/** The description of a procedure: what the surfaces and the document say of it. */
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
  conflict?: string
}

/** Returns the meta of a procedure, for this service (`rest`) and for trpc-to-openapi (`openapi`). */
export function restMeta(rest: RestMeta): OpenApiMeta<{ rest: RestMeta }> {
  const { method, path, tag, summary, description, deprecated } = rest
  const texts = { tags: [tag.name], summary, description, deprecated: deprecated !== undefined }
  // surface/rest/openapi/ adds the responses, errors included.
  return { rest, openapi: { method, path, ...texts, errorResponses: [] } }
}
