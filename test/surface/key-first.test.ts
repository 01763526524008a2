/** The key is checked first: without a valid one both surfaces return 401 and do not wait for a body. */
import { afterEach, describe, expect, test } from 'vitest'
import { expectRestError, expectServing, expectTrpcError } from '../support/expect.ts'
import { converse, type RawAnswer, requestText } from '../support/raw.ts'
import { serviceForFile } from '../support/service.ts'

const service = await serviceForFile()
afterEach(() => expectServing(service))

const pet = '{"name":"Rex","categoryId":3}'
const json = 'Content-Type: application/json'
const length = (bytes: number) => `Content-Length: ${bytes}`
const large = ' '.repeat(70_000)

type Body = [title: string, headers: string[], body: string]
const bodies: Body[] = [
  ['too large', [json, length(large.length)], large],
  ['too large in chunks', [json, 'Transfer-Encoding: chunked'], `11170\r\n${large}\r\n0\r\n\r\n`],
  ['of an unsupported type', ['Content-Type: text/plain', length(pet.length)], pet],
  ['not JSON', [json, length(1)], '{'],
  ['never sent', [json, length(20)], ''],
  ['chunked and never sent', [json, 'Transfer-Encoding: chunked'], ''],
  ['empty', [json, length(0)], ''],
]

const wrong = `Authorization: Bearer petstore_${'A'.repeat(43)}`
const keys: [title: string, header: string[], challenge: string][] = [
  ['no key', [], 'Bearer'],
  ['a wrong key', [wrong], 'Bearer error="invalid_token"'],
]

const surfaces: [path: string, check: (answer: RawAnswer, status: number, code: string) => void][] =
  [
    ['/v1/pets', expectRestError],
    ['/trpc/createPet', expectTrpcError],
  ]

describe.each(keys)('with %s', (_, key, challenge) => {
  describe.each(surfaces)('POST %s', (path, check) => {
    test.each(bodies)('a body that is %s', async (_title, headers, body) => {
      const head = requestText(`POST ${path}`, { headers: [...key, ...headers] })
      const { answers } = await converse(service.origin, [head, body])
      const [answer] = answers as [RawAnswer]
      check(answer, 401, 'UNAUTHORIZED')
      expect(answer.headers.get('www-authenticate')).toBe(challenge)
      expect(answer.headers.get('cache-control')).toBe('no-store')
    })
  })
})

test('two Authorization headers return 401, because a proxy may have read the other one', async () => {
  const right = `Authorization: Bearer ${service.key}`
  for (const [path, check] of surfaces) {
    for (const two of [
      [right, wrong],
      [wrong, right],
      [right, right],
      [right, 'authorization: '],
    ]) {
      const text = requestText(`POST ${path}`, { headers: two, body: pet })
      const { answers } = await converse(service.origin, text)
      const [answer] = answers as [RawAnswer]
      check(answer, 401, 'UNAUTHORIZED')
      expect(answer.headers.get('www-authenticate')).toBe('Bearer error="invalid_token"')
    }
  }
})

test('none of these requests created a pet', async () => {
  expect((await service.rest('GET', '/pets')).body).toEqual([])
})
