/** The responses in the OpenAPI document: headers, errors, examples. */
import { MAX_BODY, MAX_HEADER_COUNT, MAX_HEADERS } from '../../../config/product.ts'
import { problem, problemOfInput, tooManyRequests } from '../../../errors/catalogue.ts'
import { Problem } from '../../../errors/problem.ts'
import type { Operation } from '../operations.ts'
import { writable } from '../values.ts'

/** An error response: whether the operation has it, its description, and its errors, which have one status. */
type Row = [condition: unknown, description: string, ...errors: [Problem, ...Problem[]]]

/** Returns all responses of an operation by status; `schema` is that of its success. */
export function responsesOf(operation: Operation, schema: object | undefined) {
  const { method, readsBody, takesKey, notFound = '', conflict, creates } = operation
  const { status, isPaged, deprecated, example } = operation
  const always = ['X-Request-Id', 'RateLimit', 'RateLimit-Policy']
  if (deprecated) always.push('Deprecation', 'Sunset', 'Link')

  const keyRunning = 'A request with the same `Idempotency-Key` is still running'
  const violation = 'The resource exists already, or its state does not allow the request'
  const taken = new Problem('CONFLICT', conflict ?? '')
  const errors: Row[] = [
    [!readsBody, 'A parameter is invalid', badRequest(operation)],
    [
      readsBody,
      'The body lacks required fields, has invalid values (`BAD_REQUEST`), or is not JSON (`PARSE_ERROR`)',
      badRequest(operation),
      problem('malformed'),
    ],
    [true, 'The API key is missing or invalid', problem('invalidKey')],
    [method !== 'GET', 'The API key may only read', problem('readOnlyKey')],
    [notFound, 'The identifier does not exist', new Problem('NOT_FOUND', notFound)],
    [true, 'The request did not arrive in time', problem('timeout')],
    [conflict && !takesKey, violation, taken],
    [conflict && takesKey, `${violation}. ${keyRunning}`, taken, problem('keyRunning')],
    [!conflict && takesKey, keyRunning, problem('keyRunning')],
    [readsBody, `The body has more than ${MAX_BODY} bytes`, problem('bodyTooLarge')],
    [readsBody, 'The body is not `application/json`, or is compressed', problem('mediaType')],
    [takesKey, 'The `Idempotency-Key` was used for another request', problem('keyUsed')],
    [true, 'There were too many calls in the last minute', tooManyRequests(60, 42)],
    [
      true,
      `The URL and the headers have more than ${MAX_HEADERS} bytes, or there are more than ${MAX_HEADER_COUNT} headers`,
      problem('headersTooLarge'),
    ],
    [true, 'The service failed; trying again may help', problem('internal')],
    [true, 'The service cannot answer right now', problem('unavailable')],
  ]
  const success = {
    description: { 200: 'Success', 201: 'Added', 204: 'Removed' }[status],
    headers: references([...always, ...(creates ? ['Location'] : isPaged ? ['Link'] : [])]),
    ...(status !== 204 && {
      content: { 'application/json': { schema, example: writable(structuredClone(example)) } },
    }),
  }
  const rows = errors.filter(([condition]) => condition)
  const responses = rows.map(([, ...row]) => [row[1].status, response(always, ...row)])
  return { [status]: success, ...Object.fromEntries(responses) }
}

/** The statuses of requests that are refused before their operation is known. */
const EARLY = [408, 431]

function response(always: string[], description: string, ...errors: [Problem, ...Problem[]]) {
  const isEarly = EARLY.includes(errors[0].status)
  const names = errors.flatMap(({ headers }) => headers.filter((_, index) => index % 2 === 0))
  const headers = references(isEarly ? ['X-Request-Id'] : [...always, ...names])
  const examples = errors.map((error) => (isEarly ? error.refusal : error.body))
  // The second example with the same code has its number as a suffix.
  const nameOf = (code: string, at: number) =>
    examples.findIndex((other) => other.code === code) === at ? code : `${code}_${at + 1}`
  const named = examples.map((value, at) => [nameOf(value.code, at), { value }])
  const content = {
    schema: { $ref: `#/components/schemas/${isEarly ? 'Refusal' : 'Error'}` },
    ...(errors.length > 1 ? { examples: Object.fromEntries(named) } : { example: examples[0] }),
  }
  return { description, headers, content: { 'application/json': content } }
}

const references = (names: string[]) =>
  Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]))

/** Returns the error for an empty body, or for a first parameter that is `x`; else one that always exists. */
function badRequest({ input, readsBody, pathParameters, queryParameters }: Operation): Problem {
  const [[first] = ['']] = [...pathParameters, ...queryParameters]
  const wrong = readsBody ? {} : { [first]: 'x' }
  const issues = input
    .safeParse(wrong)
    .error?.issues.filter(({ path: [field] }) =>
      readsBody ? !pathParameters.some(([name]) => name === field) : field === first,
    )
  return issues?.length
    ? problemOfInput({ issues })
    : problem(readsBody ? 'notAnObject' : 'invalidHost')
}
