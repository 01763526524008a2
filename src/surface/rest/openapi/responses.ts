/** The responses in the OpenAPI document: headers, errors, examples. */
import type { OpenAPIObject } from 'trpc-to-openapi'
import { MAX_BODY, MAX_HEADER_COUNT, MAX_HEADERS } from '../../../config/limits.ts'
import {
  type ApiError,
  HEADERS_TOO_LARGE,
  internal,
  malformed,
  Problem,
  payloadTooLarge,
  REQUEST_TIMEOUT,
  readOnlyKey,
  refusalOf,
  toApiError,
  tooManyRequests,
  unauthorized,
  unavailable,
  unsupportedMediaType,
} from '../../../errors/problem.ts'
import { REQUEST_ID } from '../../../http/request-log.ts'
import { idempotencyError } from '../../../idempotency/header.ts'
import { deprecationHeaders } from '../links.ts'
import type { Operation } from '../operations.ts'
import fixed from './components.json' with { type: 'json' }

type Components = NonNullable<OpenAPIObject['components']>
type Response = NonNullable<Components['responses']>[string]

type HeaderName = keyof typeof fixed.headers

/** Returns the components of all response headers by name, to which operations refer. */
export function headerComponents(operations: Operation[], baseUrl: string) {
  const listed = operations.find(({ paged }) => paged)
  const created = operations.find(({ creates }) => creates !== undefined)
  const ending = operations.find(({ deprecated }) => deprecated)?.deprecated
  const dates = ending && deprecationHeaders(ending, baseUrl)
  const page = `${baseUrl}${examplePath(listed?.path ?? ending?.successor)}?limit=20&cursor=20`
  const { Link, Location, Deprecation, Sunset, ...always } = fixed.headers
  const id = always['X-Request-Id']
  return {
    ...((listed || ending) && { Link: { ...Link, example: `<${page}>; rel="next"` } }),
    ...(created && {
      Location: { ...Location, example: baseUrl + examplePath(created.creates) },
    }),
    ...(dates && {
      Deprecation: { ...Deprecation, example: dates.Deprecation },
      Sunset: { ...Sunset, example: dates.Sunset },
    }),
    ...always,
    'X-Request-Id': { ...id, schema: { ...id.schema, pattern: REQUEST_ID.source } },
  } as NonNullable<Components['headers']> // the type of a JSON module has no literals
}

/** Returns a path for an example, with 42 for each parameter of the template. */
export const examplePath = (template = '') => template.replaceAll(/\{.+?\}/g, '42')

/** The errors of an operation with one status. */
interface Refused {
  description: string
  errors: ApiError[]
  headers: HeaderName[]
  schema: 'Error' | 'Refusal'
}

/** Returns the errors of an operation by status. */
export function errorsOf(operation: Operation): Refused[] {
  const { method, readBody, takesKey, badRequest, notFound, conflict, creates } = operation
  const refused = (description: string, ...errors: Problem[]): Refused => ({
    description,
    errors: errors.map(toApiError),
    headers: [...alwaysSent(operation), ...errors.flatMap(headersOf)],
    schema: 'Error',
  })
  /** The response to a request that is rejected before its operation is known. */
  const early = (description: string, error: ApiError): Refused => ({
    description,
    errors: [refusalOf(error)],
    headers: ['X-Request-Id'],
    schema: 'Refusal',
  })
  const invalid = new Problem('BAD_REQUEST', badRequest)
  const violation = creates
    ? 'The resource exists already'
    : 'The state of the resource does not allow the request'
  const violated = new Problem('CONFLICT', conflict ?? '')
  const whenRunning = 'request with the same `Idempotency-Key` is still running'
  const running = idempotencyError('running')
  const errors = [
    readBody
      ? refused(
          'The body lacks required fields, has invalid values (`BAD_REQUEST`), or is not JSON (`PARSE_ERROR`)',
          invalid,
          malformed(undefined),
        )
      : refused('A parameter is invalid', invalid),
    refused('The API key is missing or invalid', unauthorized('invalid')),
    method !== 'GET' && refused('The API key may only read', readOnlyKey()),
    notFound !== undefined &&
      refused('The identifier does not exist', new Problem('NOT_FOUND', notFound)),
    early('The request did not arrive in time', REQUEST_TIMEOUT),
    conflict && !takesKey && refused(violation, violated),
    !conflict && takesKey && refused(`A ${whenRunning}`, running),
    conflict && takesKey && refused(`${violation}, or a ${whenRunning}`, violated, running),
    readBody && refused(`The body has more than ${MAX_BODY} bytes`, payloadTooLarge()),
    readBody &&
      refused('The body is not `application/json`, or is compressed', unsupportedMediaType()),
    takesKey &&
      refused('The `Idempotency-Key` was used for another request', idempotencyError('different')),
    refused('There were too many calls in the last minute', tooManyRequests(60, 42)),
    early(
      `The URL and the headers have more than ${MAX_HEADERS} bytes, or there are more than ${MAX_HEADER_COUNT} headers`,
      HEADERS_TOO_LARGE,
    ),
    refused('The service failed; trying again may help', internal()),
    refused('The service cannot answer right now', unavailable()),
  ]
  return errors.filter((error) => !!error)
}

/** Returns the names of an error's headers: names and values in turn. */
const headersOf = ({ headers }: Problem) =>
  headers.filter((_, index) => index % 2 === 0) as HeaderName[] // the document has all of them

/** Returns the headers of all responses of an operation. */
const alwaysSent = ({ deprecated }: Operation): HeaderName[] => [
  ...(['X-Request-Id', 'RateLimit', 'RateLimit-Policy'] as const),
  ...(deprecated ? (['Deprecation', 'Sunset', 'Link'] as const) : []),
]

/** Returns all responses of an operation by status; `output` is the schema of its success. */
export function responsesOf(operation: Operation, output?: object): Record<string, Response> {
  const { status, creates, paged, example } = operation
  const headers = alwaysSent(operation)
  if (creates) headers.push('Location')
  if (paged) headers.push('Link')
  const success = {
    description: { 200: 'Success', 201: 'Added', 204: 'Removed' }[status],
    headers: references(headers),
    ...(output &&
      status !== 204 && { content: { 'application/json': { schema: output, example } } }),
  }
  const errors = errorsOf(operation).map((refused) => [
    refused.errors[0]?.status,
    response(refused),
  ])
  return { [status]: success, ...Object.fromEntries(errors) }
}

function response({ description, errors, headers, schema: name }: Refused): Response {
  const schema = { $ref: `#/components/schemas/${name}` }
  // The second example with the same code has its number as a suffix.
  const nameOf = ({ code }: ApiError, index: number) =>
    errors.findIndex((other) => other.code === code) === index ? code : `${code}_${index + 1}`
  const examples = errors.map((value, index) => [nameOf(value, index), { value }])
  const content =
    errors.length > 1
      ? { schema, examples: Object.fromEntries(examples) }
      : { schema, example: errors[0] }
  return { description, headers: references(headers), content: { 'application/json': content } }
}

const references = (names: HeaderName[]) =>
  Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]))
