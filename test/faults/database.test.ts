/** The database fails in every way it can; the service says so, loses nothing, and recovers. */
import { connect } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import { type Connection, createConnection } from 'mysql2/promise'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { newDatabase } from '../support/database.ts'
import { eventually, outOfThree } from '../support/eventually.ts'
import { freeze, thaw } from '../support/freeze.ts'
import { newMetrics } from '../support/metrics.ts'
import { type MysqlServer, startMysql } from '../support/mysql.ts'
import { countPets } from '../support/pets.ts'
import { type Service, startService } from '../support/service.ts'

/** Milliseconds, as DATABASE_TIMEOUT. */
const TIMEOUT = 800

/** How many connections to the database a process has, and how many calls may wait for one. */
const CONNECTIONS = 10
const WAITING = 1_000

let mysql: MysqlServer
let service: Service
let admin: Connection

beforeAll(async () => {
  mysql = await startMysql()
})
afterAll(() => mysql.remove())

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

/** Checks that it is 503 with Retry-After, in time. */
async function expectUnavailable(call: () => ReturnType<typeof list>) {
  const start = performance.now()
  const answer = await call()
  expect(answer).toMatchObject({ status: 503, body: { code: 'SERVICE_UNAVAILABLE' } })
  expect(answer.headers.get('retry-after')).toBe('5')
  expect(performance.now() - start).toBeLessThan(TIMEOUT + 700)
}

/** Waits until requests succeed again, and gives the milliseconds that took. */
async function recovery(): Promise<number> {
  const start = performance.now()
  while ((await list()).status !== 200) {
    expect(performance.now() - start, 'it does not recover').toBeLessThan(10_000)
    await setTimeout(50)
  }
  return performance.now() - start
}

async function statementsLike(text: string): Promise<number> {
  const [rows] = await admin.query(
    'select id from information_schema.processlist where info like ? and id <> connection_id()',
    [`%${text}%`],
  )
  return (rows as unknown[]).length
}

test('it is stopped and started again', async () => {
  await list()
  await mysql.stop()
  await expectUnavailable(list)
  await expectUnavailable(create)
  await mysql.restart()
  expect(await recovery()).toBeLessThan(3_000)
  expect((await create()).status).toBe(201)
})

test('it is killed in the middle of a stream of creations: what was acknowledged is there', async () => {
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
  await eventually(() => expect(acknowledged.size).toBeGreaterThan(20))
  process.kill(mysql.pid, 'SIGKILL')
  await eventually(() => expect(statuses).toContain(503))
  await mysql.restart()
  await recovery()
  const before = acknowledged.size
  await eventually(() => expect(acknowledged.size).toBeGreaterThan(before + 20))
  done = true
  await Promise.all(writers)
  admin = await createConnection(service.databaseUrl)
  const [found] = await admin.query('select id, name from pets')
  const rows = found as { id: number; name: string }[]
  const kept = new Set(rows.map(({ id }) => Number(id)))
  expect([...acknowledged].filter((id) => !kept.has(id))).toEqual([])
  expect(new Set(rows.map(({ name }) => name)).size, 'nothing is doubled').toBe(rows.length)
  expect(statuses).toEqual(new Set([201, 503]))
})

test('it hangs: 503 in time, bounded memory, and no restart is needed', outOfThree, async () => {
  await list()
  await freeze(mysql.pid)
  try {
    await expectUnavailable(list)
    await expectUnavailable(create)
    const heap = () => process.memoryUsage().heapUsed / 2 ** 20
    const before = heap()
    // Many more than there are connections, again and again.
    for (let round = 0; round < 3; round++) {
      const answers = await Promise.all(Array.from({ length: 300 }, list))
      expect(answers.every(({ status }) => status === 503)).toBe(true)
    }
    expect(heap() - before).toBeLessThan(100)
  } finally {
    thaw(mysql.pid)
  }
  expect(await recovery()).toBeLessThan(3_000)
  expect((await create()).status).toBe(201)
})

test('a key that is not cached, while it hangs', outOfThree, async () => {
  await freeze(mysql.pid)
  try {
    await Promise.all([
      expectUnavailable(list),
      setTimeout(TIMEOUT / 2).then(() => expectUnavailable(list)),
    ])
  } finally {
    thaw(mysql.pid)
  }
  await recovery()
})

test('it is slow: the statement is ended on the server too', outOfThree, async () => {
  await list()
  await admin.query('lock tables pets write')
  await expectUnavailable(list)
  await expectUnavailable(create)
  await eventually(async () => expect(await statementsLike('`pets`')).toBe(0))
  await admin.query('unlock tables')
  await recovery()
  expect(await countPets(service.sql), 'a creation answered 503 is not made later').toBe(0)
})

test('the client goes: the statement is ended on the server', outOfThree, async () => {
  await list()
  await admin.query('lock tables pets write')
  const socket = connect(Number(new URL(service.origin).port), '127.0.0.1')
  socket.write(`GET /v1/pets HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${service.key}\r\n\r\n`)
  while ((await statementsLike('from `pets`')) === 0) await setTimeout(10)
  const start = performance.now()
  // A reset is noticed at once; an end of the client's side alone takes a second to tell from one.
  socket.resetAndDestroy()
  while ((await statementsLike('from `pets`')) > 0) await setTimeout(10)
  expect(performance.now() - start).toBeLessThan(TIMEOUT / 2)
  await admin.query('unlock tables')
  const statuses = () => service.logged.map((line) => JSON.parse(line).status)
  await eventually(() => expect(statuses()).toContain(499))
})

