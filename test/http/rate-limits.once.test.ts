/** The rate limit: what counts, by key and by IP address, and the 429 response. */
import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { afterEach, expect, test, vi } from 'vitest'
import { createRateLimit } from '../../src/http/rate-limit.ts'
import { pass } from '../support/clock.ts'
import { answerOf, expectRestError, expectTrpcError } from '../support/expect.ts'
import { until } from '../support/instance.ts'
import { newMetrics } from '../support/metrics.ts'
import { countPets } from '../support/pets.ts'
import { keys, serviceForFile } from '../support/service.ts'

const metrics = await newMetrics()
const variables = { RATE_LIMIT: '25', TRUST_PROXY: '1', ...metrics.variables }
const service = await serviceForFile(variables)
afterEach(() => void vi.restoreAllMocks())

let serial = 0

/** A client with a new key and an IP address that no other test uses. */
async function newClient() {
  const { id, key } = await keys.create(service.databaseUrl, 'client')
  const address = `192.0.2.${++serial}`
  /** Calls with the key of this client, or another one; without any, if that is empty. */
  const ask = (path: string, by = key, from = address, init: RequestInit = {}) =>
    answerOf(
      service.fetch(path, {
        ...init,
        headers: { authorization: by && `Bearer ${by}`, 'x-forwarded-for': from },
      }),
    )
  /** Makes a batch of so many calls; returns its status, and the calls that are left in this minute. */
  const use = async (count: number, by = key, from = address) => {
    const names = Array(count).fill('listPets').join()
    const { status, headers } = await ask(`/trpc/${names}?batch=1`, by, from)
    return [status, Number(/; r=(\d+);/.exec(headers.get('ratelimit') ?? '')?.[1])]
  }
  return { id, key, ask, use }
}

const unknownKey = (index = 0) => `petstore_${String(index).padStart(43, 'x')}`

test('both surfaces share a limit, and return RateLimit and Retry-After', async () => {
  const { ask, use } = await newClient()
  const began = Date.now()
  const first = await ask('/v1/pets')
  // The call is counted in the turn that sets the header: none of the minute has passed.
  expect(first.headers.get('ratelimit')).toBe('"25-in-1min"; r=24; t=60')
  expect(first.headers.get('ratelimit-policy')).toBe('"25-in-1min"; q=25; w=60')
  expect((await ask('/trpc/nothing')).headers.get('ratelimit')).toMatch(/r=23\b/)
  expect(await use(20)).toEqual([200, 3])
  expect(await use(3)).toEqual([200, 0])
  const pets = await countPets(service.sql)
  for (const [path, method, check] of [
    ['/v1/pets', 'GET', expectRestError],
    ['/v1/pets', 'POST', expectRestError],
    ['/trpc/listPets', 'GET', expectTrpcError],
    ['/trpc/nothing', 'GET', expectTrpcError],
  ] as const) {
    const body = method === 'POST' ? '{"name":"Rex","categoryId":3}' : null
    const refused = await ask(path, undefined, undefined, { method, body })
    check(refused, 429, 'TOO_MANY_REQUESTS')
    const wait = Number(refused.headers.get('retry-after'))
    // A retry after this time is not too early.
    expect(wait * 1_000).toBeGreaterThanOrEqual(60_000 - (Date.now() - began))
    expect(wait).toBeLessThanOrEqual(60)
    expect(refused.headers.get('ratelimit')).toMatch(/r=0\b/)
    expect(refused.headers.get('cache-control')).toBe('no-store')
    expect(refused.body).toContain(`${wait} seconds`)
  }
  expect(await countPets(service.sql)).toBe(pets)
  expect((await ask('/v1/openapi.json')).status).toBe(200) // needs no key, so it is not limited
})

test('each valid key has its own limit; calls without one count by IP address', async () => {
  const { use } = await newClient()
  const { key: other } = await keys.create(service.databaseUrl, 'other')
  for (const key of [undefined, other]) {
    expect(await use(20, key)).toEqual([200, 5])
    expect(await use(6, key)).toEqual([429, 0])
  }
  expect(await use(20, unknownKey(1))).toEqual([401, 5])
  expect(await use(4, unknownKey(2))).toEqual([401, 1])
  expect(await use(2, '')).toEqual([429, 0])
  expect(await use(2, '', '192.0.2.200')).toEqual([401, 23])
})

