/**
 * The interface of the client package: precise types, the requests that it sends, and a hash for
 * query keys with bigints.
 */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { createTRPCClient, httpBatchLink, httpBatchStreamLink, retryLink } from '@trpc/client'
import type { inferRouterInputs, inferRouterOutputs } from '@trpc/server'
import { afterAll, beforeEach, expect, expectTypeOf, test } from 'vitest'
import {
  type ApiError,
  type AppRouter,
  createPetstoreClient,
  httpStatusOf,
  isApiError,
  type NewPet,
  newIdempotencyKey,
  type Pet,
  type PetStatus,
  type PetstoreClient,
  type PetstoreInputs,
  type PetstoreOutputs,
  petstoreLinks,
  queryKeyHashFn,
} from '../support/client.ts'
import { type AppRouter as ServedRouter, transformer } from '../support/router.ts'

type Status = 'available' | 'pending' | 'sold'

test('the types match the API', () => {
  const petstore = createPetstoreClient({ url: 'http://localhost/trpc', apiKey: '' })
  expectTypeOf<PetStatus>().toEqualTypeOf<Status>()
  expectTypeOf<Pick<Pet, 'id' | 'name' | 'categoryId' | 'status'>>().toEqualTypeOf<{
    id: bigint
    name: string
    categoryId: bigint
    status: Status
  }>()
  expectTypeOf<Pick<NewPet, 'name' | 'categoryId' | 'status'>>().toEqualTypeOf<{
    name: string
    categoryId: number | bigint
    status?: Status | undefined
  }>()
  expectTypeOf<Extract<PetstoreInputs['listPets'], object>>().toEqualTypeOf<{
    limit?: number | undefined
    status?: Status | undefined
    cursor?: number | bigint | undefined
  }>()
  expectTypeOf(petstore.getPet.query).parameter(0).toEqualTypeOf<{ petId: number | bigint }>()
  expectTypeOf(petstore.createPet.mutate).parameter(0).toEqualTypeOf<NewPet>()
  expectTypeOf(petstore.listPets.query).returns.resolves.toEqualTypeOf<Pet[]>()
  expectTypeOf(petstore.getPet.query).returns.resolves.toEqualTypeOf<Pet>()
  expectTypeOf(petstore.createPet.mutate).returns.resolves.toEqualTypeOf<Pet>()
  expectTypeOf(isApiError).guards.toEqualTypeOf<ApiError>()
  expectTypeOf<ApiError['status']>().toEqualTypeOf<number>()
  expectTypeOf<'NOT_FOUND' | 'UNAUTHORIZED'>().toExtend<ApiError['code']>()
})

test('the client has every procedure of the router with the same types', () => {
  expectTypeOf<PetstoreInputs>().toEqualTypeOf<inferRouterInputs<ServedRouter>>()
  expectTypeOf<PetstoreOutputs>().toEqualTypeOf<inferRouterOutputs<ServedRouter>>()
})

/** A received request: the names of its calls, its serialized inputs, its headers. */
interface Received {
  method: string
  calls: string[]
  inputs: string
  isBatch: boolean
  headers: Record<string, unknown>
}

const received: Received[] = []
// Returns for each call its index in the request.
const recorder = createServer(async (req, res) => {
  const url = new URL(req.url ?? '', 'http://localhost')
  const calls = url.pathname.slice('/trpc/'.length).split(',')
  const isBatch = url.searchParams.get('batch') === '1'
  const body = await text(req)
  const {
    authorization,
    'idempotency-key': key,
    'content-type': type,
    'x-gateway': gateway,
  } = req.headers
  received.push({
    method: String(req.method),
    calls,
    inputs: url.searchParams.get('input') ?? body,
    isBatch,
    headers: { authorization, key, type, gateway },
  })
  const results = calls.map((_, index) => ({ result: { data: transformer.serialize(index) } }))
  res.setHeader('content-type', 'application/json')
  res.end(JSON.stringify(isBatch ? results : results[0]))
})
await once(recorder.listen(0, '127.0.0.1'), 'listening')
const recorded = `http://127.0.0.1:${(recorder.address() as AddressInfo).port}/trpc` // not a path
beforeEach(() => {
  received.length = 0
})
afterAll(() => {
  recorder.closeAllConnections()
  recorder.close()
})

