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

interface Common {
  /** A path template, such as `/pets/{petId}`. Each parameter is a field of the input. */
  path: `/${string}`
  /** The tag of the operation in the document. */
  tag: string
  summary: string
  description: string
  deprecated?: Deprecation
  /** The message of 404, for an operation on one resource that may not exist. */
  notFound?: string
  /** The message of 409, for an operation that may violate a unique constraint. */
  conflict?: string
}

/** An operation that returns one resource. `example` is an output. */
interface Reading {
  method: 'GET'
  example: unknown
}

/** An operation that returns a page; `Link` has the URL of the next one. `paged` makes its resolver. */
interface Listing {
  method: 'GET'
  paged: true
  example: unknown[]
}

/**
 * An operation that creates a resource, and returns it with 201. `creates` is the path template of
 * `Location`: its parameters are fields of the output. `idempotentWrite` makes its resolver.
 */
interface Creating {
  method: 'POST'
  creates: `/${string}`
  example: unknown
  exampleInput?: object
}

/**
 * An operation that changes a resource, and returns it. `exampleInput` is a body, unless all fields of
 * the input are in the path. If `repeatable`, `idempotentWrite` makes its resolver.
 */
interface Changing {
  method: 'PATCH' | 'PUT' | 'POST'
  repeatable?: true
  example: unknown
  exampleInput?: object
}

/** An operation that removes a resource, and returns nothing with 204. */
interface Removing {
  method: 'DELETE'
}

export type RestMeta = Common & (Reading | Listing | Creating | Changing | Removing)

const MORE_PAGES =
  'If there are more, the response has a `Link` header with `rel="next"`, the URL of the next page.'
const idempotencyText = (effect: string) =>
  `With an \`Idempotency-Key\` a request can be repeated safely: the repetition ${effect} nothing and returns the first response.`

/** Returns the meta of a procedure, for this service (`rest`) and for trpc-to-openapi (`openapi`). */
export function restMeta(rest: RestMeta): OpenApiMeta<{ rest: RestMeta }> {
  const { method, path, tag, summary, deprecated } = rest
  // The sentences about headers belong to REST alone: tRPC's clients show `rest.description`.
  const description = [
    rest.description,
    'paged' in rest && MORE_PAGES,
    'creates' in rest && idempotencyText('adds'),
    'repeatable' in rest && idempotencyText('changes'),
  ]
    .filter(Boolean)
    .join(' ')
  return {
    rest,
    openapi: {
      method,
      path,
      tags: [tag],
      summary,
      description,
      deprecated: deprecated !== undefined,
      ...(('creates' in rest || 'repeatable' in rest) && { requestHeaders: IdempotencyHeaders }),
    },
  }
}
