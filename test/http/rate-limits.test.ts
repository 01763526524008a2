/** The rate limit: what counts, by key and by IP address, and the 429 response. */

import { afterEach, expect, test, vi } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { answerOf, type ErrorAnswer, expectRestError, expectTrpcError } from '../support/expect.ts'
import { newMetrics } from '../support/metrics.ts'
import { countPets } from '../support/pets.ts'
import { keys, type Service, startService } from '../support/service.ts'

let service: Service | undefined
afterEach(async () => {
  vi.restoreAllMocks()
  await service?.stop()
  service = undefined
})

async function start(variables: Record<string, string>) {
  const started = await startService(variables)
  service = started
  const ask = (path: string, headers: Record<string, string> = {}, init: RequestInit = {}) =>
    answerOf(started.fetch(path, { ...init, headers }))
  return { ask, started }
}

/** Puts the clock forward until no key is cached. */
function forgetKeys(): void {
  const now = performance.now.bind(performance)
  vi.spyOn(performance, 'now').mockImplementation(() => now() + 10_001)
}

const unknownKey = (index: number) => `petstore_${String(index).padStart(43, 'x')}`

/** The statuses of this many requests, sent one after the other. */
async function statuses(count: number, ask: () => Promise<ErrorAnswer>): Promise<number[]> {
  const returned: number[] = []
  for (let index = 0; index < count; index++) returned.push((await ask()).status)
  return returned
}

test('without RATE_LIMIT there is no limit, and no RateLimit header', async () => {
  const { ask } = await start({})
  expect(new Set(await statuses(50, () => ask('/v1/pets')))).toEqual(new Set([200]))
  const { headers } = await ask('/v1/pets')
  expect([...headers.keys()].filter((name) => /ratelimit|retry/.test(name))).toEqual([])
})

test('both surfaces share a limit, and return RateLimit and Retry-After', async () => {
  const { ask, started } = await start({ RATE_LIMIT: '3' })
  const began = Date.now()
  const first = await ask('/v1/pets')
  // The call is counted in the turn that sets the header: none of the minute has passed.
  expect(first.headers.get('ratelimit')).toBe('"3-in-1min"; r=2; t=60')
  const policy = first.headers.get('ratelimit-policy')
  expect(policy).toMatch(/^"3-in-1min"; q=3; w=60; pk=:[\w+/]{16}:$/)
  // The partition key identifies the caller: it is the same for all its calls.
  expect((await ask('/trpc/nothing')).headers.get('ratelimit-policy')).toBe(policy)
  const anonymous = await ask('/v1/pets', { authorization: '' })
  expect(anonymous.headers.get('ratelimit-policy')).not.toBe(policy)
  expect((await ask('/trpc/listPets')).headers.get('ratelimit')).toMatch(/r=0\b/)
  for (const [path, check] of [
    ['/v1/pets', expectRestError],
    ['/v1/pets/1', expectRestError],
    ['/trpc/listPets', expectTrpcError],
    ['/trpc/nothing', expectTrpcError],
  ] as const) {
    const refused = await ask(path)
    check(refused, 429, 'TOO_MANY_REQUESTS')
    const wait = Number(refused.headers.get('retry-after'))
    // A retry after this time is not too early.
    expect(wait * 1_000).toBeGreaterThanOrEqual(60_000 - (Date.now() - began))
    expect(wait).toBeGreaterThan(0)
    expect(wait).toBeLessThanOrEqual(60)
    expect(refused.headers.get('ratelimit')).toMatch(/r=0\b/)
    expect(refused.headers.get('cache-control')).toBe('no-store')
    expect(refused.body).toContain(`${wait} seconds`)
  }
  // The REST client validates the 429 response against the OpenAPI document.
  expect((await started.rest('GET', '/pets')).status).toBe(429)
  // A rejected call has no effect.
  const creation = { method: 'POST', body: '{"name":"Rex","categoryId":3}' }
  expectRestError(await ask('/v1/pets', {}, creation), 429, 'TOO_MANY_REQUESTS')
  expect(await countPets(started.sql)).toBe(0)
})

