/** What the OpenAPI document says of answers: headers, errors, examples. */
import type { OpenAPIObject } from 'trpc-to-openapi'
import { type ApiError, toApiError } from '../errors.ts'
import { idempotencyError } from '../idempotency/header.ts'
import { MAX_BODY } from '../limits.ts'
import { hasBody, type Operation } from './operations.ts'

type Components = NonNullable<OpenAPIObject['components']>
type Response = NonNullable<Components['responses']>[string]

const text = (description: string, example: string, required = false) => ({
  description,
  required,
  schema: { type: 'string' as const },
  example,
})

/** Every header that the document speaks of, by name; operations refer to them. */
export const headerComponents = {
  Link: text(
    'Related addresses (RFC 8288): `rel="next"` is the next page, there while there are more animals; `rel="successor-version"` is what replaces a deprecated operation.',
    '<https://petstore.example/v1/pets?limit=20&cursor=20>; rel="next"',
  ),
  Location: text('The address of the new animal.', 'https://petstore.example/v1/pets/42', true),
  Deprecation: text('Since when the operation is deprecated (RFC 9745).', '@1795132800', true),
  Sunset: text('When the operation is removed (RFC 8594).', 'Thu, 05 Dec 2030 00:00:00 GMT', true),
  'WWW-Authenticate': text(
    'What is missing (RFC 6750): a key, or a valid one.',
    'Bearer error="invalid_token"',
    true,
  ),
  'Retry-After': {
    description: 'Seconds after which to try again.',
    required: true,
    schema: { type: 'integer' as const, minimum: 0 },
    example: 5,
  },
  'X-Request-Id': text(
    'The id of the request: that of its own `X-Request-Id`, if it sent one, or a new one. Tell it when you report an error.',
    '0f2d4c3a-6a3e-4b0e-9a55-0b8f5f1f0f4e',
    true,
  ),
  'RateLimit-Policy': text(
    'How many calls are allowed (`q`) in how many seconds (`w`), where the operator set a limit (draft-ietf-httpapi-ratelimit-headers-08).',
    '"60-in-1min"; q=60; w=60; pk=:MWM5NTRhZjZmZmMx:',
  ),
  RateLimit: text(
    'How many calls are left (`r`) and in how many seconds that starts anew (`t`), where the operator set a limit.',
    '"60-in-1min"; r=59; t=60',
  ),
} satisfies Components['headers']

type HeaderName = keyof typeof headerComponents

interface ErrorDescription {
  error: ApiError
  description: string
  headers?: HeaderName[]
}

/** Every answer that an operation can give, by status: the success, then the errors. */
export function responsesOf(operation: Operation, output: object): Record<string, Response> {
  const { rest } = operation
  const always: HeaderName[] = [
    'X-Request-Id',
    'RateLimit',
    'RateLimit-Policy',
    ...(rest.deprecation ? (['Deprecation', 'Sunset', 'Link'] as const) : []),
  ]
  const success: HeaderName[] = [
    ...always,
    ...(rest.location ? (['Location'] as const) : []),
    ...(rest.paged ? (['Link'] as const) : []),
  ]
  const errors = errorsOf(operation).map(({ error, description, headers = [] }) => [
    error.status,
    {
      description,
      headers: references([...always, ...headers]),
      content: {
        'application/json': { schema: { $ref: '#/components/schemas/Error' }, example: error },
      },
    },
  ])
  return {
    [rest.location ? 201 : 200]: {
      description: rest.location ? 'Added' : 'Success',
      headers: references(success),
      content: { 'application/json': { schema: output, example: rest.examples.output } },
    },
    ...Object.fromEntries(errors),
  }
}

function references(names: HeaderName[]) {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]))
}

function errorsOf(operation: Operation): ErrorDescription[] {
  const { badRequest, notFound } = operation.rest.examples
  return [
    {
      error: { code: 'BAD_REQUEST', message: badRequest, status: 400 },
      description: hasBody(operation)
        ? 'The body lacks required fields, holds invalid values (`BAD_REQUEST`), or is not JSON (`PARSE_ERROR`)'
        : 'A parameter is invalid',
    },
    {
      error: { code: 'UNAUTHORIZED', message: 'The API key is invalid', status: 401 },
      description: 'The API key is missing or invalid',
      headers: ['WWW-Authenticate'],
    },
    ...(notFound === undefined
      ? []
      : [
          {
            error: { code: 'NOT_FOUND', message: notFound, status: 404 } as const,
            description: 'Nothing with that identifier',
          },
        ]),
    ...(operation.rest.idempotent ? idempotencyErrors : []),
    ...(hasBody(operation) ? bodyErrors : []),
    {
      error: {
        code: 'TOO_MANY_REQUESTS',
        message: 'There were more than 60 calls in a minute; try again in 42 seconds',
        status: 429,
      },
      description: 'There were too many calls in the last minute',
      headers: ['Retry-After'],
    },
    {
      error: { code: 'INTERNAL_SERVER_ERROR', message: 'Internal server error', status: 500 },
      description: 'The service failed; trying again may help',
    },
    {
      error: {
        code: 'SERVICE_UNAVAILABLE',
        message: 'The service cannot use its database right now; try again later',
        status: 503,
      },
      description: 'The service cannot answer right now',
      headers: ['Retry-After'],
    },
  ]
}

const bodyErrors: ErrorDescription[] = [
  {
    error: {
      code: 'PAYLOAD_TOO_LARGE',
      message: `The body must have at most ${MAX_BODY} bytes`,
      status: 413,
    },
    description: `The body has more than ${MAX_BODY} bytes`,
  },
  {
    error: {
      code: 'UNSUPPORTED_MEDIA_TYPE',
      message: 'The body must be of the type application/json, in UTF-8',
      status: 415,
    },
    description: 'The body is not `application/json`, or is compressed',
  },
]

const idempotencyErrors: ErrorDescription[] = [
  {
    error: toApiError(idempotencyError('running')),
    description: 'A request with the same `Idempotency-Key` is still running',
  },
  {
    error: toApiError(idempotencyError('different')),
    description: 'The `Idempotency-Key` was used for another body',
  },
]
