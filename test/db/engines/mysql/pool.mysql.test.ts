/** The pool of connections to a MySQL server: its limits, and the checks of idle connections. */

import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import { sql } from 'kysely'
import {
  afterAll,
  afterEach,
  beforeAll,
  beforeEach,
  describe,
  expect,
  onTestFinished,
  test,
  vi,
} from 'vitest'
import { connect } from '../../../../db/connect.ts'
import { Deadline } from '../../../../db/deadline.ts'
import { MysqlPool, type Pooled, socketOf } from '../../../../db/engines/mysql/pool.ts'
import { OverloadedError } from '../../../../db/errors.ts'
import { execute } from '../../../../db/statement.ts'
import type { Database } from '../../../../db/tables.ts'
import { petStore } from '../../../../src/petstore/pets/store.ts'
import { outOfThree } from '../../../support/eventually.ts'
import { type Instance, running, startInstance, until } from '../../../support/instance.ts'
import { occupy } from '../../../support/occupy.ts'
import { openSql } from '../../../support/sql.ts'

const rex = { name: 'Rex', categoryId: 3 }

/** Milliseconds of DATABASE_TIMEOUT, and the maximum time of a response without a lost connection. */
const TIMEOUT = 1_500
const SOON = 1_000

/** Milliseconds after which a creation no longer waits for the batch before it. */
const LATE = 60

/** All sockets, with their timers: https://docs.kernel.org/networking/proc_net_tcp.html */
const TCP = '/proc/net/tcp'
const ESTABLISHED = '01'
const KEEP_ALIVE = '02'

