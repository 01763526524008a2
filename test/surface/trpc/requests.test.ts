/** The forms of requests that only tRPC has: batches, streams, connection parameters. */
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
  type ErrorAnswer,
  expectNothingInside,
  expectServing,
  expectTrpcError,
} from '../../support/expect.ts'
import { converse, requestText } from '../../support/raw.ts'
import { type AppRouter, transformer } from '../../support/router.ts'
import { serviceForFile } from '../../support/service.ts'

const service = await serviceForFile()
afterEach(() => expectServing(service))

const get = (path: string, headers = {}): Promise<ErrorAnswer> =>
  answerOf(service.fetch(`/trpc/${path}`, { headers }))
const times = (count: number, name: string) => Array.from({ length: count }, () => name).join(',')

test('a batch has at most 20 calls', async () => {
  const fitting = await get(`${times(20, 'listPets')}?batch=1`)
  expect(fitting.status).toBe(200)
  expect(JSON.parse(fitting.body)).toHaveLength(20)
  expectTrpcError(await get(`${times(21, 'listPets')}?batch=1`), 400, 'BAD_REQUEST')
  expectTrpcError(await get(`${times(1_500, 'listPets')}?batch=1`), 400, 'BAD_REQUEST')
  // Percent-encoded commas separate calls, too.
  const escaped = times(21, 'listPets').replaceAll(',', '%2c')
  expectTrpcError(await get(`${escaped}?batch=1`), 400, 'BAD_REQUEST')
  const streamed = await get(`${times(20, 'listPets')}?batch=1`, {
    'trpc-accept': 'application/jsonl',
  })
  expect(streamed.status).toBe(200)
  expect(streamed.body).not.toContain('error')
})

test('each call of a full batch has the input at its own index', async () => {
  const ids = Array.from({ length: 20 }, (_, index) => 1_000 + index)
  const inputs = ids.map((petId) => transformer.serialize({ petId }))
  const input = encodeURIComponent(JSON.stringify({ ...inputs }))
  const { status, body } = await get(`${times(20, 'getPet')}?batch=1&input=${input}`)
  expect(status).toBe(404)
  const messages = (JSON.parse(body) as { error: string }[]).map(
    ({ error }) => (transformer.deserialize(error) as { message: string }).message,
  )
  expect(messages).toEqual(ids.map((id) => `There is no animal with the id ${id}`))
})

test('a batch is 207 wherever the call is that differs, and has a header of several errors once', async () => {
  expect((await get('listPets,nothing,listPets?batch=1')).status).toBe(207)
  expect((await get('nothing,listPets,listPets?batch=1')).status).toBe(207)
  const refused = await get('createPet,createPet?batch=1')
  expect([refused.status, refused.headers.get('allow')]).toEqual([405, 'POST'])
})

test('malformed inputs of a batch are rejected', async () => {
  for (const input of ['5', '"x"', 'null', 'true']) {
    expectTrpcError(await get(`listPets,listPets?batch=1&input=${input}`), 400, 'BAD_REQUEST')
  }
  expectTrpcError(await get('listPets?batch=1&input={'), 400, 'PARSE_ERROR')
  expectTrpcError(await get('listPets?batch=1&input='), 400, 'PARSE_ERROR')
  expectTrpcError(await get('listPets?batch=1&input={"0":{}}'), 400, 'PARSE_ERROR')
})

test('a stream returns no more details than a plain response', async () => {
  for (const header of ['trpc-accept', 'accept']) {
    const streamed = { [header]: 'application/jsonl' }
    expectTrpcError(await get('listPets', streamed), 400, 'BAD_REQUEST')
    const answer = await get('listPets,getPet,nothing?batch=1', streamed)
    expect(answer.status).toBe(200)
    expect(answer.body).toContain('NOT_FOUND')
    expect(answer.headers.get('cache-control')).toBe('no-store')
    for (const { headers } of [answer, await get('listPets')]) {
      expect(headers.get('vary')?.split(', ')).toEqual(
        expect.arrayContaining(['Origin', 'trpc-accept', 'accept']),
      )
    }
    expectNothingInside(answer)
    const anonymous = await get('listPets?batch=1', { ...streamed, authorization: 'Bearer x' })
    expect(anonymous.body).toContain('UNAUTHORIZED')
    expect(anonymous.body).not.toContain('result')
    expectNothingInside(anonymous)
  }
})

