/** The forms of requests that only tRPC has: batches and streams. */
import {
  createTRPCClient,
  httpBatchLink,
  httpBatchStreamLink,
  httpLink,
  type TRPCLink,
} from '@trpc/client'
import { afterEach, expect, test } from 'vitest'
import {
  answerOf,
  expectNothingInside,
  expectServing,
  expectTrpcError,
} from '../../support/expect.ts'
import { countPets, petOf } from '../../support/pets.ts'
import { converse, type RawAnswer, requestText } from '../../support/raw.ts'
import { type AppRouter, transformer } from '../../support/router.ts'
import { serviceForFile } from '../../support/service.ts'

const service = await serviceForFile()
afterEach(() => expectServing(service))

const get = (path: string, headers = {}): Promise<RawAnswer> =>
  answerOf(service.fetch(`/trpc/${path}`, { headers }))
const times = (count: number, name: string) => Array.from({ length: count }, () => name).join(',')
const streamed = { 'trpc-accept': 'application/jsonl' }
const pet = '"[{\\"name\\":1,\\"categoryId\\":2},\\"Rex\\",3]"'

test('a full batch has 20 calls, each with the input at its own index', async () => {
  const ids = Array.from({ length: 20 }, (_, index) => 1_000 + index)
  const inputs = ids.map((petId) => transformer.serialize({ petId }))
  const input = encodeURIComponent(JSON.stringify({ ...inputs }))
  const messages = ids.map((id) => `There is no animal with the id ${id}`)
  const path = `${times(20, 'getPet')}?batch=1&input=${input}`
  const { status, body } = await get(path)
  expect(status).toBe(404)
  const errors = (JSON.parse(body) as { error: string }[]).map(
    ({ error }) => transformer.deserialize(error) as { message: string },
  )
  expect(errors.map(({ message }) => message)).toEqual(messages)
  const stream = await get(path, streamed)
  expect(stream.status).toBe(200)
  for (const message of messages) expect(stream.body).toContain(message)
})

test.each([
  ...['5', '"x"', 'null', 'true'].map((input) => [input, 'BAD_REQUEST']),
  ...['{', '', '{"0":{}}', '{"0":5}', '{"0":null}', '{"0":"{"}', '{"0":"5"}'].map((input) => [
    input,
    'PARSE_ERROR',
  ]),
])('the input %s of a batch or a stream is %s', async (input, code) => {
  const path = `listPets?batch=1&input=${encodeURIComponent(input)}`
  expectTrpcError(await get(path), 400, code)
  expect((await get(path, streamed)).body).toContain(code)
})

test('a stream returns no more details than a plain response', async () => {
  const answer = await get('listPets,getPet,nothing?batch=1', streamed)
  expect([answer.status, answer.headers.get('cache-control')]).toEqual([200, 'no-store'])
  expect(answer.body).toContain('NOT_FOUND')
  expectNothingInside(answer)
  const anonymous = await get('listPets?batch=1', { ...streamed, authorization: 'Bearer x' })
  expectTrpcError(anonymous, 401, 'UNAUTHORIZED')
  expectTrpcError(await get('listPets', streamed), 400, 'BAD_REQUEST') // it needs `batch=1`
})

test('each call of a stream has its own answer, whatever its name', async () => {
  const input = encodeURIComponent(JSON.stringify({ 0: '[{"petId":1},404]', 2: '[{"limit":1},0]' }))
  for (const name of ['a%3Fb', 'a%23b', '..', '__proto__', '%2500', '']) {
    const { body } = await get(`getPet,${name},listPets,getPet?batch=1&input=${input}`, streamed)
    for (const message of [
      'There is no animal with the id 404',
      `There is no procedure with the name ${decodeURIComponent(name)}`,
      'limit must be at least 1',
      'The input must be an object',
    ]) {
      expect(body).toContain(`"${message}\\"`)
    }
  }
})

test('trpc-accept decides on a stream where Accept says otherwise', async () => {
  const [plain, stream] = ['application/json', 'application/jsonl']
  const bodyOf = async (headers: object) => (await get('listPets?batch=1', headers)).body
  const expected = await bodyOf({})
  expect(await bodyOf({ 'trpc-accept': plain, accept: stream })).toBe(expected)
  expect(await bodyOf({ accept: `${stream}x, */*` })).toBe(expected)
  expect(await bodyOf({ 'trpc-accept': stream, accept: plain })).not.toBe(expected)
  expect(await bodyOf({ accept: `*/*,${stream}` })).not.toBe(expected)
})

