/** How many calls a caller may make, and what those hear who made more. */

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

type Ask = (
  path: string,
  headers?: Record<string, string>,
  init?: RequestInit,
) => Promise<ErrorAnswer>

async function start(variables: Record<string, string>): Promise<{ ask: Ask; started: Service }> {
  const started = await startService(variables)
  service = started
  const ask: Ask = (path, headers = {}, init = {}) =>
    answerOf(
      fetch(started.origin + path, {
        ...init,
        headers: { authorization: `Bearer ${started.key}`, ...headers },
      }),
    )
  return { ask, started }
}

/** The statuses of so many requests, one after the other. */
async function statuses(count: number, ask: () => Promise<ErrorAnswer>): Promise<number[]> {
  const given: number[] = []
  for (let index = 0; index < count; index++) given.push((await ask()).status)
  return given
}

test('without RATE_LIMIT there is no limit and no header of one', async () => {
  const { ask } = await start({})
  expect(new Set(await statuses(50, () => ask('/v1/pets')))).toEqual(new Set([200]))
  const { headers } = await ask('/v1/pets')
  expect([...headers.keys()].filter((name) => /ratelimit|retry/.test(name))).toEqual([])
})

test('both surfaces count together, and both say what is left and when to come back', async () => {
  const { ask, started } = await start({ RATE_LIMIT: '3' })
  const began = Date.now()
  const first = await ask('/v1/pets')
  // It is counted and told in one turn, so that no millisecond of the minute is over.
  expect(first.headers.get('ratelimit')).toBe('"3-in-1min"; r=2; t=60')
  const policy = first.headers.get('ratelimit-policy')
  expect(policy).toMatch(/^"3-in-1min"; q=3; w=60; pk=:[\w+/]{16}:$/)
  // The partition is the caller's: the same for all its calls, and another for each other caller.
  expect((await ask('/trpc/nothing')).headers.get('ratelimit-policy')).toBe(policy)
  const stranger = await ask('/v1/pets', { authorization: '' })
  expect(stranger.headers.get('ratelimit-policy')).not.toBe(policy)
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
    // Who comes back then is not too early.
    expect(wait * 1_000).toBeGreaterThanOrEqual(60_000 - (Date.now() - began))
    expect(wait).toBeGreaterThan(0)
    expect(wait).toBeLessThanOrEqual(60)
    expect(refused.headers.get('ratelimit')).toMatch(/r=0\b/)
    expect(refused.headers.get('cache-control')).toBe('no-store')
    expect(refused.body).toContain(`${wait} seconds`)
  }
  // What is documented holds for this answer too.
  expect((await started.rest('GET', '/pets')).status).toBe(429)
  // A refused call does nothing.
  const json = { 'content-type': 'application/json' }
  const body = '{"name":"Rex","categoryId":3}'
  expectRestError(await ask('/v1/pets', json, { method: 'POST', body }), 429, 'TOO_MANY_REQUESTS')
  expect(await countPets(started.sql)).toBe(0)
})

test('keys count for themselves; wrong keys, and none, count by address', async () => {
  const { ask, started } = await start({ RATE_LIMIT: '2' })
  const other = { authorization: `Bearer ${(await keys.create(started.databaseUrl, 'other')).key}` }
  expect(await statuses(3, () => ask('/v1/pets'))).toEqual([200, 200, 429])
  expect(await statuses(3, () => ask('/v1/pets', other))).toEqual([200, 200, 429])
  let attempt = 0
  const guess = () =>
    ask('/v1/pets', { authorization: `Bearer petstore_${String(attempt++).padStart(43, 'x')}` })
  expect(await statuses(3, guess)).toEqual([401, 401, 429])
  expect(await statuses(1, () => ask('/v1/pets', { authorization: '' }))).toEqual([429])
  // … and what needs no key is not limited.
  expect(await statuses(5, () => ask('/v1/openapi.json'))).toEqual([200, 200, 200, 200, 200])
})

