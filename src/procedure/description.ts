/** What a procedure says of itself beside its input and output: one description, for REST and the document. */
import type { OpenApiMeta } from 'trpc-to-openapi'
import { IdempotencyHeaders } from '../idempotency/header.ts'

/** Since when an operation is deprecated, when it ends, and which path replaces it. */
export interface Deprecation {
  since: Date
  sunset: Date
  successor: `/${string}`
}

interface Common {
  /** As in the OpenAPI document: `/pets/{petId}`. What the braces name is a field of the input. */
  path: `/${string}`
  /** Under which heading the document lists the operation. */
  tag: string
  summary: string
  description: string
  deprecated?: Deprecation
  /** The words of 404, for operations on one thing that may not be there. */
  notFound?: string
  /** The words of 409, for operations that a rule of uniqueness may refuse. */
  conflict?: string
}

/** Gives one thing. `example` is an output. */
interface Reading {
  method: 'GET'
  example: unknown
}

/** Gives a page of things, the next of which `Link` leads to; its resolver is made by `paged`. */
interface Listing {
  method: 'GET'
  paged: true
  example: unknown[]
}

/**
 * Makes something: it answers 201, with the path of what it made in `Location` (`{id}` is that field
 * of the output), and happens once per Idempotency-Key; its resolver is made by `once`.
 */
interface Creating {
  method: 'POST'
  creates: `/${string}`
  example: unknown
  exampleInput?: object
}

/**
 * Changes something, and gives what it is then. `exampleInput` is a body; one that has no fields but
 * those of its path has none. A `repeatable` one happens once per Idempotency-Key; its resolver is
 * made by `once`.
 */
interface Changing {
  method: 'PATCH' | 'PUT' | 'POST'
  repeatable?: true
  example: unknown
  exampleInput?: object
}

/** Removes something, and gives nothing: it answers 204. */
interface Removing {
  method: 'DELETE'
}

export type RestMeta = Common & (Reading | Listing | Creating | Changing | Removing)

const MORE_PAGES =
  'While there are more, the answer has a `Link` header with `rel="next"`, the address of the next page.'
const repeatableWords = (effect: string) =>
  `With an \`Idempotency-Key\` a request can be repeated safely: the repetition ${effect} nothing and is answered as the first.`

/** The meta of a procedure from its description, in the form that trpc-to-openapi reads, too. */
export function operation(rest: RestMeta): OpenApiMeta<{ rest: RestMeta }> {
  const { method, path, tag, summary, deprecated } = rest
  // What REST alone has is said here, since clients of tRPC read the description too.
  const description = [
    rest.description,
    'paged' in rest && MORE_PAGES,
    'creates' in rest && repeatableWords('adds'),
    'repeatable' in rest && repeatableWords('changes'),
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
