/** The responses in the OpenAPI document: headers, errors, examples. */
import { MAX_BODY, MAX_HEADER_COUNT, MAX_HEADERS } from '../../../config/limits.ts'
import { problem, problemOfInput, tooManyRequests } from '../../../errors/catalogue.ts'
import { Problem } from '../../../errors/problem.ts'
import { INVALID_HOST } from '../../../http/request.ts'
import type { Operation } from '../operations.ts'
import { NOT_AN_OBJECT } from '../surface.ts'

/** Returns all responses of an operation by status; `schema` is that of its success. */
export function responsesOf(operation: Operation, schema: object | undefined) {
  const { method, readBody, takesKey, notFound, conflict, creates } = operation
  const { status, isPaged, deprecated, example, write } = operation
  const always = ['X-Request-Id', 'RateLimit', 'RateLimit-Policy']
  if (deprecated) always.push('Deprecation', 'Sunset', 'Link')

  /** A response with the errors of one status. */
  const refused = (description: string, ...problems: Problem[]) => {
    const names = problems.flatMap(({ headers }) => headers.filter((_, index) => index % 2 === 0))
    return response(
      description,
      [...always, ...names],
      'Error',
      problems.map(({ body }) => body),
    )
  }
  /** The response to a request that is refused before its operation is known. */
  const early = (description: string, error: Problem) =>
    response(description, ['X-Request-Id'], 'Refusal', [error.refusal])

  const violation = creates
    ? 'The resource exists already'
    : 'The state of the resource does not allow the request'
  const running = 'request with the same `Idempotency-Key` is still running'
  const withKey = conflict ? `${violation}, or a ${running}` : `A ${running}`
  return {
    [status]: {
      description: { 200: 'Success', 201: 'Added', 204: 'Removed' }[status],
      headers: references([...always, ...(creates ? ['Location'] : isPaged ? ['Link'] : [])]),
      ...(status !== 204 && {
        content: { 'application/json': { schema, example: write(structuredClone(example)) } },
      }),
    },
    400: readBody
      ? refused(
          'The body lacks required fields, has invalid values (`BAD_REQUEST`), or is not JSON (`PARSE_ERROR`)',
          badRequest(operation),
          problem('malformed'),
        )
      : refused('A parameter is invalid', badRequest(operation)),
    401: refused('The API key is missing or invalid', problem('invalidKey')),
    ...(method !== 'GET' && { 403: refused('The API key may only read', problem('readOnlyKey')) }),
    ...(notFound && {
      404: refused('The identifier does not exist', new Problem('NOT_FOUND', notFound)),
    }),
    408: early('The request did not arrive in time', problem('timeout')),
    ...((conflict || takesKey) && {
      409: refused(
        takesKey ? withKey : violation,
        ...(conflict ? [new Problem('CONFLICT', conflict)] : []),
        ...(takesKey ? [problem('keyRunning')] : []),
      ),
    }),
    ...(readBody && {
      413: refused(`The body has more than ${MAX_BODY} bytes`, problem('bodyTooLarge')),
      415: refused('The body is not `application/json`, or is compressed', problem('mediaType')),
    }),
    ...(takesKey && {
      422: refused('The `Idempotency-Key` was used for another request', problem('keyUsed')),
    }),
    429: refused('There were too many calls in the last minute', tooManyRequests(60, 42)),
    431: early(
      `The URL and the headers have more than ${MAX_HEADERS} bytes, or there are more than ${MAX_HEADER_COUNT} headers`,
      problem('headersTooLarge'),
    ),
    500: refused('The service failed; trying again may help', problem('internal')),
    503: refused('The service cannot answer right now', problem('unavailable')),
  }
}

function response(
  description: string,
  headers: string[],
  schema: string,
  errors: Problem['body'][],
) {
  const [example] = errors
  // The second example with the same code has its number as a suffix.
  const nameOf = ({ code }: Problem['body'], index: number) =>
    errors.findIndex((other) => other.code === code) === index ? code : `${code}_${index + 1}`
  const named = errors.map((value, index) => [nameOf(value, index), { value }])
  const content = {
    schema: { $ref: `#/components/schemas/${schema}` },
    ...(errors.length > 1 ? { examples: Object.fromEntries(named) } : { example }),
  }
  return { description, headers: references(headers), content: { 'application/json': content } }
}

const references = (names: string[]) =>
  Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]))

/** Returns the error for an empty body, or for a first parameter that is `x`; else one that always exists. */
function badRequest({ input, readBody, pathParameters, queryParameters }: Operation): Problem {
  const [[first] = ['']] = [...pathParameters, ...queryParameters]
  const wrong = readBody ? {} : { [first]: 'x' }
  const issues = input
    .safeParse(wrong)
    .error?.issues.filter(({ path: [field] }) =>
      readBody ? !pathParameters.some(([name]) => name === field) : field === first,
    )
  return issues?.length
    ? problemOfInput({ issues })
    : new Problem('BAD_REQUEST', readBody ? NOT_AN_OBJECT : INVALID_HOST)
}
