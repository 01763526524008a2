/** Failures of the database: the service returns 503, loses nothing, and recovers. */
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

/** The connections of a process to the database, and the calls that may wait for one. */
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

/** Checks that a call returns 503 with Retry-After, in time. */
async function expectUnavailable(call: () => ReturnType<typeof list>) {
  const start = performance.now()
  const answer = await call()
  expect(answer).toMatchObject({ status: 503, body: { code: 'SERVICE_UNAVAILABLE' } })
  expect(answer.headers.get('retry-after')).toBe('5')
  expect(performance.now() - start).toBeLessThan(TIMEOUT + 700)
}

/** Waits until requests succeed again; returns the milliseconds. */
async function recovery(): Promise<number> {
  const start = performance.now()
  while ((await list()).status !== 200) {
    expect(performance.now() - start, 'the service does not recover').toBeLessThan(10_000)
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

test('a restart of the database: 503 meanwhile, then recovery', async () => {
  await list()
  await mysql.stop()
  await expectUnavailable(list)
  await expectUnavailable(create)
  await mysql.restart()
  expect(await recovery()).toBeLessThan(3_000)
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
  expect(new Set(rows.map(({ name }) => name)).size, 'no pet is duplicated').toBe(rows.length)
  expect(statuses).toEqual(new Set([201, 503]))
})

test(
  'a database that hangs: 503 in time, bounded memory, recovery without restart',
  outOfThree,
  async () => {
    await list()
    await freeze(mysql.pid)
    try {
      await expectUnavailable(list)
      await expectUnavailable(create)
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
    expect(await recovery()).toBeLessThan(3_000)
    expect((await create()).status).toBe(201)
  },
)

test('a key that is not cached, while the database hangs: 503 in time', outOfThree, async () => {
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

test('a timeout ends the statement on the database server, too', outOfThree, async () => {
  await list()
  await admin.query('lock tables pets write')
  await expectUnavailable(list)
  await expectUnavailable(create)
  await eventually(async () => expect(await statementsLike('`pets`')).toBe(0))
  await admin.query('unlock tables')
  await recovery()
  expect(
    await countPets(service.sql),
    'the number of pets: a creation with 503 is not executed later',
  ).toBe(0)
})

test(
  'a client that disconnects ends the statement on the database server',
  outOfThree,
  async () => {
    await list()
    await admin.query('lock tables pets write')
    const socket = connect(Number(new URL(service.origin).port), '127.0.0.1')
    socket.write(`GET /v1/pets HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${service.key}\r\n\r\n`)
    while ((await statementsLike('from `pets`')) === 0) await setTimeout(10)
    const start = performance.now()
    // A reset is noticed at once; a half-close takes a second to distinguish from a disconnect.
    socket.resetAndDestroy()
    while ((await statementsLike('from `pets`')) > 0) await setTimeout(10)
    expect(performance.now() - start).toBeLessThan(TIMEOUT / 2)
    await admin.query('unlock tables')
    const statuses = () => service.logged.map((line) => JSON.parse(line).status)
    await eventually(() => expect(statuses()).toContain(499))
  },
)

test(
  'a database without free connections: only 200 or 503, then recovery',
  outOfThree,
  async () => {
    const [[row]] = (await admin.query('select @@global.max_connections as max')) as unknown as [
      [{ max: number }],
    ]
    await admin.query('set global max_connections = 10')
    const others: Connection[] = []
    try {
      for (;;) others.push(await createConnection(mysql.url))
    } catch {} // the limit is reached
    try {
      // More calls than the service has connections.
      const answers = await Promise.all(Array.from({ length: 3 * CONNECTIONS }, list))
      const statuses = new Set(answers.map(({ status }) => status))
      expect(statuses.has(503)).toBe(true)
      expect([...statuses].every((status) => status === 200 || status === 503)).toBe(true)
    } finally {
      for (const connection of others) connection.destroy()
      await admin.query(`set global max_connections = ${row.max}`)
    }
    await recovery()
  },
)

test('calls beyond the queue return 503 at once, and all waiting calls succeed', async () => {
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
    // Each call reads another page, so that calls cannot share a query.
    const { status, body } = await fetch(`${generous.origin}/v1/pets?cursor=${call}`, { headers })
    statuses.push(status)
    await body?.cancel()
  })
  // While the table is locked, the other calls cannot return.
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

test(
  'a slow database: a creation with an Idempotency-Key returns 503 in time, too',
  outOfThree,
  async () => {
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
  },
)

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

test('a deadlock: the creation is retried, and executed once', async () => {
  // Not transactional, so that it counts attempts that are rolled back.
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

test('a connection that is lost amid a creation: a retry only with an Idempotency-Key', async () => {
  await admin.query('create table attempts (n int) engine = MyISAM')
  await admin.query('insert into attempts values (0)')
  // Kills its own connection: the service cannot know whether the row was written.
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