test('a stream rejects the malformed inputs that a plain batch rejects', async () => {
  for (const input of ['{', '5', 'null', '"{"']) {
    const path = `listPets?batch=1&input=${encodeURIComponent(`{"0":${input}}`)}`
    for (const answer of [
      await get(path),
      await get(path, { 'trpc-accept': 'application/jsonl' }),
    ]) {
      expect(answer.body).toContain('PARSE_ERROR')
      expect(answer.body).toContain('The request is not well-formed: its JSON cannot be read')
    }
  }
})

test('each call of a stream has its own answer, whatever its name', async () => {
  const input = encodeURIComponent(JSON.stringify({ 0: '[{"petId":1},404]', 2: '[{"limit":1},0]' }))
  for (const name of ['a%3Fb', 'a%23b', '..', '__proto__', '%2500', '']) {
    const { body } = await get(`getPet,${name},listPets,getPet?batch=1&input=${input}`, {
      'trpc-accept': 'application/jsonl',
    })
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
  expect(await bodyOf({ 'trpc-accept': stream, accept: plain })).not.toBe(expected)
  // The type is looked for in the list of Accept, as in tRPC's own adapter.
  for (const accept of [stream, `${stream}, */*`]) {
    expect(await bodyOf({ accept })).not.toBe(expected)
  }
  expect(await bodyOf({ accept: `${stream}x, */*` })).toBe(expected)
})

test('a stream and a plain request have the same rules for what is a batch', async () => {
  const streamed = { 'trpc-accept': 'application/jsonl' }
  const names = times(20, 'listPets')
  const dummies = '&a'.repeat(1_100)
  expectTrpcError(await get(`${names}?batch=1&batch=1`, streamed), 400, 'BAD_REQUEST')
  expectTrpcError(await get(`${names}?connectionParams={}&batch=1&batch=1`), 404, 'NOT_FOUND')
  const many = await get(`${times(21, 'listPets')}?a${dummies}&batch=1`, streamed)
  expectTrpcError(many, 400, 'BAD_REQUEST')
  const body = '{"0":"[{\\"name\\":1,\\"categoryId\\":2},\\"Rex\\",3]"}'
  for (const key of ['"streamed"', '']) {
    const keyed = await service.fetch('/trpc/createPet,createPet?batch=1', {
      method: 'POST',
      headers: { 'idempotency-key': key, ...streamed },
      body,
    })
    expect(keyed.status).toBe(400)
  }
})

test('a stream, a batch of one, a plain call and REST repeat the answer of each other for one Idempotency-Key', async () => {
  const headers = { 'idempotency-key': '"any form"' }
  const input = '"[{\\"name\\":1,\\"categoryId\\":2},\\"Rex\\",3]"'
  const ask = (query: string, body: string, more = {}) =>
    service.fetch(`/trpc/createPet${query}`, {
      method: 'POST',
      headers: { ...headers, ...more },
      body,
    })
  const made = await service.rest('POST', '/pets', {
    headers,
    body: { name: 'Rex', categoryId: 3 },
  })
  const { id } = made.body as { id: number }
  const plain = await (await ask('', input)).text()
  const madeId = `[\\"BigInt\\",\\"${id}\\"]`
  expect(plain).toContain(madeId)
  expect(await (await ask('?connectionParams={}', input)).text()).toBe(plain)
  for (const accept of ['application/json', 'application/jsonl']) {
    const batch = await ask('?batch=1', `{"0":${input}}`, { 'trpc-accept': accept })
    expect(await batch.text()).toContain(madeId)
  }
})

test.each(['../', '%2e%2e/', '..%2f', '%2E.%2F'])(
  'a stream calls no other procedure than its path names: listPets/%screatePet',
  async (dots) => {
    const body = '{"0":"[{\\"name\\":1,\\"categoryId\\":2},\\"Rex\\",3]"}'
    const count = async () => (await service.sql('select id from pets')).length
    const before = await count()
    for (const accept of ['application/json', 'application/jsonl']) {
      const headers = [`trpc-accept: ${accept}`]
      // fetch resolves plain dots itself.
      const line = `POST /trpc/listPets/${dots}createPet?batch=1`
      const request = requestText(line, { key: service.key, headers, body })
      const { answers } = await converse(service.origin, request)
      expect(answers[0]?.body).toContain('NOT_FOUND')
    }
    expect(await count()).toBe(before)
  },
)

test('an empty input and a repeated one are malformed, with connection parameters too', async () => {
  const input = `input=${encodeURIComponent('"[{}]"')}`
  for (const more of ['', '&connectionParams={}']) {
    expect((await get(`listPets?${input}${more}`)).status).toBe(200)
    expectTrpcError(await get(`listPets?input=${more}`), 400, 'PARSE_ERROR')
    expectTrpcError(await get(`listPets?${input}&${input}${more}`), 400, 'PARSE_ERROR')
  }
})

test('a key is accepted in the Authorization header only', async () => {
  const authorization = { authorization: 'Bearer x' }
  const parameters = { authorization: `Bearer ${service.key}`, Authorization: service.key }
  const connection = encodeURIComponent(JSON.stringify(parameters))
  for (const query of [`connectionParams=${connection}`, `key=${service.key}`]) {
    expectTrpcError(await get(`listPets?${query}`, authorization), 401, 'UNAUTHORIZED')
  }
  const cookie = { ...authorization, cookie: `authorization=Bearer ${service.key}` }
  expectTrpcError(await get('listPets', cookie), 401, 'UNAUTHORIZED')
})

test('single calls, batches and streams return the same outcome, with all fields of an error', async () => {
  const url = `${service.origin}/trpc`
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
  const headers = { authorization: `Bearer ${service.key}` }
  const shape = (
    code: string,
    number: number,
    httpStatus: number,
    message: string,
    fields = {},
  ) => ({
    message,
    code: number,
    data: { code, httpStatus, ...fields },
  })
  const refused = (fields: Record<string, string>, message?: string) => {
    const words = Object.entries(fields).map(([name, text]) => `${name || 'The input'} ${text}`)
    return shape('BAD_REQUEST', -32600, 400, message ?? words.join('; '), { fields })
  }
  const surrogate = 'must not contain an unpaired surrogate'
  const id = 'must be an integer from -9223372036854775808 to 9223372036854775807'
  const expected = [
    refused({
      limit: 'must be at least 1',
      status: 'must be one of available, pending, sold',
    }),
    shape('NOT_FOUND', -32004, 404, 'There is no animal with the id 404'),
    refused({ '': 'must be an object' }),
    [],
    // `fields` has the first error of a field, the message all of them.
    refused(
      { name: surrogate, categoryId: id },
      `name ${surrogate}; name must not contain the character NUL; categoryId ${id}`,
    ),
    { id: 1n, name: 'Rex', categoryId: 2n ** 63n - 1n, status: 'sold' },
  ]
  const options = { url, transformer, headers }
  for (const link of [httpLink(options), httpBatchLink(options), httpBatchStreamLink(options)]) {
    expect(await outcomesBy(link)).toEqual(expected)
  }
})

test('connection parameters do not change the response', async () => {
  const input = encodeURIComponent(JSON.stringify('[{"limit":1},1]'))
  const inputs = encodeURIComponent(`{"0":${JSON.stringify('[{"limit":1},0]')}}`)
  for (const [path, status] of [
    [`listPets?input=${input}`, 200],
    ['listPets?', 200],
    [`listPets?batch=1&input=${inputs}`, 400],
    ['getPet?', 400],
    ['createPet?', 405],
    ['nothing?', 404],
  ] as const) {
    const plain = await get(path)
    const answer = await get(`${path}&connectionParams={}`)
    expect([answer.status, answer.body]).toEqual([status, plain.body])
    for (const name of ['allow', 'cache-control', 'content-type', 'vary']) {
      expect(answer.headers.get(name)).toBe(plain.headers.get(name))
    }
  }
})