test('a stream, a batch of one, a plain call and REST repeat the answer of each other for one Idempotency-Key', async () => {
  const headers = { 'idempotency-key': '"any form"' }
  const body = { name: 'Rex', categoryId: 3 }
  const made = await service.rest('POST', '/pets', { headers, body })
  const madeId = `[\\"BigInt\\",\\"${(made.body as { id: number }).id}\\"]`
  for (const [query, body, more] of [
    ['', pet, {}],
    ['?batch=1', `{"0":${pet}}`, {}],
    ['?batch=1', `{"0":${pet}}`, streamed],
  ] as const) {
    const init = { method: 'POST', headers: { ...headers, ...more }, body }
    const answer = await service.fetch(`/trpc/createPet${query}`, init)
    expect(await answer.text()).toContain(madeId)
  }
})

test.each(['../', '%2e%2e/', '..%2f'])(
  'a path names no other procedure: listPets/%screatePet',
  async (dots) => {
    const before = await countPets(service.sql)
    for (const accept of ['application/json', 'application/jsonl']) {
      const headers = [`trpc-accept: ${accept}`]
      // fetch resolves plain dots itself.
      const line = `POST /trpc/listPets/${dots}createPet?batch=1`
      const text = requestText(line, { key: service.key, headers, body: `{"0":${pet}}` })
      const { answers } = await converse(service.origin, text)
      expect(answers[0]?.body).toContain('NOT_FOUND')
    }
    expect(await countPets(service.sql)).toBe(before)
  },
)

test('single calls, batches and streams return the same outcome, with all fields of an error', async () => {
  const outcomesBy = async (link: TRPCLink<AppRouter>) => {
    const { listPets, getPet, createPet } = createTRPCClient<AppRouter>({ links: [link] })
    // The input is invalid on purpose, so the types of the client must not reject it.
    const queries = [
      listPets.query({ limit: 0, status: 'free' as 'sold' }),
      getPet.query({ petId: 404 }),
      getPet.query(7 as never),
      listPets.query({ cursor: 2n ** 63n - 1n }),
    ]
    const creations = [
      createPet.mutate({ name: 'a\ud83d\0', categoryId: 1.5 }),
      createPet.mutate({ name: 'Rex', categoryId: 2n ** 63n - 1n, status: 'sold' }),
    ]
    const outcomes = await Promise.allSettled([...queries, ...creations])
    return outcomes.map((outcome) => {
      if (outcome.status === 'rejected') return outcome.reason.shape
      // Each creation returns a new id.
      return Array.isArray(outcome.value) ? outcome.value : { ...outcome.value, id: 1n }
    })
  }
  const refused = (message: string, fields: Record<string, string>) => ({
    message,
    code: -32600,
    data: { code: 'BAD_REQUEST', httpStatus: 400, fields },
  })
  const limit = 'must be at least 1'
  const status = 'must be one of available, pending, sold'
  const name = 'must not contain an unpaired surrogate'
  const categoryId = 'must be an integer from -9223372036854775808 to 9223372036854775807'
  const expected = [
    refused(`limit ${limit}; status ${status}`, { limit, status }),
    {
      message: 'There is no animal with the id 404',
      code: -32004,
      data: { code: 'NOT_FOUND', httpStatus: 404 },
    },
    refused('The input must be an object', { '': 'must be an object' }),
    [],
    // `fields` has the first error of a field, the message all of them.
    refused(`name ${name}; name must not contain the character NUL; categoryId ${categoryId}`, {
      name,
      categoryId,
    }),
    petOf(1n, { categoryId: 2n ** 63n - 1n, status: 'sold' }),
  ]
  const headers = { authorization: `Bearer ${service.key}` }
  const options = { url: `${service.origin}/trpc`, transformer, headers }
  for (const link of [httpLink(options), httpBatchLink(options), httpBatchStreamLink(options)]) {
    expect(await outcomesBy(link)).toEqual(expected)
  }
})
