/** The API key of a request: its spellings, what is not looked at without one, and keys that may only read. */
import { afterEach, expect, test } from 'vitest'
import { answerOf, expectRestError, expectServing, expectTrpcError } from '../support/expect.ts'
import { countPets } from '../support/pets.ts'
import { converse, type RawAnswer, requestText } from '../support/raw.ts'
import { keyedFetch, restClient } from '../support/rest.ts'
import { transformer } from '../support/router.ts'
import { keys, serviceForFile, trpcClient } from '../support/service.ts'

const service = await serviceForFile()
const { key: reader } = await keys.create(service.databaseUrl, 'catalogue', undefined, true)
afterEach(async () => {
  await expectServing(service)
  expect(await countPets(service.sql)).toBe(0)
})

const surfaces = [
  ['/v1/pets', expectRestError],
  ['/trpc/createPet', expectTrpcError],
] as const

const unknownKey = `petstore_${'A'.repeat(43)}`

/** The key with the case of each letter of its secret inverted. */
const inAnotherCase = (key: string) =>
  key.replaceAll(/(?<=_.*)[a-z]/gi, (letter) =>
    letter === letter.toLowerCase() ? letter.toUpperCase() : letter.toLowerCase(),
  )

const spellings: Record<string, (key: string) => string | undefined> = {
  'no header': () => undefined,
  empty: () => '',
  'the scheme alone': () => 'Bearer',
  'no scheme': (key) => key,
  'no space': (key) => `Bearer${key}`,
  'a tab': (key) => `Bearer\t${key}`,
  Basic: (key) => `Basic ${key}`,
  'after another scheme': (key) => `Token Bearer ${key}`,
  quoted: (key) => `Bearer "${key}"`,
  'two keys': (key) => `Bearer ${key}, Bearer ${key}`,
  'one character too long': (key) => `Bearer ${key}A`,
  'one character too short': (key) => `Bearer ${key.slice(0, -1)}`,
  'upper case': (key) => `Bearer ${key.toUpperCase()}`,
  'inverted case': (key) => `Bearer ${inAnotherCase(key)}`,
  unknown: () => `Bearer ${unknownKey}`,
  'the prefix of a read-only key': (key) => `Bearer ${key.replace('_', '_read_')}`,
  'of a read-only key without its prefix': () => `Bearer ${reader.replace('read_', '')}`,
  'not the format of a key': () => 'Bearer abc.def~+/==',
  'not ASCII': () => 'Bearer schlüssel',
}

const ask = async (authorization: string | undefined) => {
  const headers = { authorization }
  const rest = await Promise.all([
    service.rest('GET', '/pets', { headers }),
    service.rest('POST', '/pets', { headers, body: '{"name":"Rex",' }),
    service.rest('GET', '/pets/none', { headers }),
  ])
  const sent = authorization === undefined ? {} : { headers: { authorization } }
  return { rest, trpc: await fetch(`${service.origin}/trpc/listPets`, sent) }
}

test.each(['Bearer ', 'bearer ', 'BEARER ', 'Bearer  '])(
  'valid: "%s" before the key',
  async (scheme) => {
    const { rest, trpc } = await ask(scheme + service.key)
    expect(rest.map(({ status }) => status)).toEqual([200, 400, 400])
    expect([trpc.status, trpc.headers.get('www-authenticate')]).toEqual([200, null])
  },
)

test.each(Object.keys(spellings))('invalid: the key, %s', async (spelling) => {
  const authorization = spellings[spelling]?.(service.key)
  const { rest, trpc } = await ask(authorization)
  const challenge = authorization === undefined ? 'Bearer' : 'Bearer error="invalid_token"'
  for (const { status, headers } of [...rest, trpc]) {
    expect([status, headers.get('www-authenticate')]).toEqual([401, challenge])
  }
  const { error } = (await trpc.json()) as { error: string }
  const { message } = transformer.deserialize(error) as { message: string }
  for (const { body } of rest) expect(body).toEqual({ code: 'UNAUTHORIZED', message, status: 401 })
})

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

test('a read-only key can read, and each operation that writes returns 403, on both surfaces', async () => {
  const [rest, trpc] = [restClient(service.origin, reader), trpcClient(service.origin, reader)]
  expect((await rest('GET', '/pets')).status).toBe(200)
  expect(await trpc.listPets.query()).toEqual([])
  const post = (path: string, body: string, headers = {}) =>
    answerOf(keyedFetch(service.origin, reader)(path, { method: 'POST', headers, body }))
  for (const body of [pet, '{', '']) {
    for (const [path, check] of surfaces) {
      const rejected = await post(path, body, { 'idempotency-key': '"read-only"' })
      check(rejected, 403, 'FORBIDDEN')
      expect(rejected.headers.get('www-authenticate')).toBe('Bearer error="insufficient_scope"')
    }
  }
  const inputs = Array(2).fill(transformer.serialize(JSON.parse(pet)))
  for (const first of ['createPet', 'nothing', 'listPets']) {
    for (const headers of [{}, { 'trpc-accept': 'application/jsonl' }]) {
      const batch = `/trpc/${first},createPet?batch=1`
      expectTrpcError(await post(batch, JSON.stringify({ ...inputs }), headers), 403, 'FORBIDDEN')
    }
  }
})
