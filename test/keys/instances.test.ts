/** Keys on several instances of the service, and when they were last used. */
import { setTimeout } from 'node:timers/promises'
import { sql } from 'kysely'
import { pino } from 'pino'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { connect } from '../../db/connect.ts'
import { Deadline } from '../../db/deadline.ts'
import { DatabaseTimeoutError } from '../../db/errors.ts'
import { migrate } from '../../db/migrate.ts'
import type { Database } from '../../db/tables.ts'
import { createAuthenticator, KEY_LIFETIME } from '../../src/keys/authenticator.ts'
import { hashKey, newKey } from '../../src/keys/format.ts'
import { createKey, listKeys, revokeKey, rotateKey, touchKeys } from '../../src/keys/store.ts'
import { newDatabase, type TestDatabase } from '../support/database.ts'
import { type Service, startService } from '../support/service.ts'

const silent = pino({ level: 'silent' })

let database: TestDatabase
let db: Database
beforeEach(async () => {
  database = await newDatabase()
  db = connect(database.url)
  await migrate(db)
})
afterEach(async () => {
  vi.useRealTimers()
  vi.restoreAllMocks()
  await db.destroy()
  await database.remove()
})

/** An instance on the database of this test, which outlives it. */
const startInstance = () => startService({}, undefined, { ...database, remove: async () => {} })

const statusAt = async ({ origin }: Service, key: string) =>
  (await fetch(`${origin}/v1/pets`, { headers: { authorization: `Bearer ${key}` } })).status

const lastUsed = async (id: bigint) =>
  (await listKeys(db)).find((key) => key.id === id)?.lastUsedAt?.getTime()

/** Puts the clock of the cache forward; waiting ten seconds would show no more. */
function pass(milliseconds: number): void {
  const now = performance.now.bind(performance)
  vi.spyOn(performance, 'now').mockImplementation(() => now() + milliseconds)
}

test('a key made, rotated or revoked anywhere is so on every instance', async () => {
  const one = await startInstance()
  const two = await startInstance()
  const statuses = (key: string) => Promise.all([statusAt(one, key), statusAt(two, key)])
  const { id, key } = await createKey(one.db, 'shop')
  expect(await statuses(key)).toEqual([200, 200])
  const fresh = await rotateKey(two.db, id, new Date(Date.now() + 60_000))
  expect(await statuses(key)).toEqual([200, 200])
  expect(await statuses(String(fresh?.key))).toEqual([200, 200])
  await revokeKey(one.db, id)
  pass(KEY_LIFETIME + 1)
  expect(await statuses(key)).toEqual([401, 401])
  expect(await statuses(String(fresh?.key))).toEqual([200, 200])
  await Promise.all([one.stop(), two.stop()])
})

test('a database that answers late does not lengthen the life of a revoked key', async () => {
  const { id, key } = await createKey(db, 'shop')
  let answer: (() => void) | undefined
  const held = db.withPlugin({
    transformQuery: ({ node }) => node,
    transformResult: async ({ result }) => {
      if (result.rows.length > 0) await new Promise<void>((resolve) => (answer = resolve))
      return result
    },
  })
  const { find, stop } = createAuthenticator(held, silent)
  const first = find(key, new Deadline(5_000))
  await vi.waitFor(() => expect(answer).toBeDefined())
  await revokeKey(db, id)
  pass(KEY_LIFETIME + 1)
  answer?.()
  expect(await first).toMatchObject({ keyId: id })
  expect(await find(key, new Deadline(5_000))).toBeUndefined()
  await stop()
})

test('a key that was valid a moment ago does not stand behind unknown ones', async () => {
  const { id, key } = await createKey(db, 'shop')
  const gate = Promise.withResolvers<void>()
  // The database hangs over keys that it does not find.
  const slow = db.withPlugin({
    transformQuery: ({ node }) => node,
    transformResult: async ({ result }) => {
      if (result.rows.length === 0) await gate.promise
      return result
    },
  })
  const { known, find, stop } = createAuthenticator(slow, silent)
  expect(known(key)).toBeUndefined()
  await find(key, new Deadline(5_000))
  expect(known(key)).toEqual({ keyId: id })
  pass(KEY_LIFETIME + 1)
  expect(known(key)).toBeUndefined()
  const stranger = find(newKey().key, new Deadline(30_000))
  const impatient = find(newKey().key, new Deadline(100))
  await expect(impatient, 'its own time counts').rejects.toThrow(DatabaseTimeoutError)
  expect(await find(key, new Deadline(5_000))).toEqual({ keyId: id })
  expect(known(key)).toEqual({ keyId: id })
  gate.resolve()
  expect(await stranger).toBeUndefined()
  await stop()
})

