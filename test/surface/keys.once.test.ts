/** What is not looked at without a valid API key. */
import { afterEach, expect, test } from 'vitest'
import { expectRestError, expectServing, expectTrpcError } from '../support/expect.ts'
import { countPets } from '../support/pets.ts'
import { converse, type RawAnswer, requestText } from '../support/raw.ts'
import { serviceForFile } from '../support/service.ts'

const service = await serviceForFile()
afterEach(async () => {
  await expectServing(service)
  expect(await countPets(service.sql)).toBe(0)
})

const surfaces = [
  ['/v1/pets', expectRestError],
  ['/trpc/createPet', expectTrpcError],
] as const

const unknownKey = `petstore_${'A'.repeat(43)}`

const right = `Authorization: Bearer ${service.key}`
const wrong = `Authorization: Bearer ${unknownKey}`
const pet = '{"name":"Rex","categoryId":3}'
const json = 'Content-Type: application/json'
const large = ' '.repeat(70_000)

/** Checks that a creation with these headers and this body is 401, on both surfaces. */
async function expectUnauthorized(headers: string[], body: string, challenge: string) {
  for (const [path, check] of surfaces) {
    const head = requestText(`POST ${path}`, { headers })
    const { answers } = await converse(service.origin, [head, body])
    const [answer] = answers as [RawAnswer]
    check(answer, 401, 'UNAUTHORIZED')
    expect(answer.headers.get('www-authenticate')).toBe(challenge)
    expect(answer.headers.get('cache-control')).toBe('no-store')
  }
}

test.each<[title: string, headers: string[], body: string]>([
  ['too large', [json, 'Content-Length: 70000'], large],
  ['too large in chunks', [json, 'Transfer-Encoding: chunked'], `11170\r\n${large}\r\n0\r\n\r\n`],
  ['of an unsupported type', ['Content-Type: text/plain', `Content-Length: ${pet.length}`], pet],
  ['not JSON', [json, 'Content-Length: 1'], '{'],
  ['never sent', [json, 'Content-Length: 20'], ''],
  ['chunked and never sent', [json, 'Transfer-Encoding: chunked'], ''],
  ['empty', [json, 'Content-Length: 0'], ''],
])('without a valid key, a body that is %s is not waited for', async (_title, headers, body) => {
  await expectUnauthorized(headers, body, 'Bearer')
  await expectUnauthorized([wrong, ...headers], body, 'Bearer error="invalid_token"')
})

test.each([
  [right, wrong],
  [wrong, right],
  [right, right],
  [right, 'authorization: '],
])(
  'two Authorization headers return 401, because a proxy may have read the other one (%#)',
  async (...two) => {
    const headers = [...two, json, `Content-Length: ${pet.length}`]
    await expectUnauthorized(headers, pet, 'Bearer error="invalid_token"')
  },
)

test('of two Content-Type headers, the first one counts', async () => {
  const text = 'Content-Type: text/plain'
  const statusOf = async (...types: string[]) => {
    const headers = [right, ...types, 'Content-Length: 2']
    const head = requestText('POST /v1/pets', { headers })
    const { answers } = await converse(service.origin, [head, '{}'])
    return answers[0]?.status
  }
  expect(await statusOf(json, text)).toBe(400)
  expect(await statusOf(text, json)).toBe(415)
})
