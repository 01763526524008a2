/** API keys in each request: the cost of a look-up, expiry, revocation, and the time of the last use. */
import { randomBytes } from 'node:crypto'
import { setTimeout } from 'node:timers/promises'
import { afterAll, expect, test, vi } from 'vitest'
import { pass } from '../support/clock.ts'
import { engine, newDatabase } from '../support/database.ts'
import { addKey, running, until } from '../support/instance.ts'
import { newMetrics } from '../support/metrics.ts'
import { proxied } from '../support/proxy.ts'
import { keys, serviceForFile, startService, trpcClient } from '../support/service.ts'
import { openSql } from '../support/sql.ts'

/** Milliseconds that a valid key stays cached: a revoked key works for at most this long. */
const REMEMBERED = 10_000
const MINUTE = 60_000

// The test says when a minute is over.
vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
const metrics = await newMetrics()
const database = await newDatabase()
const service = await serviceForFile(metrics.variables, { database })
const { sql } = service
afterAll(() => void vi.useRealTimers())

const statusAt = async ({ origin }: { origin: string }, key: string) =>
  (await fetch(`${origin}/v1/pets`, { headers: { authorization: `Bearer ${key}` } })).status
const statusWith = (key: string) => statusAt(service, key)
const createKey = (name: string, lifetime?: number) => keys.create(database.url, name, lifetime)
const unknownKey = () => `petstore_${randomBytes(32).toString('base64url')}`

/** The look-ups that `call` causes: in the database (misses), and from the cache (hits). */
async function lookUpsOf(call: () => Promise<unknown>) {
  const read = (cache: string) => metrics.read(`petstore_key_lookups_total{cache="${cache}"}`)
  const [misses, hits] = [await read('miss'), await read('hit')]
  await call()
  return { misses: (await read('miss')) - misses, hits: (await read('hit')) - hits }
}

