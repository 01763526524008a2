/** `/readyz` and `/healthz`: whether the service can serve, and whether the process is alive. */
import { copyFileSync, renameSync, rmSync } from 'node:fs'
import { afterEach, beforeEach, describe, expect, inject, onTestFinished, test } from 'vitest'
import { engine, newDatabase, type TestDatabase } from '../support/database.ts'
import { everyHeader } from '../support/expect.ts'
import { running, until } from '../support/instance.ts'
import { newMetrics } from '../support/metrics.ts'
import { proxied } from '../support/proxy.ts'
import { converse } from '../support/raw.ts'
import { type Service, startService } from '../support/service.ts'
import { openSql } from '../support/sql.ts'

let database: TestDatabase
let service: Service
/** Starts the service; a proxy may be between it and its database. */
async function start(url = database.url, variables = {}): Promise<void> {
  service = await startService(variables, { database: { ...database, url } })
  expect(await ready()).toMatchObject(yes)
}
beforeEach(async () => {
  database = await newDatabase()
})
afterEach(() => service.stop())

/** The response of `/readyz`, and its milliseconds. */
async function ready(): Promise<{ status: number; body: unknown; time: number }> {
  const began = performance.now()
  const answer = await fetch(`${service.origin}/readyz`)
  const text = await answer.text()
  expect(Object.fromEntries(answer.headers)).toEqual({
    ...everyHeader,
    'cache-control': 'no-store',
    'content-type': 'application/json',
    'x-request-id': expect.stringMatching(/^[\da-f-]{36}$/),
    'content-length': String(text.length),
    date: expect.any(String),
    connection: 'keep-alive',
    'keep-alive': 'timeout=65',
  })
  return { status: answer.status, body: JSON.parse(text), time: performance.now() - began }
}

const yes = { status: 200, body: { status: 'ready' } }
const no = {
  status: 503,
  body: { code: 'SERVICE_UNAVAILABLE', message: 'The service is not ready', status: 503 },
}

/** Checks that the service is not ready but alive, long before DATABASE_TIMEOUT (30 s). */
async function expectNotReady(): Promise<void> {
  const answer = await ready()
  expect(answer).toMatchObject(no)
  expect(answer.time).toBeLessThan(15_000)
  expect((await fetch(`${service.origin}/healthz`)).status).toBe(200)
}

const recovered = () => until('it is ready', async () => (await ready()).status === 200)

test('both need no key, and support HEAD', async () => {
  await start()
  const health = await fetch(`${service.origin}/healthz`)
  expect([health.status, await health.json()]).toEqual([200, { status: 'ok' }])
  for (const path of ['/healthz', '/readyz']) {
    expect((await fetch(service.origin + path, { method: 'HEAD' })).status).toBe(200)
    for (const other of [`${path}/`, path.toUpperCase(), `${path}/x`]) {
      expect((await fetch(service.origin + other)).status, other).toBe(404)
    }
    // Load balancers may send no Host.
    for (const version of ['1.0', '1.1']) {
      const { answers } = await converse(service.origin, `GET ${path} HTTP/${version}\r\n\r\n`)
      expect(answers).toMatchObject([{ status: 200 }])
    }
  }
})

test('a schema that lacks a migration, or all, is not ready until they have run', async () => {
  await start()
  const { sql } = service
  const [newest] = await sql('select name, timestamp from kysely_migration order by name desc')
  await sql('delete from kysely_migration where name = ?', [newest?.name])
  const logged = service.logged.length
  await expectNotReady()
  expect((await fetch(`${service.origin}/readyz`, { method: 'HEAD' })).status).toBe(503)
  // Probes come every second: the cause is logged once.
  const lines = service.logged.slice(logged).map((line) => JSON.parse(line))
  expect(lines.map(({ level, msg, err }) => [level, err?.message ?? msg].join(' '))).toEqual([
    'error The database lacks migrations',
    ...Array(2).fill('info request'),
  ])
  await sql('insert into kysely_migration (name, timestamp) values (?, ?)', [
    newest?.name,
    newest?.timestamp,
  ])
  expect(await ready()).toMatchObject(yes)
  await sql('alter table kysely_migration rename to elsewhere')
  await expectNotReady()
  await sql('alter table elsewhere rename to kysely_migration')
  await recovered()
})

