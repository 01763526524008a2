/** Failures of the database: the service returns 503, loses nothing, and recovers. */
import { setTimeout } from 'node:timers/promises'
import { type Connection, createConnection } from 'mysql2/promise'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { mysqlForFile, newDatabase } from '../support/database.ts'
import { freeze, thaw } from '../support/freeze.ts'
import { until } from '../support/instance.ts'
import { countPets } from '../support/pets.ts'
import { type Service, startService } from '../support/service.ts'
import { openSql } from '../support/sql.ts'

/** Milliseconds, as DATABASE_TIMEOUT. */
const TIMEOUT = 800

/** The connections of a process to the database. */
const CONNECTIONS = 10

const mysql = await mysqlForFile()

let service: Service
let admin: Connection
beforeEach(async () => {
  const database = await newDatabase(mysql.url)
  service = await startService({ DATABASE_TIMEOUT: `${TIMEOUT}ms` }, { database })
  admin = await createConnection(database.url)
})
afterEach(async () => {
  admin.destroy()
  await service.stop()
})

const list = () => service.rest('GET', '/pets')
const create = (name = 'Rex') => service.rest('POST', '/pets', { body: { name, categoryId: 3 } })

/** Checks that a call returns 503 with Retry-After, though the database still gives no answer. */
async function expectUnavailable(call: () => ReturnType<typeof list>) {
  const answer = await call()
  expect(answer).toMatchObject({ status: 503, body: { code: 'SERVICE_UNAVAILABLE' } })
  expect(answer.headers.get('retry-after')).toBe('5')
}

/** Waits until requests succeed again. */
const recovery = () => until('it recovers', async () => (await list()).status === 200, 10_000)

test('a restart of the database: 503 meanwhile, then recovery', async () => {
  await list()
  await mysql.stop()
  await expectUnavailable(list)
  await expectUnavailable(create)
  await mysql.restart()
  await recovery()
  expect((await create()).status).toBe(201)
})

test('a database that is killed amid creations loses no acknowledged pet', async () => {
  const acknowledged = new Set<number>()
  const statuses = new Set<number>()
  let done = false
  const writers = Array.from({ length: 8 }, async (_, writer) => {
    for (let serial = 0; !done; serial++) {
      const { status, body } = await create(`${writer}-${serial}`)
      statuses.add(status)
      if (status === 201) acknowledged.add((body as { id: number }).id)
    }
  })
  await vi.waitFor(() => expect(acknowledged.size).toBeGreaterThan(20), 30_000)
  process.kill(mysql.pid, 'SIGKILL')
  await vi.waitFor(() => expect(statuses).toContain(503), 30_000)
  await mysql.restart()
  await recovery()
  const before = acknowledged.size
  await vi.waitFor(() => expect(acknowledged.size).toBeGreaterThan(before + 20), 30_000)
  done = true
  await Promise.all(writers)
  admin = await createConnection(service.databaseUrl)
  const [found] = await admin.query('select id, name from pets')
  const rows = found as { id: number; name: string }[]
  const kept = new Set(rows.map(({ id }) => Number(id)))
  expect([...acknowledged].filter((id) => !kept.has(id))).toEqual([])
  expect(new Set(rows.map(({ name }) => name)).size, 'no pet is duplicated').toBe(rows.length)
  expect(statuses).toEqual(new Set([201, 503]))
})