test('every call of a batch counts', async () => {
  const { ask } = await start({ RATE_LIMIT: '5' })
  expect((await ask('/trpc/listPets,listPets,listPets?batch=1')).status).toBe(200)
  // An escaped comma is a comma.
  expectTrpcError(
    await ask('/trpc/listPets%2ClistPets%2clistPets?batch=1'),
    429,
    'TOO_MANY_REQUESTS',
  )
  expectTrpcError(await ask('/trpc/listPets'), 429, 'TOO_MANY_REQUESTS')
})

const from = (address: string) => ({ authorization: '', 'x-forwarded-for': address })

test('X-Forwarded-For counts for nothing unless a proxy is trusted', async () => {
  const { ask } = await start({ RATE_LIMIT: '2' })
  let client = 0
  const spoof = () => ask('/v1/pets', from(`192.0.2.${client++}`))
  expect(await statuses(4, spoof)).toEqual([401, 401, 429, 429])
})

test.for(['1', 'loopback', '127.0.0.1', '127.0.0.0/8'])(
  'behind the proxy %s clients count by the address that it saw',
  async (trustProxy) => {
    const { ask } = await start({ RATE_LIMIT: '1', TRUST_PROXY: trustProxy })
    const once = async (address: string) => (await ask('/v1/pets', from(address))).status
    expect(await once('192.0.2.1')).toBe(401)
    expect(await once('192.0.2.1')).toBe(429)
    expect(await once('192.0.2.2')).toBe(401)
    // What the client itself wrote in front changes nothing.
    expect(await once('198.51.100.7, 192.0.2.1')).toBe(429)
    // The same client over a socket that speaks IPv6.
    expect(await once('::ffff:192.0.2.1')).toBe(429)
    expect(await once('::ffff:192.0.2.3')).toBe(401)
    expect(await once('::ffff:c000:203')).toBe(429)
    // A customer of IPv6 has a subnet of 56 bits.
    expect(await once('2001:db8:0:1::1')).toBe(401)
    expect(await once('2001:db8:0:ff:ffff::2')).toBe(429)
    expect(await once('2001:db8:0:100::1')).toBe(401)
  },
)

test('a proxy that is not trusted says nothing', async () => {
  const { ask } = await start({ RATE_LIMIT: '1', TRUST_PROXY: '192.0.2.0/24' })
  expect((await ask('/v1/pets', from('198.51.100.1'))).status).toBe(401)
  expect((await ask('/v1/pets', from('198.51.100.2'))).status).toBe(429)
})