const recordedClient = () => createPetstoreClient({ url: recorded, apiKey: 'the-key' })
const rex = { name: 'Rex', categoryId: 3n }
/** A creation whose serialized input has this many bytes, with a name of this letter. */
const petOf = (bytes: number, letter: string) => {
  const left = bytes - JSON.stringify(transformer.serialize({ ...rex, name: '' })).length
  const size = Buffer.byteLength(letter)
  return { ...rex, name: letter.repeat(left / size) + 'x'.repeat(left % size) }
}
/** The parameters of a page that take this many bytes in a URL. */
const pageOf = (bytes: number) => {
  const empty = encodeURIComponent(JSON.stringify(transformer.serialize({ status: '' })))
  // The recorder does not validate the status.
  return { status: 'x'.repeat(bytes - empty.length) as 'sold' }
}
const withKey = (idempotencyKey: unknown) => ({ context: { idempotencyKey } })

test('httpStatusOf returns the status of a gateway, and undefined without a response', async () => {
  const responses: [status: number, type: string, body: string][] = [
    [502, 'text/html', '<h1>Bad Gateway</h1>'],
    [204, 'text/plain', ''],
    [500, 'application/json', '{}'],
    [503, 'application/json', ''],
    [503, 'application/json', '{"error":'],
    [502, 'application/json; charset=utf-8', '<html>'],
    [403, 'application/json', '[]'],
    [403, 'application/json', '[null]'],
    [200, 'text/html', '<h1>Log in</h1>'],
    [401, 'application/json', '{"error":"unauthorized"}'],
    [403, 'application/json', '{"error":{"code":403,"message":"Forbidden"}}'],
    [429, 'application/json', '[{"error":"slow down"}]'],
    [502, 'application/json', '{"result":{"data":"x"}}'],
    [502, 'application/json', '{"result":null,"success":false}'],
  ]
  const links = [httpBatchLink, httpBatchStreamLink]
  const left = links.flatMap(() => responses)
  const gateway = createServer((_req, res) => {
    const [status = 0, type = '', body] = left.shift() ?? []
    res.writeHead(status, { 'content-type': type }).end(body)
  }).listen(0, '127.0.0.1')
  await once(gateway, 'listening')
  const { port } = gateway.address() as AddressInfo // not a path
  const url = `http://127.0.0.1:${port}/trpc`
  const clients = links.map((batchLink) => createPetstoreClient({ url, apiKey: 'x', batchLink }))
  const list = (client?: PetstoreClient) =>
    client?.listPets.query().catch((error: unknown) => error)
  for (const client of clients) {
    for (const [status] of responses) {
      // Two calls are a batch.
      for (const error of await Promise.all([list(client), list(client)])) {
        expect([isApiError(error), httpStatusOf(error)]).toEqual([false, status])
      }
    }
  }
  gateway.closeAllConnections()
  gateway.close()
  for (const client of clients) {
    const unreachable = await list(client)
    expect([isApiError(unreachable), httpStatusOf(unreachable)]).toEqual([false, undefined])
  }
  expect(httpStatusOf(new Error('of another kind'))).toBeUndefined()
})

test('httpStatusOf returns undefined for a call that is aborted while its answer arrives', async () => {
  const aborting = new AbortController()
  const petstore = createPetstoreClient({
    ...{ url: recorded, apiKey: 'the-key' },
    async fetch() {
      aborting.abort()
      const start = (body: ReadableStreamDefaultController) => body.error(aborting.signal.reason)
      return new Response(new ReadableStream({ start }))
    },
  })
  const { signal } = aborting
  const error = await petstore.listPets.query({}, { signal }).catch((thrown: unknown) => thrown)
  expect(error).toBeInstanceOf(Error)
  expect(httpStatusOf(error)).toBeUndefined()
})

test('newIdempotencyKey returns another UUID each time', () => {
  const uuid = /^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/
  const keys = Array.from({ length: 50 }, newIdempotencyKey)
  for (const key of keys) expect(key).toMatch(uuid)
  expect(new Set(keys).size).toBe(50)
})