test('a database that hangs: 503 in time, bounded memory, recovery without restart', async () => {
  await list()
  await freeze(mysql.pid)
  try {
    await expectUnavailable(list)
    await expectUnavailable(create)
    const headers = { 'idempotency-key': '"hangs"' }
    const body = { name: 'Rex', categoryId: 3 }
    await expectUnavailable(() => service.rest('POST', '/pets', { headers, body }))
    expect((await fetch(`${service.origin}/healthz`)).status).toBe(200)
    expect((await fetch(`${service.origin}/readyz`)).status).toBe(503)
    const heap = () => process.memoryUsage().heapUsed / 2 ** 20
    const before = heap()
    // Many more calls than connections, repeatedly.
    for (let round = 0; round < 3; round++) {
      const answers = await Promise.all(Array.from({ length: 300 }, list))
      expect(answers.every(({ status }) => status === 503)).toBe(true)
    }
    expect(heap() - before).toBeLessThan(100)
  } finally {
    thaw(mysql.pid)
  }
  await recovery()
  expect((await create()).status).toBe(201)
  expect((await fetch(`${service.origin}/readyz`)).status).toBe(200)
})

test('a database without free connections: only 200 or 503, then recovery', async () => {
  const [[row]] = (await admin.query('select @@global.max_connections as max')) as unknown as [
    [{ max: number }],
  ]
  await admin.query('set global max_connections = 10')
  const others: Connection[] = []
  try {
    for (;;) others.push(await createConnection(mysql.url))
  } catch {} // the limit is reached
  try {
    // More calls than the service has connections, while the first ones hold those that are open.
    await admin.query('lock tables pets write')
    const statuses = new Set<number>()
    const lists = Array.from({ length: 3 * CONNECTIONS }, async (_, index) => {
      statuses.add((await service.rest('GET', `/pets?limit=${index + 1}`)).status)
    })
    await vi.waitFor(() => expect(statuses).toContain(503), 30_000)
    await admin.query('unlock tables')
    await Promise.all(lists)
    expect([...statuses].filter((status) => status !== 200 && status !== 503)).toEqual([])
  } finally {
    for (const connection of others) connection.destroy()
    await admin.query(`set global max_connections = ${row.max}`)
  }
  await recovery()
})

test('a slow database: a creation with an Idempotency-Key returns 503 in time, too', async () => {
  await list()
  // The look-up of the key takes most of the time, and the insert the rest.
  await using pets = await openSql(service.databaseUrl)
  await pets('lock tables pets write')
  await admin.query('lock tables idempotency_keys write')
  const release = setTimeout(TIMEOUT * 0.7).then(() => admin.query('unlock tables'))
  const headers = { 'idempotency-key': '"slow"' }
  const body = { name: 'Rex', categoryId: 3 }
  await expectUnavailable(() => service.rest('POST', '/pets', { headers, body }))
  await release
})

test('a database server that becomes read-only: 503, and its connections are closed', async () => {
  // root can write to a read-only server, so the service connects as another user.
  await admin.query('create user if not exists writer@127.0.0.1')
  await admin.query('grant select, insert, update, delete on *.* to writer@127.0.0.1')
  const url = new URL(service.databaseUrl)
  url.username = 'writer'
  const writer = await startService({}, { database: { url: url.href, remove: async () => {} } })
  await writer.sql.close() // leaves only the connections of the service
  const connections = async () => {
    const [rows] = await admin.query(
      "select id from information_schema.processlist where user = 'writer'",
    )
    return (rows as { id: number }[]).map(({ id }) => id)
  }
  const body = { name: 'Rex', categoryId: 3 }
  expect((await writer.rest('POST', '/pets', { body })).status).toBe(201)
  const before = await connections()
  expect(before).not.toEqual([])

  await admin.query('set global read_only = 1')
  try {
    const rejected = await writer.rest('POST', '/pets', { body })
    expect(rejected).toMatchObject({ status: 503, body: { code: 'SERVICE_UNAVAILABLE' } })
    // The connection is closed: the next one may lead to another server.
    await vi.waitFor(async () => {
      const kept = await connections()
      expect(before.filter((id) => kept.includes(id))).toEqual([])
    }, 30_000)
  } finally {
    await admin.query('set global read_only = 0')
  }
  expect((await writer.rest('POST', '/pets', { body })).status).toBe(201)
  expect(await countPets(service.sql)).toBe(2)
  await writer.stop()
})