test('nonsense from a trusted proxy is no way round the limit, and no error', async () => {
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

test('a batch counts once for each call, an address of REST once for all its commas', async () => {
  const { ask } = await start({ RATE_LIMIT: '10' })
  expect((await ask('/v1/pets/1,2,3,4,5')).headers.get('ratelimit')).toMatch(/r=9\b/)
  const batch = await ask('/trpc/listPets,listPets,listPets?batch=1')
  expect(batch.headers.get('ratelimit')).toMatch(/r=6\b/)
})

test('a batch that is too long counts as the longest that is none', async () => {
  const { ask } = await start({ RATE_LIMIT: '50' })
  const batch = `/trpc/${Array(1_500).fill('listPets').join()}?batch=1`
  for (const left of [30, 10]) {
    const refused = await ask(batch)
    expectTrpcError(refused, 400, 'BAD_REQUEST')
    expect(refused.headers.get('ratelimit')).toMatch(new RegExp(`r=${left}\\b`))
  }
})

test('a batch with a valid key that is new gives its address all of its calls back', async () => {
  const { ask } = await start({ RATE_LIMIT: '10' })
  expect((await ask('/trpc/listPets,listPets,listPets?batch=1')).status).toBe(200)
  const stranger = await ask('/v1/pets', { authorization: '' })
  expect(stranger.headers.get('ratelimit')).toMatch(/r=9\b/)
})

const wrongKey = (index: number) => `petstore_${String(index).padStart(43, 'x')}`

test('beyond the limit of an address no unknown key is looked for', async () => {
  const metrics = await newMetrics()
  const { ask } = await start({ RATE_LIMIT: '5', ...metrics.variables })
  const guesses = Array.from({ length: 40 }, (_, index) =>
    ask('/v1/pets', { authorization: `Bearer ${wrongKey(index)}` }),
  )
  const given = (await Promise.all(guesses)).map(({ status }) => status)
  expect(given.filter((status) => status === 401)).toHaveLength(5)
  expect(given.filter((status) => status === 429)).toHaveLength(35)
  expect(await metrics.read('petstore_key_lookups_total{cache="miss"}')).toBe(5)
})

test('a valid caller is not counted with its address, nor stopped by what others there do', async () => {
  const { ask } = await start({ RATE_LIMIT: '4' })
  expect(await statuses(3, () => ask('/v1/pets'))).toEqual([200, 200, 200])
  let attempt = 0
  const guess = () => ask('/v1/pets', { authorization: `Bearer ${wrongKey(attempt++)}` })
  expect(await statuses(5, guess)).toEqual([401, 401, 401, 401, 429])
  expect(await statuses(2, () => ask('/v1/pets'))).toEqual([200, 429])
})

test('a key that works and is looked up again does not pay for what others did at its address', async () => {
  const { ask } = await start({ RATE_LIMIT: '3' })
  expect(await statuses(1, () => ask('/v1/pets'))).toEqual([200])
  const nobody = { authorization: '' }
  expect(await statuses(4, () => ask('/v1/pets', nobody))).toEqual([401, 401, 401, 429])
  const now = performance.now.bind(performance)
  vi.spyOn(performance, 'now').mockImplementation(() => now() + 10_001)
  const again = await ask('/v1/pets')
  expect([again.status, again.headers.get('ratelimit')]).toEqual([
    200,
    expect.stringContaining('; r=1; '),
  ])
})

test('a key that is looked up again gives its address nothing back', async () => {
  const { ask } = await start({ RATE_LIMIT: '9' })
  expect((await ask('/v1/pets')).status).toBe(200)
  const left = async () =>
    (await ask('/v1/pets', { authorization: '' })).headers.get('ratelimit')?.match(/r=\d/)?.[0]
  expect([await left(), await left()]).toEqual(['r=8', 'r=7'])
  const now = performance.now.bind(performance)
  vi.spyOn(performance, 'now').mockImplementation(() => now() + 10_001)
  expect((await ask('/v1/pets')).status).toBe(200)
  expect(await left()).toBe('r=6')
})

test('a key that was revoked is counted like any other that does not work', async () => {
  const { ask, started } = await start({ RATE_LIMIT: '3' })
  const { id, key } = await keys.create(started.databaseUrl, 'shop')
  const use = () => ask('/v1/pets', { authorization: `Bearer ${key}` })
  expect((await use()).status).toBe(200)
  await keys.revoke(started.databaseUrl, id)
  // Ten seconds later it is looked up again; waiting for them would show no more.
  const now = performance.now.bind(performance)
  vi.spyOn(performance, 'now').mockImplementation(() => now() + 10_001)
  const given = await statuses(6, use)
  expect(given[0]).toBe(401)
  expect(given.at(-1)).toBe(429)
  expect(new Set(given)).toEqual(new Set([401, 429]))
})

test('what a proxy calls an address and is none does not reach the log', async () => {
  const { ask, started } = await start({ TRUST_PROXY: '1' })
  const { logged } = started
  const key = `petstore_${'a'.repeat(43)}`
  expect((await ask('/v1/pets', from(key))).status).toBe(401)
  const lines = () => logged.filter((line) => line.includes('"listPets"'))
  await eventually(() => expect(lines()).toHaveLength(1))
  expect(lines().join()).toContain('"address":"127.0.0.1"')
  expect(logged.join()).not.toContain(key)
})