describe('connections to a server', outOfThree, () => {
  let service: Instance
  let proxy: NonNullable<Instance['proxy']>
  beforeAll(async () => {
    service = await startInstance({ DATABASE_TIMEOUT: `${TIMEOUT}ms` })
    if (!service.proxy) throw new Error('There is no proxy')
    proxy = service.proxy
  })
  afterAll(() => service.stop())
  beforeEach(async () => {
    expect((await service.rest('GET', '/pets')).status).toBe(200)
    await service.sql('delete from pets')
  })
  const used = () => service.metric('petstore_database_connections_used')
  /** Lists with different cursors do not share a query. */
  const list = (page: number) => service.rest('GET', `/pets?cursor=${page}`)
  let serial = 0
  const create = () => ({ headers: { 'idempotency-key': `"key ${serial++}"` }, body: rex })
  /** Starts creations, none of which share a transaction, until so many wait for a connection. */
  async function crowd({ rest, metric }: Instance, waiting: number) {
    const calls: ReturnType<typeof rest>[] = []
    while ((await metric('petstore_database_connections_waiting')) < waiting) {
      calls.push(rest('POST', '/pets', create()))
      await setTimeout(LATE)
    }
    return calls
  }

  /** Makes the service open this many connections, which are idle afterwards. */
  async function warm(count: number) {
    await using locker = await openSql(service.databaseUrl)
    await locker('lock tables pets write')
    const lists = await occupy(count, (query) => service.rest('GET', `/pets${query}`), used)
    await locker('unlock tables')
    await Promise.all(lists)
    await until('all are idle', async () => (await used()) === 0)
    expect(proxy.clients).toBeGreaterThanOrEqual(count)
  }

  async function timed(call: () => Promise<{ status: number }>) {
    const start = performance.now()
    const { status } = await call()
    return { status, took: performance.now() - start }
  }

  test('while writes wait for a lock, reads find a connection', async () => {
    const generous = await startInstance()
    await using rival = await openSql(generous.databaseUrl)
    await rival('lock tables pets read')
    const keyed = await crowd(generous, 4)
    const plain = Array.from({ length: 15 }, () => generous.rest('POST', '/pets', { body: rex }))
    const inserting = async () => (await running(generous.sql, 'insert into `pets`%')).length
    await until('writes wait for the table', async () => (await inserting()) === 6)
    const queue = () => generous.metric('petstore_database_connections_waiting')
    for (let page = 0; page < 10; page++) {
      const { status, took } = await timed(() => generous.rest('GET', `/pets?cursor=${page}`))
      expect(status).toBe(200)
      expect(took).toBeLessThan(SOON)
      expect((await fetch(`${generous.origin}/readyz`)).status).toBe(200)
    }
    expect(await inserting()).toBe(6)
    await rival('unlock tables')
    const answers = await Promise.all([...keyed, ...plain])
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 201))
    expect(await generous.countPets()).toBe(answers.length)
    expect(await generous.metric('petstore_database_connections_used')).toBe(0)
    expect(await queue()).toBe(0)
    await generous.stop()
  })

  test('a transaction that begins with a read counts as a write', async () => {
    const usage = { used: 0, waiting: 0 }
    const db = await connect(service.databaseUrl, { usage })
    const pets = (executor: Database) => executor.selectFrom('pets').select('id').execute()
    const { promise: end, resolve } = Promise.withResolvers<void>()
    const transactions = Array.from({ length: 8 }, () =>
      db.transaction().execute(async (transaction) => {
        await pets(transaction)
        await end
        await pets(transaction)
      }),
    )
    try {
      await until('the others wait', () => usage.used + usage.waiting === 8 && usage.used > 5)
      expect(usage).toEqual({ used: 6, waiting: 2 })
      expect(await Promise.all(Array.from({ length: 5 }, () => pets(db)))).toHaveLength(5)
      // Concurrent lists share a query, which is a read too.
      using soon = new Deadline(SOON)
      const { list } = petStore(db)
      expect(await Promise.all([1, 2].map((limit) => list({ limit }, soon)))).toHaveLength(2)
    } finally {
      resolve()
    }
    await Promise.all(transactions)
    expect(usage).toEqual({ used: 0, waiting: 0 })
    await db.destroy()
  })

  test('a statement that is no plain read counts as a write', async () => {
    const usage = { used: 0, waiting: 0 }
    const db = await connect(service.databaseUrl, { usage })
    await using rival = await openSql(service.databaseUrl)
    await rival('lock tables pets write')
    const four = (execute: () => Promise<unknown>) => Array.from({ length: 4 }, execute)
    const statements = [
      ...four(() => db.updateTable('pets').set({ status: 'sold' }).execute()),
      ...four(() => sql`select id from pets`.execute(db)),
    ]
    await until('the others wait', () => usage.used + usage.waiting === 8 && usage.used > 5)
    expect(usage).toEqual({ used: 6, waiting: 2 })
    await rival('unlock tables')
    await Promise.all(statements)
    await db.destroy()
  })

  test('a transaction without statements does not fail because of a call before it', async () => {
    const db = await connect(service.databaseUrl)
    const gone = new Deadline(20_000)
    gone.giveUp(new Error('Gone'))
    const ids = db.selectFrom('pets').select('id')
    await expect(execute(db, ids, gone)).rejects.toThrow('Gone')
    const nothing = db.transaction().execute(async () => 'done')
    expect(await nothing).toBe('done')
    await db.destroy()
  })

  test('a pool ends in any state of its connections', async () => {
    const database = new URL(service.databaseUrl)
    database.host = `127.0.0.1:${proxy.port}`
    const ask = (db: Database) => db.selectFrom('pets').select('id').execute()

    const broken = await connect(database.href)
    const lost = proxy.breakAt(/^select `id` from `pets`$/, 'before')
    await expect(ask(broken)).rejects.toThrow('cannot be used')
    await broken.destroy()
    await lost

    await using silent = await listenSilently()
    database.host = `127.0.0.1:${silent.port}`
    const unconnected = await connect(database.href, { timeout: 500 })
    const result = ask(unconnected).catch((error) => error)
    await until('it connects', () => silent.clients > 0)
    await unconnected.destroy()
    expect(await result).toMatchObject({ message: 'The database cannot be used right now' })
  })

  test('a connection on which the server says nothing is closed at the timeout', async () => {
    await using silent = await listenSilently()
    const db = await connect(`mysql://root@127.0.0.1:${silent.port}/pets`, { timeout: 300 })
    await expect(db.selectFrom('pets').select('id').execute()).rejects.toThrow('cannot be used')
    await until('it is closed', () => silent.clients === 0, 5_000)
    await db.destroy()
  })

  test('a pool that ends waits for the rows of a statement', async () => {
    const db = await connect(service.databaseUrl)
    const slow = sql<{ woken: bigint }>`select sleep(1) as woken`.execute(db)
    await using rival = await openSql(service.databaseUrl)
    await until('it runs', async () => (await running(rival, 'select sleep(1)%')).length === 1)
    const ended = db.destroy()
    expect((await slow).rows).toEqual([{ woken: 0n }])
    await ended
  })

  test('a pool ends, although the deadline of a statement passes meanwhile', async () => {
    const db = await connect(service.databaseUrl, { timeout: 1_000 })
    await using rival = await openSql(service.databaseUrl)
    await rival('lock tables pets write')
    const result = db.selectFrom('pets').select('name').execute()
    const refused = expect(result).rejects.toThrow('cannot be used')
    const pattern = 'select `name` from `pets`'
    await until('it waits', async () => (await running(rival, pattern)).length === 1)
    const ended = db.destroy().then(() => 'ended')
    expect(await Promise.race([ended, setTimeout(10_000, 'hangs')])).toBe('ended')
    await refused
  })

  test('connections that open after their calls were aborted are used by later calls', async () => {
    const database = new URL(service.databaseUrl)
    database.host = `127.0.0.1:${proxy.port}`
    const db = await connect(database.href, { timeout: 20_000 })
    const ask = (deadline: Deadline) =>
      execute(db, db.selectFrom('pets').select('id').limit(1), deadline)
    proxy.stall()
    const gone = new Deadline(20_000)
    const outcomes = Promise.allSettled(Array.from({ length: 10 }, () => ask(gone)))
    await setTimeout(100)
    gone.giveUp(new Error('Gone'))
    expect((await outcomes).map(({ status }) => status)).toEqual(Array(10).fill('rejected'))
    proxy.flow()
    const deadline = new Deadline(5_000)
    expect((await ask(deadline)).rows).toEqual([])
    deadline.clear()
    await db.destroy()
  })

  describe('a pool of its own', () => {
    const deadline = new Deadline(Number.POSITIVE_INFINITY)
    const takeAll = (of = deadline) =>
      Promise.all(Array.from({ length: 10 }, () => pool.take(of, false)))
    let pool: MysqlPool
    let held: Pooled[]
    beforeEach(async () => {
      const database = new URL(service.databaseUrl)
      database.host = `127.0.0.1:${proxy.port}`
      pool = new MysqlPool({ uri: database.href })
      held = await takeAll()
    })
    afterEach(() => pool.end())
    const giveBackAll = () => {
      for (const pooled of held) pool.giveBack(pooled)
    }
    const areClosed = () => held.every(({ connection }) => socketOf(connection).destroyed)
    /** Ends calls after a time in which a ping gets no answer, and has not failed. */
    async function abort(calls: (of: Deadline) => Promise<unknown>) {
      const gone = new Deadline(Number.POSITIVE_INFINITY)
      const taken = expect(calls(gone)).rejects.toThrow('Gone')
      await setTimeout(100)
      gone.giveUp(new Error('Gone'))
      await taken
    }

    test('connections whose calls are aborted during a ping are used by later calls', async () => {
      giveBackAll()
      proxy.stall()
      pool.checkIdle()
      await abort(takeAll)
      proxy.flow()
      const before = new Set(held)
      held = await takeAll()
      expect(held.every((pooled) => before.has(pooled))).toBe(true)
      giveBackAll()
    })

    test.each([
      ['reads', false, 1_000],
      ['writes, beside six that wait for their turn to read', true, 1_006],
    ])('a thousand %s may wait for a connection, and no more', async (_, isWriting, most) => {
      const gone = new Deadline(Number.POSITIVE_INFINITY)
      const calls = Array.from({ length: most + 1 }, () => pool.take(gone, isWriting))
      gone.giveUp(new Error('Gone'))
      const outcomes = await Promise.allSettled(calls)
      giveBackAll()
      const reasons = outcomes.map((outcome) => (outcome as PromiseRejectedResult).reason)
      expect(reasons.pop()).toBeInstanceOf(OverloadedError)
      expect(new Set(reasons.map(({ message }) => message))).toEqual(new Set(['Gone']))
    })

    test('writes that are aborted while they wait for a connection do not count as writes', async () => {
      await abort((of) => Promise.all(Array.from({ length: 6 }, () => pool.take(of, true))))
      giveBackAll()
      pool.giveBack(await pool.take(deadline, true))
    })

    test.each(['idle', 'used'])(
      'when one that is %s is lost, idle ones are closed if they do not answer either',
      async (state) => {
        const [lost, ...others] = held as [Pooled, ...Pooled[]]
        for (const pooled of others) pool.giveBack(pooled)
        if (state === 'idle') pool.giveBack(lost)
        proxy.stall()
        socketOf(lost.connection).destroy(new Error('Lost'))
        await until('all are closed', areClosed)
        if (state === 'used') pool.giveBack(lost)
        proxy.flow()
      },
    )

    test('while idle connections are pinged, the statement of another one continues', async () => {
      const [busy, ...idle] = held as [Pooled, ...Pooled[]]
      for (const pooled of idle) pool.giveBack(pooled)
      const sleeping = busy.connection.promise().query('select sleep(1) as woken')
      pool.checkIdle()
      expect((await sleeping)[0]).toEqual([{ woken: 0 }])
      pool.giveBack(busy)
    })

    test('while one connection is slow, the others are pinged once', async () => {
      giveBackAll()
      const slow = await pool.take(deadline, false)
      await setTimeout(600)
      pool.giveBack(await pool.take(deadline, false))
      await until('they answered', () => held.every(({ check }) => check === undefined))
      await setTimeout(600)
      proxy.stall()
      using soon = new Deadline(SOON)
      const others = await Promise.all(Array.from({ length: 9 }, () => pool.take(soon, false)))
      proxy.flow()
      for (const pooled of [slow, ...others]) pool.giveBack(pooled)
    })

    test('while one connection is slow, others that worked meanwhile are not pinged', async () => {
      giveBackAll()
      const [slow, ...others] = (await takeAll()) as [Pooled, ...Pooled[]]
      await setTimeout(600)
      for (const pooled of others) pool.giveBack(pooled)
      proxy.stall()
      using soon = new Deadline(SOON)
      const outcomes = await Promise.allSettled(others.map(() => pool.take(soon, false)))
      proxy.flow()
      pool.giveBack(slow)
      for (const outcome of outcomes) {
        if (outcome.status === 'fulfilled') pool.giveBack(outcome.value)
      }
      expect(outcomes.map(({ status }) => status)).toEqual(others.map(() => 'fulfilled'))
    })

    test('a ping that is answered while the process stands still is no lost connection', async () => {
      giveBackAll()
      // The proxy runs in this process, too.
      const direct = new MysqlPool({ uri: service.databaseUrl })
      const pooled = await direct.take(deadline, false)
      direct.giveBack(pooled)
      direct.checkIdle()
      const end = performance.now() + 700
      while (performance.now() < end);
      expect(await direct.take(deadline, false)).toBe(pooled)
      direct.giveBack(pooled)
      await direct.end()
    })

    test('a connection that does not answer its ping is not taken', async () => {
      giveBackAll()
      proxy.forget()
      pool.checkIdle()
      const taken = await pool.take(deadline, false)
      expect(held).not.toContain(taken)
      pool.giveBack(taken)
      // The proxy has dropped the connections of the service, too: its next call fails.
      expect((await list(0)).status).toBe(503)
    })

    test('connections that are idle for half a minute are closed', async () => {
      giveBackAll()
      onTestFinished(() => void vi.useRealTimers())
      vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 25_000 })
      await setTimeout(1_500) // mysql2 checks them each second
      expect(areClosed()).toBe(false)
      vi.setSystemTime(Date.now() + 10_000)
      await until('all are closed', areClosed)
      const areForgotten = () => held.every(({ hasEnded }) => hasEnded)
      await until('none is checked any more', areForgotten)
    })

    test('at its end it closes connections to a server that hangs', async () => {
      giveBackAll()
      proxy.stall()
      await pool.end()
      await until('all are closed', areClosed)
      proxy.flow()
    })
  })

  test('writes that are aborted while they wait leave the queue', async () => {
    const patient = await startInstance({ DATABASE_TIMEOUT: '8s' })
    const count = (state: string) => patient.metric(`petstore_database_connections_${state}`)
    await using rival = await openSql(patient.databaseUrl)
    for (let round = 0; round < 2; round++) {
      await rival('lock tables pets read')
      const calls = await crowd(patient, 2)
      const controller = new AbortController()
      const headers = {
        authorization: `Bearer ${patient.key}`,
        'content-type': 'application/json',
        'idempotency-key': '"aborted"',
      }
      await until('two wait for them', async () => (await count('waiting')) === 2)
      const body = JSON.stringify(rex)
      const init = { method: 'POST', headers, body, signal: controller.signal }
      const left = fetch(`${patient.origin}/v1/pets`, init).catch(() => 'aborted')
      await until('three wait', async () => (await count('waiting')) === 3)
      controller.abort()
      expect(await left).toBe('aborted')
      await until('two wait', async () => (await count('waiting')) === 2)
      const statuses = (await Promise.all(calls)).map(({ status }) => status)
      expect(statuses, '503 at the deadline').toEqual(calls.map(() => 503))
      await rival('unlock tables')
      await until(
        'none is held',
        async () => (await count('used')) + (await count('waiting')) === 0,
      )
    }
    const answers = Array.from({ length: 12 }, () => patient.rest('POST', '/pets', create()))
    expect((await Promise.all(answers)).map(({ status }) => status)).toEqual(Array(12).fill(201))
    await patient.stop()
  })

  test('of idle connections that a router has dropped, at most one fails a call', async () => {
    await warm(7)
    proxy.forget()
    const answers: Awaited<ReturnType<typeof timed>>[] = []
    for (let page = 0; page < 8; page++) answers.push(await timed(() => list(page)))
    const [first, ...others] = answers
    expect(first?.status).toBe(503)
    expect(others.map(({ status }) => status)).toEqual(Array(7).fill(200))
    for (const { took } of others) expect(took).toBeLessThan(SOON)
  })

  test('while one call hangs, later calls skip the dropped connections', async () => {
    await warm(7)
    proxy.forget()
    const first = list(0)
    await setTimeout(TIMEOUT / 2)
    for (let page = 1; page < 8; page++) {
      const { status, took } = await timed(() => service.rest('POST', '/pets', create()))
      expect(status).toBe(201)
      expect(took).toBeLessThan(SOON)
    }
    expect((await first).status).toBe(503)
  })

  test('a connection that works is kept after another one was lost', async () => {
    await warm(4)
    const before = proxy.clients
    const hanging = proxy.hangAt(/^select .*from `pets`/)
    expect((await list(0)).status).toBe(503)
    await hanging
    await until('it is closed', () => proxy.clients === before - 1)
    expect((await list(1)).status).toBe(200)
    expect(proxy.clients).toBe(before - 1)
    // It is pinged again after the next loss.
    proxy.forget()
    const statuses: number[] = []
    for (let page = 2; page < 6; page++) statuses.push((await list(page)).status)
    expect(statuses).toEqual([503, 200, 200, 200])
  })

  test('the connection for a kill closes if the server hangs', async () => {
    const before = proxy.clients
    // The first query of the connection for the kill.
    const hanging = proxy.hangAt(/^select .*from `pets`/)
    const ending = proxy.hangAt(/^show/)
    expect((await list(0)).status).toBe(503)
    await hanging
    await ending
    expect(proxy.clients, 'one is lost, and one is for the kill').toBe(before)
    await until('no connection hangs', () => proxy.clients < before, 2 * TIMEOUT)
  })

  // A load balancer chooses the server of the connection for a kill.
  test.each([
    ['the same server', true, (text: string) => text],
    ['another server', false, (text: string) => text.replace("'hostname'", "'none'")],
    [
      'a server that has started since',
      false,
      (text: string) =>
        text.replace(/^show global.*/, "select 'Uptime' as Variable_name, 0 as Value"),
    ],
  ])('a session is killed only on its own server: %s', async (_, isKilled, change) => {
    const url = Object.assign(new URL(service.databaseUrl), { host: `127.0.0.1:${proxy.port}` })
    const db = await connect(url.href, { timeout: 500 })
    onTestFinished(() => db.destroy())
    onTestFinished(() => proxy.rewrite((text) => text))
    await sql`select 1`.execute(db)
    proxy.rewrite(change)
    const clients = proxy.clients
    const before = proxy.statements.length
    const sent = (pattern: RegExp) =>
      proxy.statements.slice(before).some((text) => pattern.test(text))
    await expect(sql`select sleep(2)`.execute(db)).rejects.toThrow('cannot be used')
    await until('its server is asked', () => sent(/^show variables/))
    await until('both connections are closed', () => proxy.clients < clients)
    expect(sent(/^kill \d+$/)).toBe(isKilled)
  })

  test('the session of a transaction is killed once, and its rollback is not sent', async () => {
    const url = Object.assign(new URL(service.databaseUrl), { host: `127.0.0.1:${proxy.port}` })
    const db = await connect(url.href, { timeout: 500 })
    onTestFinished(() => db.destroy())
    const clients = proxy.clients
    const before = proxy.statements.length
    const sent = (pattern: RegExp) =>
      proxy.statements.slice(before).filter((text) => pattern.test(text)).length
    const sleep = db.transaction().execute((db) => sql`select sleep(2)`.execute(db))
    await expect(sleep).rejects.toThrow('cannot be used')
    await until('it is killed', () => sent(/^kill \d+$/) > 0)
    await until('no connection is left', () => proxy.clients <= clients)
    expect(sent(/^kill \d+$/)).toBe(1)
    expect(sent(/^rollback/)).toBe(0)
  })

  test.runIf(existsSync(TCP))('TCP probes the server after ten seconds of silence', () => {
    const toProxy = `:${proxy.port.toString(16).toUpperCase().padStart(4, '0')}`
    const lines = readFileSync(TCP, 'utf8').split('\n')
    const found = lines
      .map((line) => line.trim().split(/\s+/))
      .filter(([, , remote, state]) => remote?.endsWith(toProxy) && state === ESTABLISHED)
    expect(found).not.toEqual([])
    const left: number[] = []
    for (const [, , , , , timer = ''] of found) {
      const [kind, hundredths = ''] = timer.split(':')
      expect(kind, timer).toBe(KEEP_ALIVE)
      left.push(Number.parseInt(hundredths, 16))
    }
    expect(Math.max(...left)).toBeLessThanOrEqual(1_000)
    expect(Math.max(...left), 'one was used just now').toBeGreaterThan(500)
  })
})

/** A server that accepts connections, and never answers. */
async function listenSilently() {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket.on('error', () => {}).on('close', () => sockets.delete(socket)))
    socket.resume() // otherwise it would not notice the end
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return {
    port: (server.address() as AddressInfo).port, // it listens on a port
    get clients() {
      return sockets.size
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}
