/** Checks of errors: their form, and that they have no internal details. */
import { expect } from 'vitest'
import type { RawAnswer } from './raw.ts'
import { transformer } from './router.ts'
import type { Service } from './service.ts'

/** Checks that the service still serves a valid caller, on both surfaces. */
export async function expectServing({ rest, trpc }: Service): Promise<void> {
  expect((await rest('GET', '/pets?limit=1')).status).toBe(200)
  expect(await trpc.listPets.query({ limit: 1 })).toBeInstanceOf(Array)
}

// Stacks, files, SQL, engines, hosts, hashes and keys.
const inside =
  /node_modules|\bat \S+ \(|\.[jt]s\b|\bselect\b .*\bfrom\b|insert into|SQLITE|ER_[A-Z]+_|ECONN|errno|127\.0\.0\.1|[\da-f]{64}|petstore_[\w-]{43}/i

/** Checks that a response has the Error of the interface without internal details. */
export function expectRestError(answer: RawAnswer, status: number, code: string): void {
  expect({ status: answer.status, body: answer.body }).toMatchObject({ status })
  expect(answer.headers.get('content-type')).toBe('application/json')
  const body = JSON.parse(answer.body)
  expect(body).toEqual({ code, message: expect.stringMatching(/./), status })
  expectNothingInside(answer)
}

/**
 * Checks that a response has the Error of the interface and the error of tRPC beside its fields,
 * without internal details. The request was rejected before its surface was known.
 */
export function expectRefusal(answer: RawAnswer, status: number, code: string): void {
  const { error, ...body } = JSON.parse(answer.body)
  expectRestError({ ...answer, body: JSON.stringify(body) }, status, code)
  expectTrpcError({ ...answer, body: JSON.stringify({ error }) }, status, code)
  expect((transformer.deserialize(error) as { message: string }).message).toBe(body.message)
}

/** Checks that a response has the envelope of a tRPC error without internal details. */
export function expectTrpcError(answer: RawAnswer, status: number, code: string): void {
  expect({ status: answer.status, body: answer.body }).toMatchObject({ status })
  expect(answer.headers.get('content-type')).toBe('application/json')
  const parsed = JSON.parse(answer.body)
  for (const envelope of Array.isArray(parsed) ? parsed : [parsed]) {
    expect(Object.keys(envelope)).toEqual(['error'])
    const error = transformer.deserialize(envelope.error) as { data: Record<string, unknown> }
    expect(Object.keys(error)).toEqual(['message', 'code', 'data'])
    // Only a rejected input has errors of its fields.
    const { fields: _fields, ...data } = error.data
    expect(code === 'BAD_REQUEST' ? data : error.data).toEqual({ code, httpStatus: status })
  }
  expectNothingInside(answer)
}

export function expectNothingInside({ headers, body }: RawAnswer): void {
  for (const text of [body, ...[...headers].map(([name, value]) => `${name}: ${value}`)]) {
    expect(text).not.toMatch(inside)
    expect(text).not.toContain(process.cwd())
  }
}

/** The response of a fetch, in the form of these checks. */
export async function answerOf(fetched: Promise<Response>): Promise<RawAnswer> {
  const response = await fetched
  return { status: response.status, headers: response.headers, body: await response.text() }
}

/** The headers of every response that restrict what a browser does with it; a page has another policy. */
export const everyHeader = {
  'content-security-policy': "default-src 'none';frame-ancestors 'none'",
  'cross-origin-resource-policy': 'same-origin',
  'x-content-type-options': 'nosniff',
}

/** The headers of a page and its files. */
export const pageHeaders = {
  ...everyHeader,
  'content-security-policy':
    "default-src 'none';base-uri 'none';connect-src 'self';form-action 'none';frame-ancestors 'none';img-src 'self';script-src 'self';style-src 'self'",
  'cross-origin-opener-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
}