test('the time of the last use is noted once a minute and at the end, not with each request', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  const service = await startInstance()
  const { id, key } = await createKey(db, 'shop')
  const unused = await createKey(db, 'unused')
  const notes = () => service.queries.filter(({ sql: text }) => /^update .api_keys/.test(text))
  const began = Date.now()
  for (let request = 0; request < 20; request++) expect(await statusAt(service, key)).toBe(200)
  expect(notes()).toEqual([])

  vi.advanceTimersByTime(60_000)
  await vi.waitFor(async () => expect(await lastUsed(id)).toBeGreaterThanOrEqual(began))
  expect(notes()).toHaveLength(1)
  vi.advanceTimersByTime(600_000)
  await setTimeout(20)
  expect(notes()).toHaveLength(1)

  const noted = Number(await lastUsed(id))
  while (Date.now() <= noted) await setTimeout(1)
  await statusAt(service, key)
  await service.stop()
  expect(await lastUsed(id)).toBeGreaterThan(noted)
  expect(await lastUsed(unused.id)).toBeUndefined()
})

test('the later use counts, whichever instance notes it first', async () => {
  const { id } = await createKey(db, 'shop')
  await touchKeys(db, new Map([[id, 2_000]]))
  await touchKeys(db, new Map([[id, 1_000]]))
  expect(await lastUsed(id)).toBe(2_000)
  await touchKeys(db, new Map([[id, 3_000]]))
  expect(await lastUsed(id)).toBe(3_000)
})

test('uses that cannot be noted are forgotten, and told to the log', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  const service = await startInstance()
  await statusAt(service, service.key)
  await sql`alter table api_keys rename to elsewhere`.execute(db)
  vi.advanceTimersByTime(60_000)
  await vi.waitFor(() => expect(service.logged.join()).toContain('Could not note'))
  expect(await statusAt(service, service.key)).toBe(200)
  await service.stop()
})

test('of a key only its hash and its first characters are stored', async () => {
  const { id, key } = await createKey(db, 'shop', new Date(Date.now() + 60_000))
  expect(key).toMatch(/^petstore_[\w-]{43}$/)
  expect(Buffer.from(key.slice('petstore_'.length), 'base64url')).toHaveLength(32)
  const [row] = await db.selectFrom('api_keys').selectAll().execute()
  expect(row).toMatchObject({ id, name: 'shop', prefix: key.slice(0, 15), hash: hashKey(key) })
  const stored = Object.values(row ?? {}).map(String)
  expect(stored.filter((value) => value.includes(key.slice(15)))).toEqual([])
})

test('no two keys are alike', async () => {
  const keys = await Promise.all(Array.from({ length: 100 }, () => createKey(db, 'shop')))
  expect(new Set(keys.map(({ key }) => key)).size).toBe(100)
})

test('unknown, expired and revoked keys take the same way and the same time', async () => {
  const service = await startInstance()
  const made = (count: number, expiresAt?: Date) =>
    Promise.all(Array.from({ length: count }, () => createKey(db, 'shop', expiresAt)))
  const rounds = 15
  const expired = await made(rounds, new Date(Date.now() - 1))
  const revoked = await made(rounds)
  await Promise.all(revoked.map(({ id }) => revokeKey(db, id)))
  const unknown = revoked.map(({ key }) => ({ key: key.replace(/.{10}$/, 'AAAAAAAAAA') }))

  const times: Record<string, number[]> = { expired: [], revoked: [], unknown: [] }
  const lookUps = () =>
    service.queries.filter(({ sql: text }) => /from .api_keys/.test(text)).length
  for (let round = 0; round < rounds; round++) {
    for (const [kind, keys] of Object.entries({ expired, revoked, unknown })) {
      const before = lookUps()
      const began = performance.now()
      expect(await statusAt(service, String(keys[round]?.key))).toBe(401)
      times[kind]?.push(performance.now() - began)
      expect(lookUps() - before).toBe(1)
    }
  }
  const medians = Object.values(times).map((list) =>
    Number(list.sort((a, b) => a - b)[rounds >> 1]),
  )
  // They differ by noise; a second query, or none, would show in the count above.
  expect(Math.max(...medians)).toBeLessThan(3 * Math.min(...medians) + 5)
  await service.stop()
})