test('each valid key has its own limit; calls without one count by IP address', async () => {
  const { ask, started } = await start({ RATE_LIMIT: '2' })
  const other = { authorization: `Bearer ${(await keys.create(started.databaseUrl, 'other')).key}` }
  expect(await statuses(3, () => ask('/v1/pets'))).toEqual([200, 200, 429])
  expect(await statuses(3, () => ask('/v1/pets', other))).toEqual([200, 200, 429])
  let attempt = 0
  const guess = () => ask('/v1/pets', { authorization: `Bearer ${unknownKey(attempt++)}` })
  expect(await statuses(3, guess)).toEqual([401, 401, 429])
  expect(await statuses(1, () => ask('/v1/pets', { authorization: '' }))).toEqual([429])
  // Requests that need no key are not limited.
  expect(await statuses(5, () => ask('/v1/openapi.json'))).toEqual([200, 200, 200, 200, 200])
})

const from = (address: string) => ({ authorization: '', 'x-forwarded-for': address })

test.each([
  ['no proxy', {}],
  ['another proxy', { TRUST_PROXY: '192.0.2.0/24' }],
])('X-Forwarded-For is ignored if %s is trusted', async (_, variables) => {
  const { ask } = await start({ RATE_LIMIT: '2', ...variables })
  let client = 0
  const spoof = () => ask('/v1/pets', from(`198.51.100.${client++}`))
  expect(await statuses(4, spoof)).toEqual([401, 401, 429, 429])
})

test.for(['1', 'loopback', '127.0.0.1', '127.0.0.0/8'])(
  'TRUST_PROXY=%s counts clients by the IP address that the proxy saw',
  async (trustProxy) => {
    const { ask } = await start({ RATE_LIMIT: '1', TRUST_PROXY: trustProxy })
    const once = async (address: string) => (await ask('/v1/pets', from(address))).status
    expect(await once('192.0.2.1')).toBe(401)
    expect(await once('192.0.2.1')).toBe(429)
    expect(await once('192.0.2.2')).toBe(401)
    // An entry that the client itself sent is ignored.
    expect(await once('198.51.100.7, 192.0.2.1')).toBe(429)
    // The same client over an IPv6 socket.
    expect(await once('::ffff:192.0.2.1')).toBe(429)
    expect(await once('::ffff:192.0.2.3')).toBe(401)
    expect(await once('::ffff:c000:203')).toBe(429)
    // An IPv6 customer has a /56 subnet.
    expect(await once('2001:db8:0:1::1')).toBe(401)
    expect(await once('2001:db8:0:ff:ffff::2')).toBe(429)
    expect(await once('2001:db8:0:100::1')).toBe(401)
    // RFC 4291, section 2.2: an IPv6 address may end in the notation of IPv4. RFC 4007: it may have a zone.
    expect(await once('64:ff9b::192.0.2.1')).toBe(401)
    expect(await once('64:ff9b::c000:201')).toBe(429)
    expect(await once('fe80::1%br-12ab')).toBe(401)
    expect(await once('fe80::2%eth0.100')).toBe(429)
  },
)

test('an invalid X-Forwarded-For from a trusted proxy causes no error and no way round the limit', async () => {
  const { ask } = await start({ RATE_LIMIT: '3', TRUST_PROXY: '1' })
  for (const address of [
    '',
    'unknown',
    'x'.repeat(1_000),
    '1.2.3.4:80',
    '[::1]:80',
    '::ffff:999.1.1.1',
  ]) {
    expect([401, 429]).toContain((await ask('/v1/pets', from(address))).status)
  }
})

test('a batch counts each call; a REST path with commas counts once', async () => {
  const { ask } = await start({ RATE_LIMIT: '9' })
  expect((await ask('/v1/pets/1,2,3,4,5')).headers.get('ratelimit')).toMatch(/r=8\b/)
  const batch = await ask('/trpc/listPets,listPets,listPets?batch=1')
  expect(batch.headers.get('ratelimit')).toMatch(/r=5\b/)
  expect(batch.status).toBe(200)
  // A percent-encoded comma separates calls, too.
  const escaped = '/trpc/listPets%2ClistPets%2clistPets?batch=1'
  expect((await ask(escaped)).status).toBe(200)
  expectTrpcError(await ask(escaped), 429, 'TOO_MANY_REQUESTS')
  expectTrpcError(await ask('/trpc/listPets'), 429, 'TOO_MANY_REQUESTS')
  // Without a key, too.
  const anonymous = await ask('/trpc/listPets,listPets,listPets?batch=1', { authorization: '' })
  expect([anonymous.status, anonymous.headers.get('ratelimit')]).toEqual([
    401,
    expect.stringMatching(/r=6\b/),
  ])
})