describe.runIf(engine === 'sqlite')('the file of the database', () => {
  const file = () => database.url.slice('sqlite:'.length)
  const losses = () =>
    service.logged.map((line) => JSON.parse(line)).filter(({ msg }) => msg !== 'request')

  test.each<[string, () => void]>([
    ['removed', () => rmSync(file())],
    [
      'replaced',
      () => {
        copyFileSync(file(), `${file()}.copy`)
        renameSync(`${file()}.copy`, file())
      },
    ],
  ])('that was %s: not ready, and the log says so once', async (_, lose) => {
    await start()
    lose()
    for (let round = 0; round < 3; round++) await expectNotReady()
    expect(losses()).toEqual([
      expect.objectContaining({
        level: 'error',
        msg: `${file()} is no longer the file that the service opened, and new data is lost with the old file: put that back, or end other programs that use the database, and restart the service`,
      }),
    ])
  })

  test('that is moved twice: ready while it is back, and each move is logged', async () => {
    await start()
    for (let round = 1; round < 3; round++) {
      renameSync(file(), `${file()}.old`)
      await expectNotReady()
      renameSync(`${file()}.old`, file())
      expect(await ready()).toMatchObject(yes)
      expect(losses()).toHaveLength(round)
    }
  })
})

describe.runIf(engine === 'mysql')('a database server', () => {
  test('that is stopped: not ready until it is back', async () => {
    const { proxy, url } = await proxied(database.url)
    await start(url)
    for (let round = 0; round < 2; round++) {
      await proxy.cut()
      await expectNotReady()
      await proxy.mend()
      await recovered()
    }
    await proxy.cut()
  })

  test('that refuses the log-in: not ready, and the log says why, with few log-ins', async () => {
    await using admin = await openSql(database.url)
    await admin("create user shop@'%' identified by 'before'")
    onTestFinished(async () => {
      await using admin = await openSql(inject('mysqlUrl'))
      await admin("drop user shop@'%'")
    })
    await admin("grant all on *.* to shop@'%'")
    const { proxy, url } = await proxied(database.url)
    await start(Object.assign(new URL(url), { username: 'shop', password: 'before' }).href)
    await admin("alter user shop@'%' identified by 'after'")
    await proxy.cut()
    await proxy.mend()
    const before = proxy.opened
    await until('a log-in is refused', async () => {
      await expectNotReady()
      return service.logged.some((line) => line.includes('Access denied for user'))
    })
    for (let call = 0; call < 10; call++) {
      expect((await service.rest('GET', `/pets/${call}`)).status).toBe(503)
    }
    expect(proxy.opened - before).toBeLessThan(5)
    await proxy.cut()
  })

  test('gets one query for concurrent probes', async () => {
    await start()
    await using locker = await openSql(database.url)
    await locker('lock tables kysely_migration write')
    let isOver = false
    const answers = Promise.all(Array.from({ length: 20 }, ready)).finally(() => (isOver = true))
    let most = 0
    while (!isOver) {
      most = Math.max(most, (await running(service.sql, '%kysely_migration%')).length)
    }
    expect((await answers).map(({ status }) => status)).toEqual(Array(20).fill(503))
    expect(most, 'concurrent queries: one, and another for late probes').toBeLessThan(4)
  })

  test('that hangs: not ready after a second, also for concurrent probes', async () => {
    const { proxy, url } = await proxied(database.url)
    const metrics = await newMetrics()
    await start(url, { ...metrics.variables, DATABASE_TIMEOUT: '3s' })
    proxy.stall()
    try {
      const began = performance.now()
      await expectNotReady()
      await Promise.all(Array.from({ length: 20 }, expectNotReady))
      // The database has a second, as docs/operating.md says.
      expect(performance.now() - began).toBeGreaterThan(1_800)
      // PetstoreNotReady of deploy/alerts.yml counts these.
      const labels = 'surface="other",operation="none",status="503"'
      expect(await metrics.read(`petstore_requests_total{${labels}}`)).toBe(21)
      for (const state of ['used', 'waiting']) {
        const count = () => metrics.read(`petstore_database_connections_${state}`)
        await until('aborted checks hold no connection', async () => (await count()) === 0)
      }
    } finally {
      proxy.flow() // otherwise the stop would wait for it
    }
    await recovered()
    expect((await service.rest('GET', '/pets')).status).toBe(200)
    await proxy.cut()
  })
})
