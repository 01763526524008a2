/** Keys on several instances of the service, and the time of their last use. */
import { setTimeout } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { engine, newDatabase, type TestDatabase } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'
import { addKey, running, until } from '../support/instance.ts'
import { proxied } from '../support/proxy.ts'
import { keys, type Service, startService } from '../support/service.ts'
import { openSql, type Sql } from '../support/sql.ts'

/** Milliseconds that a valid key stays cached: a revoked key works for at most this long. */
const REMEMBERED = 10_000

let database: TestDatabase
let sql: Sql
beforeEach(async () => {
  database = await newDatabase()
  await keys.create(database.url, 'first') // creates the tables
  sql = await openSql(database.url)
})
afterEach(async () => {
  vi.useRealTimers()
  vi.restoreAllMocks()
  await sql.close()
  await database.remove()
})

/** Starts an instance on the database of this test; stopping it keeps the database. */
const startInstance = (url = database.url) =>
  startService({}, { database: { url, remove: async () => {} } })

const statusAt = async ({ origin }: Service, key: string) =>
  (await fetch(`${origin}/v1/pets`, { headers: { authorization: `Bearer ${key}` } })).status

/** When a key was last used, in milliseconds since 1970; undefined for never. */
async function lastUsed(id: bigint): Promise<number | undefined> {
  const [row] = await sql('select last_used_at from api_keys where id = ?', [id])
  return row?.last_used_at === null ? undefined : Number(row?.last_used_at)
}

const isWarning = ({ level }: { level: string }) => level === 'warn'

/** Puts the clock of the cache forward, instead of waiting ten seconds. */
function pass(milliseconds: number): void {
  const now = performance.now.bind(performance)
  vi.spyOn(performance, 'now').mockImplementation(() => now() + milliseconds)
}

test('a failed look-up of a key is not cached', async () => {
  const service = await startInstance()
  expect(await statusAt(service, service.key)).toBe(200)
  pass(REMEMBERED + 1)
  await sql('alter table api_keys rename to elsewhere')
  expect(await statusAt(service, service.key)).toBe(500)
  await sql('alter table elsewhere rename to api_keys')
  expect(await statusAt(service, service.key)).toBe(200)
  await service.stop()
})

test('a failed look-up of several keys returns an error to each request', async () => {
  const service = await startInstance()
  await sql('alter table api_keys rename to elsewhere')
  const unknown = Array.from({ length: 20 }, (_, index) => `petstore_${`${index}`.padEnd(43, 'x')}`)
  // A request that does not learn of the failure would time out with 503.
  const statuses = await Promise.all(unknown.map((key) => statusAt(service, key)))
  expect(statuses).toEqual(unknown.map(() => 500))
  await sql('alter table elsewhere rename to api_keys')
  await service.stop()
})

// The embedded engine answers synchronously.
test.runIf(engine === 'mysql')(
  'a late answer of the database does not extend the cache entry of a revoked key',
  async () => {
    const { proxy, url } = await proxied(database.url)
    const service = await startInstance(url)
    await statusAt(service, service.key) // opens the connection
    const { id, key } = await keys.create(database.url, 'shop')
    const answered = proxy.holdAt(/^select .*from `api_keys`/)
    const first = statusAt(service, key)
    const release = await answered // the database has answered that the key is valid
    await keys.revoke(database.url, id)
    pass(REMEMBERED + 1)
    release()
    expect(await first).toBe(200)
    expect(await statusAt(service, key)).toBe(401)
    await service.stop()
    await proxy.cut()
  },
)

test('the time of the last use is stored once a minute and at the stop, not for each request', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  const service = await startInstance()
  const shop = await keys.create(database.url, 'shop')
  const other = await keys.create(database.url, 'other')
  const unused = await keys.create(database.url, 'unused')
  const began = Date.now()
  for (let request = 0; request < 20; request++) expect(await statusAt(service, shop.key)).toBe(200)
  vi.advanceTimersByTime(59_000)
  await setTimeout(50)
  expect(await lastUsed(shop.id)).toBeUndefined()

  vi.advanceTimersByTime(1_000)
  await eventually(async () => expect(await lastUsed(shop.id)).toBeGreaterThanOrEqual(began))

  // A stored use is not stored again, neither before the use of another key nor with it.
  await sql('update api_keys set last_used_at = 1 where id = ?', [shop.id])
  vi.advanceTimersByTime(600_000)
  await statusAt(service, other.key)
  vi.advanceTimersByTime(60_000)
  await eventually(async () => expect(await lastUsed(other.id)).toBeGreaterThanOrEqual(began))
  expect(await lastUsed(shop.id)).toBe(1)

  await statusAt(service, shop.key)
  vi.useRealTimers()
  await service.stop()
  expect(await lastUsed(shop.id)).toBeGreaterThan(began)
  expect(await lastUsed(unused.id)).toBeUndefined()
})

// The embedded engine stores them synchronously.
test.runIf(engine === 'mysql')('uses during an update are stored by the next update', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  const service = await startInstance()
  const shop = await keys.create(database.url, 'shop')
  const other = await keys.create(database.url, 'other')
  for (const { key } of [shop, other]) expect(await statusAt(service, key)).toBe(200)
  vi.advanceTimersByTime(60_000)
  await eventually(async () => expect(await lastUsed(other.id)).toBeDefined())
  await statusAt(service, shop.key)
  await using holder = await openSql(database.url)
  await holder('lock tables api_keys read')
  vi.advanceTimersByTime(60_000)
  await until('the update runs', async () => (await running(sql, 'update%api_keys%')).length === 1)
  const began = Date.now()
  for (const { key } of [shop, other]) expect(await statusAt(service, key)).toBe(200)
  await holder('unlock tables')
  await until(
    'the update is over',
    async () => (await running(sql, 'update%api_keys%')).length === 0,
  )
  vi.advanceTimersByTime(60_000)
  for (const { id } of [shop, other]) {
    await eventually(async () => expect(await lastUsed(id)).toBeGreaterThanOrEqual(began))
  }
  vi.useRealTimers()
  await service.stop()
})

test('the last uses of 501 keys are all stored', async () => {
  const service = await startInstance()
  const many = await Promise.all(Array.from({ length: 501 }, () => addKey(sql)))
  const statuses = await Promise.all(many.map((key) => statusAt(service, key)))
  expect(new Set(statuses)).toEqual(new Set([200]))
  await service.stop()
  const [row] = await sql('select count(last_used_at) as used from api_keys')
  expect(Number(row?.used)).toBe(501)
})

test('uses that cannot be stored are dropped, and logged as a warning', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  const service = await startInstance()
  await statusAt(service, service.key)
  await sql('alter table api_keys rename to elsewhere')
  vi.advanceTimersByTime(60_000)
  const warnings = () => service.logged.map((line) => JSON.parse(line)).filter(isWarning)
  await eventually(() =>
    expect(warnings()).toMatchObject([
      {
        msg: 'Could not record when keys were last used',
        err: { message: expect.stringContaining('api_keys') },
      },
    ]),
  )
  expect(await statusAt(service, service.key)).toBe(200)
  await sql('alter table elsewhere rename to api_keys')
  // Later uses are stored.
  const [row] = await sql("select id from api_keys where name = 'test'")
  vi.advanceTimersByTime(60_000)
  await eventually(async () => expect(await lastUsed(row?.id as bigint)).toBeGreaterThan(1))
  expect(warnings()).toHaveLength(1)
  vi.useRealTimers()
  await service.stop()
})