test('it has no connection left', outOfThree, async () => {
  const [[row]] = (await admin.query('select @@global.max_connections as max')) as unknown as [
    [{ max: number }],
  ]
  await admin.query('set global max_connections = 10')
  const others: Connection[] = []
  try {
    for (;;) others.push(await createConnection(mysql.url))
  } catch {} // until there are no more
  try {
    // The service's own connections are in use or never made: more callers than it has.
    const answers = await Promise.all(Array.from({ length: 3 * CONNECTIONS }, list))
    const statuses = new Set(answers.map(({ status }) => status))
    expect(statuses.has(503)).toBe(true)
    expect([...statuses].every((status) => status === 200 || status === 503)).toBe(true)
  } finally {
    for (const connection of others) connection.destroy()
    await admin.query(`set global max_connections = ${row.max}`)
  }
  await recovery()
})

test('more wait than may wait: the others are refused at once, and nobody waits in vain', async () => {
  const database = await newDatabase(mysql.url)
  const metrics = await newMetrics()
  const generous = await startService(
    { DATABASE_TIMEOUT: '30s', ...metrics.variables },
    { database },
  )
  const locker = await createConnection(database.url)
  const headers = { authorization: `Bearer ${generous.key}` }
  await generous.rest('GET', '/pets')
  await locker.query('lock tables pets write')
  const surplus = 190
  const statuses: number[] = []
  const calls = Array.from({ length: CONNECTIONS + WAITING + surplus }, async (_, call) => {
    // Each another page, so that none can be answered with what another one asked for.
    const { status, body } = await fetch(`${generous.origin}/v1/pets?cursor=${call}`, { headers })
    statuses.push(status)
    await body?.cancel()
  })
  // While the table is locked nobody else can have an answer, however long this takes.
  await eventually(() => expect(statuses.length).toBeGreaterThanOrEqual(surplus))
  expect(new Set(statuses)).toEqual(new Set([503]))
  await locker.query('unlock tables')
  await Promise.all(calls)
  expect(statuses.filter((status) => status === 503)).toHaveLength(surplus)
  expect(statuses.filter((status) => status === 200)).toHaveLength(CONNECTIONS + WAITING)
  await eventually(async () => {
    expect(await metrics.read('petstore_database_connections_used')).toBe(0)
    expect(await metrics.read('petstore_database_connections_waiting')).toBe(0)
  })
  locker.destroy()
  await generous.stop()
})

test('a slow database: a creation under a key is given up in time, too', outOfThree, async () => {
  await list()
  await admin.query('lock tables pets write, idempotency_keys write')
  const release = setTimeout(TIMEOUT * 0.7).then(() => admin.query('unlock tables'))
  const relock = release.then(() => admin.query('lock tables pets write'))
  const headers = { 'idempotency-key': '"slow"' }
  const body = { name: 'Rex', categoryId: 3 }
  try {
    await expectUnavailable(() => service.rest('POST', '/pets', { headers, body }))
  } finally {
    await relock
    await admin.query('unlock tables')
  }
})

test('a server that became a replica is left for one that may be written to', async () => {
  // root may write to a replica all the same, so the service is a user who may not.
  await admin.query('create user if not exists writer@127.0.0.1')
  await admin.query('grant select, insert, update, delete on *.* to writer@127.0.0.1')
  const url = new URL(service.databaseUrl)
  url.username = 'writer'
  const writer = await startService({}, { database: { url: url.href, remove: async () => {} } })
  await writer.sql.close() // its connections are those of the service alone
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
    const refused = await writer.rest('POST', '/pets', { body })
    expect(refused).toMatchObject({ status: 503, body: { code: 'SERVICE_UNAVAILABLE' } })
    // What refused it is given up: the next connection may lead to another server.
    await eventually(async () => {
      const kept = await connections()
      expect(before.filter((id) => kept.includes(id))).toEqual([])
    })
  } finally {
    await admin.query('set global read_only = 0')
  }
  expect((await writer.rest('POST', '/pets', { body })).status).toBe(201)
  expect(await countPets(service.sql)).toBe(2)
  await writer.stop()
})

test('a deadlock: the creation is tried again, and made once', async () => {
  // Not transactional, so that it counts the attempts that were rolled back.
  await admin.query('create table attempts (n int) engine = MyISAM')
  await admin.query('insert into attempts values (0)')
  await admin.query(`create trigger fail before insert on pets for each row begin
    update attempts set n = n + 1;
    if (select n from attempts) < 3 then
      signal sqlstate '40001' set mysql_errno = 1213, message_text = 'Deadlock found';
    end if;
  end`)
  const answer = await create()
  expect(answer.status).toBe(201)
  const [rows] = await admin.query('select (select count(*) from pets) pets, n from attempts')
  expect(rows).toEqual([{ pets: 1, n: 3 }])
})

test('a connection lost in the middle of a creation: not tried again without a key', async () => {
  await admin.query('create table attempts (n int) engine = MyISAM')
  await admin.query('insert into attempts values (0)')
  // Ends its own connection, after the row was written for all that the service knows.
  await admin.query(`create trigger fail before insert on pets for each row begin
    update attempts set n = n + 1;
    if (select n from attempts) < 2 then kill connection_id(); end if;
  end`)
  const attempts = async () => {
    const [rows] = await admin.query('select n from attempts')
    return rows
  }
  expect((await create()).status).toBe(503)
  expect(await attempts()).toEqual([{ n: 1 }])
  await admin.query('update attempts set n = 0')
  const withKey = await service.rest('POST', '/pets', {
    headers: { 'idempotency-key': '"a"' },
    body: { name: 'Rex', categoryId: 3 },
  })
  expect(withKey.status).toBe(201)
  expect(await attempts()).toEqual([{ n: 2 }])
})