test('many requests with one valid key, on both surfaces, cause one look-up', async () => {
  const { key } = await createKey('many')
  const { listPets } = trpcClient(service.origin, key)
  const cost = await lookUpsOf(async () => {
    for (let round = 0; round < 5; round++) {
      expect(await statusWith(key)).toBe(200)
      expect(await listPets.query()).toEqual([])
    }
  })
  expect(cost).toEqual({ misses: 1, hits: 9 })
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
  await keys.revoke(database.url, revoked.id)
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

test('a cached key is looked up again after ten seconds, and works until it expires', async () => {
  const { id, key } = await createKey('short', 3 * REMEMBERED + 5_000)
  let passed = 0
  /** Lets time pass for the cache, and for the database by an earlier time in the row of the key. */
  const age = async (milliseconds: number) => {
    passed += milliseconds
    pass(passed)
    await sql('update api_keys set expires_at = expires_at - ? where id = ?', [milliseconds, id])
  }
  const cost = () => lookUpsOf(async () => expect(await statusWith(key)).toBe(200))
  expect(await cost()).toEqual({ misses: 1, hits: 0 })
  await age(REMEMBERED - 1_000)
  expect(await cost()).toEqual({ misses: 0, hits: 1 })
  await age(1_000)
  expect(await cost()).toEqual({ misses: 1, hits: 0 })
  await age(2 * REMEMBERED)
  expect(await cost()).toEqual({ misses: 1, hits: 0 })
  // Five seconds are left, of which the calls have taken a few milliseconds.
  await age(5_000)
  expect(await statusWith(key)).toBe(401)
})

test('a cached key stops working within ten seconds of its revocation', async () => {
  const { id, key } = await createKey('revoked in use')
  expect(await statusWith(key)).toBe(200)
  await keys.revoke(database.url, id)
  pass(REMEMBERED)
  expect(await statusWith(key)).toBe(401)
})

test('a failed look-up returns an error to each request, and is not cached', async () => {
  const { key } = await createKey('failed')
  await sql('alter table api_keys rename to elsewhere')
  // A request that does not learn of the failure would time out with 503.
  const all = [key, ...Array.from({ length: 20 }, unknownKey)]
  expect(await Promise.all(all.map(statusWith))).toEqual(all.map(() => 500))
  await sql('alter table elsewhere rename to api_keys')
  expect(await statusWith(key)).toBe(200)
})

test('a lost key whose id a restore gives out again shares no Idempotency-Key', async () => {
  const lost = await createKey('lost')
  const post = (key: string) =>
    service.rest('POST', '/pets', {
      headers: { authorization: `Bearer ${key}`, 'idempotency-key': '"restored"' },
      body: { name: 'Rex', categoryId: 1 },
    })
  expect((await post(lost.key)).status).toBe(201) // the cache has the key
  await sql('delete from api_keys where id = ?', [lost.id])
  await sql('delete from idempotency_keys')
  const fresh = await createKey('fresh')
  await sql('update api_keys set id = ? where id = ?', [lost.id, fresh.id])
  const [one, other] = [await post(lost.key), await post(fresh.key)]
  expect([one.status, other.status]).toEqual([201, 201])
  expect(other.text).not.toBe(one.text)
})

// The embedded engine answers synchronously.
test.runIf(engine === 'mysql')(
  'a late answer of the database does not extend the cache entry of a revoked key',
  async () => {
    const { proxy, url } = await proxied(database.url)
    const slow = await startService({}, { database: { url, remove: async () => {} } })
    await statusAt(slow, slow.key) // opens the connection
    const { id, key } = await createKey('shop')
    const answered = proxy.holdAt(/^select .*from `api_keys`/s)
    const first = statusAt(slow, key)
    const release = await answered // the database has answered that the key is valid
    await keys.revoke(database.url, id)
    pass(REMEMBERED + 1)
    release()
    expect(await first).toBe(200)
    expect(await statusAt(slow, key)).toBe(401)
    await slow.stop()
    await proxy.cut()
  },
)

/** When a key was last used, in milliseconds since 1970; undefined for never. */
async function lastUsed(id: bigint): Promise<number | undefined> {
  const [row] = await sql('select last_used_at from api_keys where id = ?', [id])
  return row?.last_used_at === null ? undefined : Number(row?.last_used_at)
}
const storedSince = (id: bigint, time: number) =>
  until('it is stored', async () => ((await lastUsed(id)) ?? 0) >= time)

test('the time of the last use is stored once a minute, not for each request', async () => {
  const [shop, other] = [await createKey('shop'), await createKey('other')]
  const began = Date.now()
  for (let request = 0; request < 3; request++) expect(await statusWith(shop.key)).toBe(200)
  vi.advanceTimersByTime(MINUTE - 1_000)
  await setTimeout(50)
  expect(await lastUsed(shop.id)).toBeUndefined()
  vi.advanceTimersByTime(1_000)
  await storedSince(shop.id, began)
  expect(await lastUsed(other.id)).toBeUndefined()
  // A stored use is not stored again, neither before the use of another key nor with it.
  await sql('update api_keys set last_used_at = 1 where id = ?', [shop.id])
  vi.advanceTimersByTime(10 * MINUTE)
  await statusWith(other.key)
  vi.advanceTimersByTime(MINUTE)
  await storedSince(other.id, began)
  expect(await lastUsed(shop.id)).toBe(1)
})

// The embedded engine stores them synchronously.
test.runIf(engine === 'mysql')('uses during an update are stored by the next update', async () => {
  const { id, key } = await createKey('shop')
  await statusWith(key)
  await using holder = await openSql(database.url)
  await holder('lock tables api_keys read')
  vi.advanceTimersByTime(MINUTE)
  const updates = async () => (await running(sql, 'update%api_keys%')).length
  await until('the update runs', async () => (await updates()) === 1)
  const began = Date.now()
  expect(await statusWith(key)).toBe(200)
  await holder('unlock tables')
  await until('the update is over', async () => (await updates()) === 0)
  vi.advanceTimersByTime(MINUTE)
  await storedSince(id, began)
})

test('uses that cannot be stored are dropped, and logged as a warning; later ones are stored', async () => {
  const { id, key } = await createKey('shop')
  await statusWith(key)
  await sql('alter table api_keys rename to elsewhere')
  vi.advanceTimersByTime(MINUTE)
  const warnings = () => service.logged.filter((line) => line.includes('"level":"warn"'))
  await until('it is logged', () => warnings().length > 0)
  expect(JSON.parse(`${warnings()}`)).toMatchObject({
    msg: 'Could not record when keys were last used',
    err: { message: expect.stringContaining('api_keys') },
  })
  const began = Date.now()
  expect(await statusWith(key)).toBe(200)
  await sql('alter table elsewhere rename to api_keys')
  vi.advanceTimersByTime(MINUTE)
  await storedSince(id, began)
  expect(warnings()).toHaveLength(1)
})

test('a stop stores the last uses of more keys than fit in one statement', async () => {
  const stopped = await startService({}, { database: { ...database, remove: async () => {} } })
  const many = await Promise.all(Array.from({ length: 501 }, () => addKey(sql, 'one of many')))
  const statuses = await Promise.all(many.map((key) => statusAt(stopped, key)))
  expect(new Set(statuses)).toEqual(new Set([200]))
  await stopped.stop()
  const query = "select count(last_used_at) as used from api_keys where name = 'one of many'"
  expect((await sql(query)).map(({ used }) => Number(used))).toEqual([501])
})

// A read of the embedded database does not wait.
test.runIf(engine === 'mysql')(
  'a look-up ends after ten seconds, also where calls may wait for longer',
  async () => {
    const rest = { database: { ...database, remove: async () => {} } }
    const patient = await startService({ DATABASE_TIMEOUT: '30s' }, rest)
    const { key } = await createKey('slow')
    await using holder = await openSql(database.url)
    await holder('lock tables api_keys write')
    const began = Date.now()
    expect(await statusAt(patient, key)).toBe(503)
    expect(Date.now() - began).toBeLessThan(REMEMBERED + 10_000)
    await holder('unlock tables')
    await patient.stop()
  },
)