test('the calls of one tick are batched by method, and those with an idempotency key are sent alone', async () => {
  const { listPets, getPet, createPet } = recordedClient()
  await Promise.all([
    listPets.query(),
    getPet.query({ petId: 7n }),
    createPet.mutate(rex),
    createPet.mutate({ ...rex, name: 'Ada' }, withKey(null)),
    createPet.mutate({ ...rex, name: 'Bea' }, withKey('a "key" \\')),
    createPet.mutate(rex, withKey(undefined)),
  ])
  const authorization = 'Bearer the-key'
  const type = 'application/json'
  const input = (value: unknown) => JSON.stringify(transformer.serialize(value))
  expect(received.toSorted((one, other) => one.calls.length - other.calls.length)).toEqual([
    {
      method: 'POST',
      calls: ['createPet'],
      inputs: input({ ...rex, name: 'Bea' }),
      isBatch: false,
      headers: { authorization, key: '"a \\"key\\" \\\\"', type },
    },
    {
      method: 'GET',
      calls: ['listPets', 'getPet'],
      inputs: `{"0":${input(undefined)},"1":${input({ petId: 7n })}}`,
      isBatch: true,
      headers: { authorization, key: undefined, type: undefined },
    },
    {
      method: 'POST',
      calls: ['createPet', 'createPet', 'createPet'],
      inputs: `{"0":${input(rex)},"1":${input({ ...rex, name: 'Ada' })},"2":${input(rex)}}`,
      isBatch: true,
      headers: { authorization, key: undefined, type },
    },
  ])
})

test('an input is sent as it was at the call, also if the caller changes it later in the tick', async () => {
  const { getPet, createPet } = recordedClient()
  const [pet, one] = [{ ...rex }, { petId: 0 }]
  const calls = ['Ada', 'Bea'].flatMap((name, index) => [
    createPet.mutate(Object.assign(pet, { name })),
    createPet.mutate(pet, withKey(name)),
    getPet.query(Object.assign(one, { petId: index })),
  ])
  await Promise.all(calls)
  const input = (value: unknown) => JSON.stringify(transformer.serialize(value))
  const [ada, bea] = ['Ada', 'Bea'].map((name) => input({ ...rex, name }))
  expect(received.map(({ inputs }) => inputs).sort()).toEqual(
    [
      ada,
      bea,
      `{"0":${ada},"1":${bea}}`,
      `{"0":${input({ petId: 0 })},"1":${input({ petId: 1 })}}`,
    ].sort(),
  )
})

test('a retryLink sends the input again as it was at the call', async () => {
  let failures = 1
  const fetchOnce = (to: string, init: RequestInit) => {
    if (failures-- > 0) throw new TypeError('fetch failed')
    return fetch(to, init)
  }
  const { createPet } = createTRPCClient<AppRouter>({
    links: [
      retryLink({ retry: ({ attempts }) => attempts === 1 }),
      ...petstoreLinks({ url: recorded, apiKey: 'the-key', fetch: fetchOnce }),
    ],
  })
  const pet = { ...rex, name: 'Ada' }
  const call = createPet.mutate(pet, withKey('once'))
  pet.name = 'Bea'
  await call
  expect(received.map(({ inputs }) => inputs)).toEqual([
    JSON.stringify(transformer.serialize({ ...rex, name: 'Ada' })),
  ])
})

test('a batch has at most 20 calls', async () => {
  const { listPets, createPet } = recordedClient()
  await Promise.all(
    Array.from({ length: 41 }, () => [listPets.query(), createPet.mutate(rex)]).flat(),
  )
  const counts = (method: string) =>
    received.filter((one) => one.method === method).map(({ calls }) => calls.length)
  expect(counts('GET').sort()).toEqual([1, 20, 20])
  expect(counts('POST').sort()).toEqual([1, 20, 20])
})

/** A query and a creation, each in a batch, and a creation with a key. */
const eachRequest = async ({ listPets, createPet }: PetstoreClient) => {
  await Promise.all([
    listPets.query(),
    createPet.mutate(rex),
    createPet.mutate(rex, withKey('the key')),
  ])
  return received.map(({ headers }) => headers)
}

const own = {
  'X-Gateway': 'open',
  Authorization: 'Basic eDp5',
  'IDEMPOTENCY-KEY': 'for all calls',
}
test.each([
  ['an object', own],
  ['Headers', new Headers(own)],
  ['pairs', Object.entries(own)],
  ['a function', () => own],
  ['an asynchronous function', async () => new Headers(own)],
])(
  '%s adds headers to each request, but not in place of those of the client',
  async (_, headers) => {
    const sent = await eachRequest(
      createPetstoreClient({ url: recorded, apiKey: 'the-key', headers }),
    )
    expect(sent).toHaveLength(3)
    const fromClient = { authorization: 'Bearer the-key', gateway: 'open' }
    for (const each of sent) expect(each).toMatchObject(fromClient)
    expect(sent.map(({ key }) => key).filter(Boolean)).toEqual(['"the key"'])
  },
)

