/** The description of a procedure for REST and the OpenAPI document, beside its input and output. */
import type { OpenApiMeta } from 'trpc-to-openapi'
import { IdempotencyHeaders } from '../idempotency/header.ts'

/** The deprecation of an operation: headers `Deprecation`, `Sunset` and `Link`. */
export interface Deprecation {
  /** The date of the deprecation. */
  since: Date
  /** The date of the removal. */
  sunset: Date
  /** The path that replaces the operation, without parameters. */
  successor: `/${string}`
}

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
  /** For an operation that returns a page: `Link` has the URL of the next one. `paged` makes its resolver. */
  paged?: true
  /**
   * For an operation that creates a resource, and returns it with 201: the path template of `Location`,
   * whose parameters are fields of the output or of the path. `idempotentWrite` makes its resolver.
   */
  creates?: `/${string}`
  /** For an action with an Idempotency-Key. `idempotentWrite` makes its resolver. */
  repeatable?: true
  /** A call by the TypeScript client, for the document. */
  sample?: string
  deprecated?: Deprecation
  /** The message of 404, for an operation on one resource that may not exist. */
  notFound?: string
  /** The message of 409: a unique value is taken, or the state of the resource forbids the action. */
  conflict?: string
}

const MORE_PAGES =
  'If there are more, the response has a `Link` header with `rel="next"`, the URL of the next page.'
const idempotencyText = (effect: string) =>
  `With an \`Idempotency-Key\` a request can be repeated safely: the repetition ${effect} nothing and returns the first response.`

/** Returns the meta of a procedure, for this service (`rest`) and for trpc-to-openapi (`openapi`). */
export function restMeta(rest: RestMeta): OpenApiMeta<{ rest: RestMeta }> {
  const { method, path, tag, summary, paged, creates, repeatable, deprecated } = rest
  // The sentences about headers belong to REST alone: tRPC's clients show `rest.description`.
  const sentences = [
    rest.description,
    paged && MORE_PAGES,
    creates && idempotencyText('adds'),
    repeatable && idempotencyText('changes'),
  ]
  return {
    rest,
    openapi: {
      method,
      path,
      tags: [tag],
      summary,
      description: sentences.filter(Boolean).join(' '),
      deprecated: deprecated !== undefined,
      errorResponses: [], // see surface/rest/openapi/
      ...((creates || repeatable) && { requestHeaders: IdempotencyHeaders }),
    },
  }
}
