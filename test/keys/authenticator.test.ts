/** API keys on the way of every request: what they cost, and when they end. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest'
import { KEY_LIFETIME } from '../../src/keys/authenticator.ts'
import { newKey } from '../../src/keys/format.ts'
import { createKey, listKeys, revokeKey, rotateKey } from '../../src/keys/store.ts'
import { type Service, startService, trpcClient } from '../support/service.ts'

let service: Service
beforeAll(async () => {
  service = await startService()
})
afterAll(() => service.stop())

/** Puts the clocks forward. Timers, the network and the database run as ever. */
let pass: (milliseconds: number) => void
beforeEach(() => {
  let ahead = 0
  pass = (milliseconds) => {
    ahead += milliseconds
  }
  for (const clock of [Date, performance]) {
    const now = clock.now.bind(clock)
    vi.spyOn(clock, 'now').mockImplementation(() => now() + ahead)
  }
})
afterEach(() => void vi.restoreAllMocks())

const statusWith = async (key: string) => {
  const headers = { authorization: `Bearer ${key}` }
  return (await service.rest('GET', '/pets', { headers })).status
}
const keyQueries = () => service.queries.filter(({ sql }) => /from .api_keys/.test(sql)).length

test('a valid key costs one query, however many requests come on both surfaces', async () => {
  const { key } = await createKey(service.db, 'many')
  const before = keyQueries()
  const { listPets } = trpcClient(service.origin, key)
  for (let round = 0; round < 25; round++) {
    expect(await statusWith(key)).toBe(200)
    expect(await listPets.query()).toEqual([])
  }
  expect(keyQueries() - before).toBe(1)
})

test('a key is looked up again when its life in memory is over', async () => {
  const { key } = await createKey(service.db, 'again')
  await statusWith(key)
  const before = keyQueries()
  pass(KEY_LIFETIME - 1_000)
  await statusWith(key)
  expect(keyQueries() - before).toBe(0)
  pass(2_000)
  await statusWith(key)
  expect(keyQueries() - before).toBe(1)
})

test('a flood of wrong keys makes queries larger, not more: one in 10 ms at most', async () => {
  const before = keyQueries()
  const start = performance.now()
  const keys = Array.from({ length: 400 }, () => newKey().key)
  const statuses = await Promise.all(keys.map(statusWith))
  expect(new Set(statuses)).toEqual(new Set([401]))
  const most = (performance.now() - start) / 9 + 2 // a timer may be early by a millisecond
  expect(keyQueries() - before).toBeLessThan(Math.min(most, keys.length))
})

test('what cannot be a key is no query at all', async () => {
  const before = keyQueries()
  for (const text of ['x', 'petstore_', `petstore_${'A'.repeat(44)}`, 'A'.repeat(52)]) {
    expect(await statusWith(text)).toBe(401)
  }
  expect(keyQueries()).toBe(before)
})

test('unknown, expired and revoked are answered alike', async () => {
  const expired = await createKey(service.db, 'expired', new Date(Date.now() - 1))
  const revoked = await createKey(service.db, 'revoked')
  await revokeKey(service.db, revoked.id)
  const differing = new Set(['date', 'x-request-id'])
  const answers = []
  for (const { key } of [newKey(), expired, revoked]) {
    const headers = { authorization: `Bearer ${key}` }
    const { status, text, headers: sent } = await service.rest('GET', '/pets', { headers })
    answers.push([status, text, ...[...sent].filter(([name]) => !differing.has(name))])
  }
  expect(answers[0]?.[0]).toBe(401)
  expect(answers[1]).toEqual(answers[0])
  expect(answers[2]).toEqual(answers[0])
})

test('a key in use ends when it expires, not later', async () => {
  const { key } = await createKey(service.db, 'short', new Date(Date.now() + 5_000))
  expect(await statusWith(key)).toBe(200)
  pass(4_000)
  expect(await statusWith(key)).toBe(200)
  pass(1_000)
  expect(await statusWith(key)).toBe(401)
})

test(`a revoked key in use ends within ${KEY_LIFETIME / 1000} seconds`, async () => {
  const { id, key } = await createKey(service.db, 'revoked in use')
  expect(await statusWith(key)).toBe(200)
  expect(await revokeKey(service.db, id)).toBe(true)
  pass(KEY_LIFETIME + 1)
  expect(await statusWith(key)).toBe(401)
})

test('the key in place of one that expires lives as long as that was to', async () => {
  const lifetime = 90 * 86_400_000
  const old = await createKey(service.db, 'expiring', new Date(Date.now() + lifetime))
  const fresh = await rotateKey(service.db, old.id, new Date(Date.now() + 60_000))
  const { expiresAt } = (await listKeys(service.db)).find(({ id }) => id === fresh?.id) ?? {}
  expect(Math.abs((expiresAt?.getTime() ?? 0) - Date.now() - lifetime)).toBeLessThan(5_000)
})

test('a rotated key works on for the grace period, the new one at once', async () => {
  const old = await createKey(service.db, 'rotated')
  const fresh = await rotateKey(service.db, old.id, new Date(Date.now() + 60_000))
  expect(await statusWith(String(fresh?.key))).toBe(200)
  expect(await statusWith(old.key)).toBe(200)
  pass(60_001)
  expect(await statusWith(old.key)).toBe(401)
  expect(await statusWith(String(fresh?.key))).toBe(200)
})