test('a key from a function is asked for at each request', async () => {
  let asked = 0
  const apiKey = async () => `key-${++asked}`
  const { listPets, createPet } = createPetstoreClient({ url: recorded, apiKey })
  await Promise.all([listPets.query(), listPets.query()])
  await createPet.mutate(rex)
  await createPet.mutate(rex, withKey('k'))
  const keys = received.map(({ headers }) => headers.authorization)
  expect(keys).toEqual(['Bearer key-1', 'Bearer key-2', 'Bearer key-3'])
})

test('headers that cannot be made reject the calls of their request alone, and send nothing', async () => {
  let failures = 2
  const headers = async () => {
    if (failures-- > 0) throw new Error('No token')
    return {}
  }
  const { createPet } = createPetstoreClient({ url: recorded, apiKey: 'the-key', headers })
  const calls = [createPet.mutate(rex), createPet.mutate(rex), createPet.mutate(rex, withKey('k'))]
  const outcomes = await Promise.allSettled(calls)
  for (const outcome of outcomes) expect(outcome).toMatchObject({ reason: { message: 'No token' } })
  expect(received).toEqual([])
  expect(await createPet.mutate(rex)).toBe(0)
})

/** A fetch as that of SvelteKit's `load`: its response reads the body anew for each `json`. */
const fetchOfSvelteKit = async (url: string, init: RequestInit) =>
  new Proxy(await fetch(url, init), {
    get(response, name) {
      if (name === 'json') return async () => JSON.parse(await response.text())
      const value: unknown = Reflect.get(response, name, response)
      return typeof value === 'function' ? value.bind(response) : value
    },
  })

test('a fetch of your own sends each request, and its response may have a json of its own', async () => {
  const urls: string[] = []
  const petstore = createPetstoreClient({
    url: recorded,
    apiKey: 'the-key',
    fetch(url, init) {
      expect(this, 'window.fetch accepts no other `this`').toBeUndefined()
      urls.push(url)
      return fetchOfSvelteKit(url, init)
    },
  })
  expect(await eachRequest(petstore)).toHaveLength(3)
  expect(urls).toHaveLength(3)
})

const create = (bytes: number, letter: string) => () =>
  recordedClient().createPet.mutate(petOf(bytes, letter))
const list = (bytes: number) => () => recordedClient().listPets.query(pageOf(bytes))

test.each([
  ['a creation of 3,200 bytes', create(3_200, 'x'), true],
  ['a creation of 3,201 bytes', create(3_201, 'x'), false],
  ['a creation of 3,200 bytes in fewer characters', create(3_200, '😀'), true],
  ['a creation of 3,201 bytes in fewer characters', create(3_201, '😀'), false],
  ['a query of 512 bytes', list(512), true],
  ['a query of 513 bytes', list(513), false],
])('%s is batched only within the size limit', async (_, call, isBatch) => {
  await call()
  expect(received).toHaveLength(1)
  expect(received[0]?.isBatch).toBe(isBatch)
})

const hashes: [key: unknown[], hash: string][] = [
  [[['getPet'], { input: { petId: 7n } }], '[["getPet"],{"input":{"petId":7}}]'],
  [[-(2n ** 53n) + 1n, 2n ** 53n - 1n], '[-9007199254740991,9007199254740991]'],
  [[-(2n ** 53n), 2n ** 53n], '[{"bigint":"-9007199254740992"},{"bigint":"9007199254740992"}]'],
  [[{ b: 1, a: { d: undefined, c: [3, 1, 2] } }], '[{"a":{"c":[3,1,2]},"b":1}]'],
  [[Object.assign(Object.create(null), { b: 1, a: 2 })], '[{"a":2,"b":1}]'],
  [[new Date(0), null, undefined, 'a"', '7'], '["1970-01-01T00:00:00.000Z",null,null,"a\\"","7"]'],
  // The fields of a class instance keep their order.
  [[Object.assign(new (class Place {})(), { b: 1, a: 2 })], '[{"b":1,"a":2}]'],
  [[], '[]'],
]
test.each(hashes.map(([key, hash]) => [hash, key] as const))(
  'queryKeyHashFn returns %s',
  (hash, key) => {
    expect(queryKeyHashFn(key)).toBe(hash)
    // A polyfill, which runs before a replacer of JSON.stringify.
    for (const toJSON of [Number, String]) {
      Object.assign(BigInt.prototype, {
        toJSON() {
          return toJSON(this)
        },
      })
      try {
        expect(queryKeyHashFn(key)).toBe(hash)
      } finally {
        Reflect.deleteProperty(BigInt.prototype, 'toJSON')
      }
    }
  },
)
