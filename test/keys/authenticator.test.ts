/** API keys in each request: the cost of a look-up, expiry and revocation. */
import { randomBytes } from 'node:crypto'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { newDatabase } from '../support/database.ts'
import { addKey } from '../support/instance.ts'
import { newMetrics } from '../support/metrics.ts'
import { keys, serviceForFile, trpcClient } from '../support/service.ts'

/** Milliseconds that a valid key stays cached: a revoked key works for at most this long. */
const REMEMBERED = 10_000

const metrics = await newMetrics()
const database = await newDatabase()
const service = await serviceForFile(metrics.variables, { database })

/** Lets time pass for the cache; timers, the network and the database are not affected. */
let pass: (milliseconds: number) => void
beforeEach(() => {
  let ahead = 0
  pass = (milliseconds) => {
    ahead += milliseconds
  }
  const now = performance.now.bind(performance)
  vi.spyOn(performance, 'now').mockImplementation(() => now() + ahead)
})
afterEach(() => void vi.restoreAllMocks())

const statusWith = async (key: string) => {
  const headers = { authorization: `Bearer ${key}` }
  return (await service.rest('GET', '/pets', { headers })).status
}

const createKey = (name: string, lifetime?: number) =>
  keys.create(service.databaseUrl, name, lifetime)
const unknownKey = () => `petstore_${randomBytes(32).toString('base64url')}`

/** The number of key look-ups so far: in the database (misses), and from the cache (hits). */
const lookUps = async () => ({
  misses: await metrics.read('petstore_key_lookups_total{cache="miss"}'),
  hits: await metrics.read('petstore_key_lookups_total{cache="hit"}'),
})

/** The look-ups that `call` causes. */
async function lookUpsOf(call: () => Promise<unknown>) {
  const before = await lookUps()
  await call()
  const after = await lookUps()
  return { misses: after.misses - before.misses, hits: after.hits - before.hits }
}

test('many requests with one valid key, on both surfaces, cause one look-up', async () => {
  const { key } = await createKey('many')
  const { listPets } = trpcClient(service.origin, key)
  const cost = await lookUpsOf(async () => {
    for (let round = 0; round < 25; round++) {
      expect(await statusWith(key)).toBe(200)
      expect(await listPets.query()).toEqual([])
    }
  })
  expect(cost).toEqual({ misses: 1, hits: 49 })
})

test('the cache holds the keys of many concurrent callers', async () => {
  const many: string[] = []
  for (let caller = 0; caller < 100; caller++) many.push(await addKey(service.sql))
  const askAll = async () => {
    expect(new Set(await Promise.all(many.map(statusWith)))).toEqual(new Set([200]))
  }
  expect(await lookUpsOf(askAll)).toEqual({ misses: 100, hits: 0 })
  expect(await lookUpsOf(askAll)).toEqual({ misses: 0, hits: 100 })
})

test('a malformed key causes no look-up', async () => {
  const cost = await lookUpsOf(async () => {
    for (const text of ['x', 'petstore_', `petstore_${'A'.repeat(44)}`, 'A'.repeat(52)]) {
      expect(await statusWith(text)).toBe(401)
    }
  })
  expect(cost).toEqual({ misses: 0, hits: 0 })
})

test('unknown, expired and revoked keys get the same response and cause the same look-ups', async () => {
  const expired = await createKey('expired', 0)
  const revoked = await createKey('revoked')
  await keys.revoke(service.databaseUrl, revoked.id)
  const differing = new Set(['date', 'x-request-id'])
  const answers: unknown[] = []
  for (const key of [unknownKey(), expired.key, revoked.key]) {
    const headers = { authorization: `Bearer ${key}` }
    const { status, text, headers: sent } = await service.rest('GET', '/pets', { headers })
    expect(status).toBe(401)
    answers.push([text, ...[...sent].filter(([name]) => !differing.has(name))])
    // Invalid keys are not cached: each request with one waits for a look-up.
    expect(await lookUpsOf(() => statusWith(key))).toEqual({ misses: 1, hits: 0 })
  }
  expect(answers[1]).toEqual(answers[0])
  expect(answers[2]).toEqual(answers[0])
})

/** Lets time pass for a key: for the cache, and for the database by earlier times in its row. */
async function age(id: bigint, milliseconds: number): Promise<void> {
  pass(milliseconds)
  await service.sql(
    'update api_keys set expires_at = expires_at - ?, grace_until = grace_until - ? where id = ?',
    [milliseconds, milliseconds, id],
  )
}

test('a cached key is looked up again after ten seconds, and works until it expires', async () => {
  const { id, key } = await createKey('short', 3 * REMEMBERED + 5_000)
  expect(await lookUpsOf(() => statusWith(key))).toEqual({ misses: 1, hits: 0 })
  await age(id, REMEMBERED - 1_000)
  expect(await lookUpsOf(() => statusWith(key))).toEqual({ misses: 0, hits: 1 })
  await age(id, 1_000)
  expect(await lookUpsOf(() => statusWith(key))).toEqual({ misses: 1, hits: 0 })
  await age(id, 2 * REMEMBERED)
  expect(await lookUpsOf(() => statusWith(key))).toEqual({ misses: 1, hits: 0 })
  // Five seconds are left, of which the calls have taken a few milliseconds.
  await age(id, 5_000)
  expect(await statusWith(key)).toBe(401)
})

test('a cached key stops working within ten seconds of its revocation', async () => {
  const { id, key } = await createKey('revoked in use')
  expect(await statusWith(key)).toBe(200)
  await keys.revoke(service.databaseUrl, id)
  pass(REMEMBERED)
  expect(await statusWith(key)).toBe(401)
})

test('a rotated key, also a cached one, works until its grace period ends, the new key at once', async () => {
  const old = await createKey('rotated')
  const fresh = await keys.rotate(service.databaseUrl, old.id, 60_000)
  expect(await statusWith(fresh.key)).toBe(200)
  await age(old.id, 55_000)
  expect(await statusWith(old.key)).toBe(200)
  await age(old.id, 5_000)
  expect(await statusWith(old.key)).toBe(401)
  expect(await statusWith(fresh.key)).toBe(200)
})

test('a time in the row of a revoked key says nothing', async () => {
  const { id, key } = await createKey('revoked')
  await service.sql('update api_keys set revoked_at = 9000000000000000000 where id = ?', [id])
  expect(await statusWith(key)).toBe(401)
})

test('a lost key whose id a restore gives out again shares no Idempotency-Key', async () => {
  const lost = await createKey('lost')
  const post = (key: string) =>
    service.rest('POST', '/pets', {
      headers: { authorization: `Bearer ${key}`, 'idempotency-key': '"restored"' },
      body: { name: 'Rex', categoryId: 1 },
    })
  expect((await post(lost.key)).status).toBe(201) // the cache has the key
  await service.sql('delete from api_keys where id = ?', [lost.id])
  await service.sql("delete from idempotency_keys where operation = 'createPet'")
  const fresh = await createKey('fresh')
  await service.sql('update api_keys set id = ? where id = ?', [lost.id, fresh.id])
  const [one, other] = [await post(lost.key), await post(fresh.key)]
  expect([one.status, other.status]).toEqual([201, 201])
  expect(other.text).not.toBe(one.text)
})