test('a batch beyond the limit counts as one of the maximum length', async () => {
  const { ask } = await start({ RATE_LIMIT: '50' })
  const batch = `/trpc/${Array(1_500).fill('listPets').join()}?batch=1`
  for (const left of [30, 10]) {
    const refused = await ask(batch)
    expectTrpcError(refused, 400, 'BAD_REQUEST')
    expect(refused.headers.get('ratelimit')).toMatch(new RegExp(`r=${left}\\b`))
  }
})

test('a batch with a valid key that is not cached refunds all its calls to the IP address', async () => {
  const { ask } = await start({ RATE_LIMIT: '10' })
  expect((await ask('/trpc/listPets,listPets,listPets?batch=1')).status).toBe(200)
  const anonymous = await ask('/v1/pets', { authorization: '' })
  expect(anonymous.headers.get('ratelimit')).toMatch(/r=9\b/)
})

test('beyond the limit of an IP address, unknown keys are not looked up', async () => {
  const metrics = await newMetrics()
  const { ask } = await start({ RATE_LIMIT: '5', ...metrics.variables })
  const guesses = Array.from({ length: 40 }, (_, index) =>
    ask('/v1/pets', { authorization: `Bearer ${unknownKey(index)}` }),
  )
  const returned = (await Promise.all(guesses)).map(({ status }) => status)
  expect(returned.filter((status) => status === 401)).toHaveLength(5)
  expect(returned.filter((status) => status === 429)).toHaveLength(35)
  expect(await metrics.read('petstore_key_lookups_total{cache="miss"}')).toBe(5)
})

test('a valid key is looked up again even when its IP address is over the limit', async () => {
  const { ask } = await start({ RATE_LIMIT: '3' })
  expect(await statuses(1, () => ask('/v1/pets'))).toEqual([200])
  const anonymous = { authorization: '' }
  expect(await statuses(4, () => ask('/v1/pets', anonymous))).toEqual([401, 401, 401, 429])
  forgetKeys()
  const again = await ask('/v1/pets')
  expect([again.status, again.headers.get('ratelimit')]).toEqual([
    200,
    expect.stringContaining('; r=1; '),
  ])
})

test('a second look-up of a valid key refunds nothing to the IP address', async () => {
  const { ask } = await start({ RATE_LIMIT: '9' })
  expect((await ask('/v1/pets')).status).toBe(200)
  const left = async () =>
    (await ask('/v1/pets', { authorization: '' })).headers.get('ratelimit')?.match(/r=\d/)?.[0]
  expect([await left(), await left()]).toEqual(['r=8', 'r=7'])
  forgetKeys()
  expect((await ask('/v1/pets')).status).toBe(200)
  expect(await left()).toBe('r=6')
})

test('a call beyond the limit is logged with the id of its key, cached or looked up again', async () => {
  const { ask, started } = await start({ RATE_LIMIT: '1' })
  expect(await statuses(2, () => ask('/v1/pets'))).toEqual([200, 429])
  const now = performance.now.bind(performance)
  vi.spyOn(performance, 'now').mockImplementation(() => now() + 10_001)
  expect((await ask('/v1/pets')).status).toBe(429)
  const lines = () => started.logged.filter((line) => /"status":429,.*"keyId":"\d+"/.test(line))
  await eventually(() => expect(lines()).toHaveLength(2))
})

test('calls with a revoked key count like those with any invalid key', async () => {
  const { ask, started } = await start({ RATE_LIMIT: '3' })
  const { id, key } = await keys.create(started.databaseUrl, 'shop')
  const use = () => ask('/v1/pets', { authorization: `Bearer ${key}` })
  expect((await use()).status).toBe(200)
  await keys.revoke(started.databaseUrl, id)
  forgetKeys()
  const returned = await statuses(6, use)
  expect(returned[0]).toBe(401)
  expect(returned.at(-1)).toBe(429)
  expect(new Set(returned)).toEqual(new Set([401, 429]))
})
