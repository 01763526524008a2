/** Long losses of connections to a MySQL server: locks, restarts, silence; the default timeout. */
import { randomUUID } from 'node:crypto'
import { setTimeout } from 'node:timers/promises'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { newDatabase } from '../support/database.ts'
import { outOfThree } from '../support/eventually.ts'
import { type Instance, startInstance, until } from '../support/instance.ts'
import { type MysqlServer, startMysql } from '../support/mysql.ts'
import { occupy } from '../support/occupy.ts'
import { openSql, type Sql } from '../support/sql.ts'

let mysql: MysqlServer
beforeAll(async () => {
  mysql = await startMysql()
})
afterAll(() => mysql.remove())

const rex = { name: 'Rex', categoryId: 3 }

interface Reading {
  status: number
  took: number
}

/** Calls at a fixed rate per second for `duration` milliseconds, without waiting for responses. */
async function everySecond<Answer>(
  times: number,
  duration: number,
  call: (serial: number) => Promise<Answer>,
): Promise<Answer[]> {
  const calls: Promise<Answer>[] = []
  const start = performance.now()
  for (let serial = 0; serial < (times * duration) / 1_000; serial++) {
    await setTimeout(Math.max(0, start + (serial * 1_000) / times - performance.now()))
    calls.push(call(serial))
  }
  return await Promise.all(calls)
}

async function timed(call: Promise<{ status: number }>): Promise<Reading> {
  const start = performance.now()
  const { status } = await call
  return { status, took: performance.now() - start }
}

function figures(readings: Reading[]) {
  const times = readings.map(({ took }) => took).sort((one, other) => one - other)
  return {
    calls: readings.length,
    refused: readings.filter(({ status }) => status !== 200).length,
    median: Math.round(times[times.length >> 1] ?? 0),
    longest: Math.round(times.at(-1) ?? 0),
  }
}

test('rows locked for ten seconds, 40 creations a second: reads go on', outOfThree, async () => {
  const service = await startInstance({ DATABASE_TIMEOUT: '5s' }, await newDatabase(mysql.url))
  let page = 0
  const read = () => timed(service.rest('GET', `/pets?cursor=${page++}`))
  const ready = () => timed(fetch(`${service.origin}/readyz`))
  const createFor = (duration: number) =>
    everySecond(40, duration, (serial) => {
      const headers = { 'idempotency-key': serial % 2 === 0 ? randomUUID() : undefined }
      return service.rest('POST', '/pets', { headers, body: rex })
    })
  await read()
  const [open, ...made] = await Promise.all([everySecond(20, 3_000, read), createFor(3_000)])
  const before = figures(open)
  await using rival = await openSql(service.databaseUrl)
  await rival('begin')
  await rival('select * from pets for update')
  const creations = createFor(10_000)
  const [reads, probes] = await Promise.all([
    everySecond(20, 10_000, read),
    everySecond(9, 10_000, ready),
  ])
  await rival('rollback')
  const during = { reads: figures(reads), probes: figures(probes) }
  console.info('Reads without the lock:', before, 'with it:', during)
  expect(during.reads.refused + during.probes.refused).toBe(0)
  expect(during.reads.median).toBeLessThan(before.median + 20)
  expect(during.reads.longest).toBeLessThan(1_000)
  const ids = [...made, await creations]
    .flat()
    .flatMap(({ status, body }) => (status === 201 ? (body as { id: number }).id : []))
  const kept = (await service.sql('select id from pets')).map(({ id }) => Number(id))
  expect(ids.filter((id) => !kept.includes(id))).toEqual([])
  await until('no connection is in use', async () => {
    const used = await service.metric('petstore_database_connections_used')
    return used + (await service.metric('petstore_database_connections_waiting')) === 0
  })
  await service.stop()
})

test('after a restart of the database server, the service kills no connection of another client', async () => {
  const service = await startInstance({ DATABASE_TIMEOUT: '8s' }, await newDatabase(mysql.url))
  const proxy = service.proxy as NonNullable<Instance['proxy']>
  expect((await service.rest('GET', '/pets')).status).toBe(200)
  const rows = await service.sql(
    'select id from information_schema.processlist where db = database()',
  )
  const before = rows.map(({ id }) => Number(id))
  // The service waits for an answer that will not arrive, and does not notice the restart.
  proxy.forget()
  const waiting = service.rest('GET', '/pets?cursor=1')
  await setTimeout(1_500) // the server counts whole seconds
  await mysql.stop()
  await mysql.restart()
  // Other clients get the connection ids that the service had.
  const others: Sql[] = []
  const idOf = async (sql: Sql) => Number((await sql('select connection_id() as id'))[0]?.id)
  for (let last = 0; last <= Math.max(...before); ) {
    const other = await openSql(service.databaseUrl)
    last = await idOf(other)
    if (before.includes(last)) others.push(other)
    else await other.close()
  }
  expect(others).not.toEqual([])
  const sent = proxy.statements.length
  expect((await waiting).status).toBe(503)
  await until('the service looks for the connection', () =>
    proxy.statements.slice(sent).some((text) => text.startsWith('show')),
  )
  await setTimeout(500)
  for (const other of others) await idOf(other)
  for (const other of others) await other.close()
  await service.stop()
})

test('unused connections are closed', async () => {
  const service = await startInstance({}, await newDatabase(mysql.url))
  const proxy = service.proxy as NonNullable<Instance['proxy']>
  await using locker = await openSql(service.databaseUrl)
  await service.rest('GET', '/pets')
  await locker('lock tables pets write')
  const list = (query: string) => service.rest('GET', `/pets${query}`)
  const lists = await occupy(10, list, async () => proxy.clients)
  await locker('unlock tables')
  await Promise.all(lists)
  await until('no connection is open', () => proxy.clients === 0, 60_000)
  expect((await service.rest('GET', '/pets')).status).toBe(200)
  await service.stop()
})

test('DATABASE_TIMEOUT is 5 seconds by default', outOfThree, async () => {
  const database = await newDatabase(mysql.url)
  const service = await startInstance({ DATABASE_TIMEOUT: '' }, database)
  onTestFinished(async () => void (await service.stop()))
  await service.rest('GET', '/pets')
  await using locker = await openSql(service.databaseUrl)
  await locker('lock tables pets write')
  const start = performance.now()
  const answers = await Promise.all([
    service.rest('GET', '/pets'),
    service.rest('POST', '/pets', { body: rex }),
  ])
  const took = performance.now() - start
  expect(answers.map(({ status }) => status)).toEqual([503, 503])
  expect(took).toBeGreaterThan(4_990)
  expect(took).toBeLessThan(7_000)
})
