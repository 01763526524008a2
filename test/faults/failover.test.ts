/** The host of the database leads to another server than before, as behind a load balancer. */
import { setTimeout } from 'node:timers/promises'
import { createConnection, type RowDataPacket } from 'mysql2/promise'
import { expect, onTestFinished, test, vi } from 'vitest'
import { startBalancer, startSilent } from '../support/balancer.ts'
import { mysqlForFile, newDatabase } from '../support/database.ts'
import { freeze, thaw } from '../support/freeze.ts'
import { until } from '../support/instance.ts'
import { createKey, startService } from '../support/service.ts'
import { openSql, type Sql } from '../support/sql.ts'

const [former, other] = await Promise.all([mysqlForFile(), mysqlForFile()])

const portOf = (url: string) => Number(new URL(url).port)

test('a timeout kills no statement on another server', async () => {
  const database = await newDatabase(former.url)
  const balancer = await startBalancer(portOf(former.url))
  const url = Object.assign(new URL(database.url), { port: balancer.port })
  const service = await startService(
    { DATABASE_TIMEOUT: '500ms' },
    { database: { ...database, url: url.href } },
  )
  await service.rest('GET', '/pets')
  const admin = await createConnection(database.url)
  await admin.query('lock tables pets write')

  balancer.ports = [portOf(other.url)]
  const otherAdmin = await createConnection(other.url)
  await otherAdmin.query(`create database ${url.pathname.slice(1)}`)
  const others = await Promise.all(Array.from({ length: 50 }, () => createConnection(other.url)))
  const answer = service.rest('GET', '/pets')
  const waiting = await vi.waitFor(async () => {
    const [rows] = await admin.query<RowDataPacket[]>(
      "select id from information_schema.processlist where info like 'select%pets%' and id <> connection_id()",
    )
    expect(rows).toHaveLength(1)
    return rows[0]?.id
  }, 30_000)
  const namesakes = others.filter(({ threadId }) => threadId === Number(waiting))
  expect(namesakes).toHaveLength(1)
  expect((await answer).status).toBe(503)
  await setTimeout(500) // a wrong kill would happen by now
  await Promise.all(others.map((connection) => connection.query('select 1')))

  for (const connection of [admin, otherAdmin, ...others]) connection.destroy()
  await service.stop()
})

/** A service whose database is that of the former server; the other one has a copy of it. */
async function startBetween(variables: Record<string, string> = {}) {
  const database = await newDatabase(former.url)
  const balancer = await startBalancer(portOf(former.url))
  const url = Object.assign(new URL(database.url), { port: balancer.port })
  const service = await startService(variables, { database: { ...database, url: url.href } })
  const name = url.pathname.slice(1)
  await using admin = await openSql(other.url)
  await admin(`create database ${name}`)
  const copy = `${other.url}/${name}`
  await createKey(copy) // migrates
  const sql = await openSql(copy)
  await copyKeys(service.sql, sql)
  onTestFinished(async () => {
    balancer.ports = [portOf(former.url)]
    thaw(former.pid)
    await sql.close()
    await service.stop()
  })
  return { service, balancer, sql, copy, database }
}

/** Copies the API keys of a database into another one, as replication does. */
async function copyKeys(from: Sql, to: Sql): Promise<void> {
  await to('delete from api_keys')
  for (const row of await from('select * from api_keys')) {
    const names = Object.keys(row)
    await to(`insert into api_keys (${names}) values (${names.map(() => '?')})`, Object.values(row))
  }
}

type Status = number | undefined

/** Sends a request again and again until the end of the test; returns its latest status. */
function repeat(send: () => Promise<{ status: number }>): () => Status {
  let latest: Status
  let isOver = false
  onTestFinished(() => {
    isOver = true
  })
  const run = async () => {
    while (!isOver) {
      latest = (await send().catch(() => undefined))?.status
      await setTimeout(20)
    }
  }
  void run()
  return () => latest
}

test.each([1, 40])(
  'the server hangs for 4 seconds, then the address leads to another one, for %i clients: served within 2 seconds',
  async (clients) => {
    const { service, balancer } = await startBetween({ DATABASE_TIMEOUT: '5s' })
    const statuses = Array.from({ length: clients }, (_, client) =>
      repeat(() => service.rest('GET', `/pets?limit=${client + 1}`)),
    )
    const ready = repeat(() => fetch(`${service.origin}/readyz`))
    await until('all are served', () => statuses.every((status) => status() === 200))
    await freeze(former.pid)
    await setTimeout(4_000)
    balancer.ports = [portOf(other.url)]
    const start = performance.now()
    await until('a session is opened', () => balancer.openedAt > start)
    expect(performance.now() - start).toBeLessThan(2_000)
    // A busy machine takes long to set it up. A call of before may wait until its deadline.
    await until('all are served', () => statuses.every((status) => status() === 200))
    await until('it is ready', () => ready() === 200)
  },
)

test('one of two servers behind a balancer is silent: served within 2 seconds, and always after that', async () => {
  const { service, balancer } = await startBetween()
  const silent = await startSilent()
  balancer.ports = [silent.port, portOf(former.url)]
  await endSessions()
  await setTimeout(600)
  const start = performance.now()
  expect((await service.rest('GET', '/pets')).status).toBe(200)
  expect(performance.now() - start).toBeLessThan(2_000)
  for (let call = 0; call < 20; call++) {
    const lists = Array.from({ length: 20 }, (_, limit) =>
      service.rest('GET', `/pets?limit=${limit + 1}`),
    )
    expect(new Set((await Promise.all(lists)).map(({ status }) => status))).toEqual(new Set([200]))
  }
  expect(silent.closed).toBe(0)
})

/** Ends all sessions of the former server. */
async function endSessions(): Promise<void> {
  await using admin = await openSql(former.url)
  const rows = await admin(
    "select id from information_schema.processlist where id <> connection_id() and command = 'Sleep'",
  )
  for (const { id } of rows) await admin(`kill ${id}`)
}