test('a client is the address that the proxy saw, in any notation; an IPv6 customer has a /56', async () => {
  const { use } = await newClient()
  for (const [address, same] of [
    ['198.51.100.1', '203.0.113.9, 198.51.100.1'], // the first one was sent by the client
    ['198.51.100.2', '::ffff:198.51.100.2'],
    ['::ffff:198.51.100.3', '::ffff:c633:6403'],
    ['2001:db8:0:1::1', '2001:db8:0:ff:ffff::2'],
    ['64:ff9b::192.0.2.1', '64:ff9b::c000:201'], // RFC 4291, section 2.2
    ['fe80::1%br-12ab', 'fe80::2%eth0.100'], // RFC 4007: a zone
  ] as const) {
    expect([address, ...(await use(1, '', address))]).toEqual([address, 401, 24])
    expect([same, ...(await use(1, '', same))]).toEqual([same, 401, 23])
  }
  expect(await use(1, '', '2001:db8:0:100::1')).toEqual([401, 24])
})

test('a batch counts each call, up to its maximum; a REST path with commas counts once', async () => {
  const { ask, use } = await newClient()
  expect((await ask('/v1/pets/1,2,3,4,5')).headers.get('ratelimit')).toMatch(/r=24\b/)
  // A percent-encoded comma separates calls, too.
  const escaped = await ask('/trpc/listPets%2ClistPets%2clistPets?batch=1')
  expect(escaped.headers.get('ratelimit')).toMatch(/r=21\b/)
  expect(await use(1_000)).toEqual([400, 1])
})

test('calls with a valid key that is not cached are refunded to the IP address, once', async () => {
  const { use } = await newClient()
  expect(await use(3)).toEqual([200, 22])
  expect(await use(1, '')).toEqual([401, 24])
  pass(10_001)
  expect(await use(3)).toEqual([200, 19])
  expect(await use(1, '')).toEqual([401, 23])
  // The key is looked up again although its IP address is over the limit.
  await use(20, '')
  expect(await use(20, '')).toEqual([429, 0])
  pass(20_002)
  expect(await use(1)).toEqual([200, 18])
})

test('beyond the limit of an IP address, unknown keys are not looked up', async () => {
  const { use } = await newClient()
  const misses = () => metrics.read('petstore_key_lookups_total{cache="miss"}')
  const before = await misses()
  const guesses = Array.from({ length: 40 }, (_, index) => use(1, unknownKey(index)))
  const statuses = (await Promise.all(guesses)).map(([status]) => status)
  expect(statuses.filter((status) => status === 401)).toHaveLength(25)
  expect(statuses.filter((status) => status === 429)).toHaveLength(15)
  expect(await misses()).toBe(before + 25)
})

test('a call beyond the limit is logged with the id of its key, cached or looked up again', async () => {
  const { id, use } = await newClient()
  await use(20)
  expect((await use(6))[0]).toBe(429)
  pass(10_001)
  expect((await use(1))[0]).toBe(429)
  const pattern = new RegExp(`"status":429,.*"keyId":"${id}"`)
  const lines = () => service.logged.filter((line) => pattern.test(line))
  await until('both are logged', () => lines().length === 2)
})

test('calls with a revoked key count like those with any invalid key', async () => {
  const { id, use } = await newClient()
  expect((await use(1))[0]).toBe(200)
  await keys.revoke(service.databaseUrl, id)
  pass(10_001)
  expect(await use(20)).toEqual([401, NaN]) // its last look-up had found it valid
  expect(await use(20)).toEqual([401, 5])
  expect(await use(6)).toEqual([429, 0])
})

const res = new ServerResponse(new IncomingMessage(new Socket()))
const newLimit = () => createRateLimit(1, () => false)

test('many new callers evict the oldest counters, not that of one that goes on calling', () => {
  const { countKey } = newLimit()
  const again = (keyId: bigint) => expect(() => countKey(res, keyId, 1))
  for (let keyId = 0n; keyId <= 100_000n; keyId++) {
    countKey(res, keyId, 1)
    if (keyId === 50_000n) again(0n).toThrow('more than 1 calls')
  }
  again(0n).toThrow('more than 1 calls')
  again(1n).not.toThrow()
})

test('a caller that waits as long as the error says is served', () => {
  const { countKey } = newLimit()
  const start = 6_980.21 // from here a minute has 60,000.00000000001 milliseconds
  const clock = vi.spyOn(performance, 'now').mockReturnValue(start)
  countKey(res, 0n, 1)
  for (const [time, seconds] of [
    [0, 60],
    [600, 60],
    [1_000, 59],
    [59_600, 1],
  ] as const) {
    clock.mockReturnValue(start + time)
    expect(() => countKey(res, 0n, 1)).toThrow(`again in ${seconds} seconds`)
  }
  clock.mockReturnValue(start + 60_600)
  expect(() => countKey(res, 0n, 1)).not.toThrow()
})

test('a refund after the end of the minute adds no credit', () => {
  const { countIpAddress, refundIpAddress } = newLimit()
  countIpAddress(res, 1)
  pass(60_001)
  refundIpAddress(res, 1)
  countIpAddress(res, 1)
  expect(() => countIpAddress(res, 1)).toThrow('more than 1 calls')
})
