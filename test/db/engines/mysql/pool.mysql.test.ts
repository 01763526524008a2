/** The pool of connections to a MySQL server: its limits, lost connections, kills, and its end. */
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import { sql } from 'kysely'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { connect } from '../../../../db/connect.ts'
import type { Database, RootDatabase } from '../../../../db/database.ts'
import { Deadline } from '../../../../db/deadline.ts'
import { DatabaseTimeoutError } from '../../../../db/errors.ts'
import { pages } from '../../../../db/plans/pages.ts'
import { execute } from '../../../../db/statement.ts'
import { inTransaction } from '../../../../db/transaction.ts'
import { running, until } from '../../../support/instance.ts'
import { sharedProxiedDatabase } from '../../../support/proxy.ts'
import { openSql } from '../../../support/sql.ts'

/** Milliseconds that a statement may take. */
const TIMEOUT = 1_500

const { direct, proxy, url, admin } = await sharedProxiedDatabase()

/** A pool, which the end of the test closes, and its numbers. */
async function newPool(settings: { timeout?: number } = {}, to = url) {
  const usage = { used: 0, waiting: 0 }
  const db = await connect(to, { timeout: TIMEOUT, usage, ...settings })
  onTestFinished(async () => {
    await db.destroy()
    await until('all are closed', () => proxy.clients === 0)
  })
  return { db, usage }
}
const list = (db: Database, deadline?: Deadline) =>
  execute(db, db.kysely.selectFrom('pets').select('id'), deadline)
const pagesOfKeys = pages({
  id: 'api_keys.id',
  select: (db) => db.kysely.selectFrom('api_keys').select('id'),
  item: ({ id }) => id,
})
const write = (db: Database) => execute(db, db.kysely.updateTable('pets').set({ status: 'sold' }))
const idOf = async (db: Database) =>
  (await execute(db, sql<{ id: bigint }>`select connection_id() as id`)).rows[0]?.id

/** Opens this many connections, which are idle afterwards. Returns their number, greater where a busy machine takes a second for one. */
async function warm(db: RootDatabase, count: number): Promise<number> {
  await using locker = await openSql(direct.url)
  await locker('lock tables pets write')
  using deadline = new Deadline(30_000) // a busy machine may take longer than TIMEOUT to open them
  const lists = Promise.all(Array.from({ length: count }, () => list(db, deadline)))
  await until('all wait', async () => (await running(admin, 'select `id`%')).length === count)
  await locker('unlock tables')
  await lists
  return proxy.clients
}

describe('the limits', () => {
  test.each<[string, (db: RootDatabase) => Promise<unknown>]>([
    ['a change', write],
    ['a transaction', (db) => inTransaction(db, write)],
    ['a transaction that begins with a read', (db) => inTransaction(db, list)],
    ['raw SQL', (db) => execute(db, sql`select id from pets`)],
  ])(
    '%s is a write, and five writes of a line that wait leave connections for others',
    async (_, work) => {
      const { db, usage } = await newPool({ timeout: 30_000 })
      await using rival = await openSql(direct.url)
      await rival('lock tables pets write')
      const writes = Array.from({ length: 8 }, () => work(db))
      await until('three wait for their turn', () => usage.used === 5 && usage.waiting === 3)
      const keys = () => execute(db, db.kysely.selectFrom('api_keys').select('id'))
      expect(await Promise.all(Array.from({ length: 5 }, keys))).toHaveLength(5)
      // Concurrent pages share a query, which is a read too.
      using soon = new Deadline(10_000)
      await Promise.all([1, 2].map((limit) => db.runner.run(pagesOfKeys, { limit }, soon)))
      expect(usage).toEqual({ used: 5, waiting: 3 })
      await rival('unlock tables')
      await Promise.all(writes)
      expect(usage).toEqual({ used: 0, waiting: 0 })
    },
  )

  test('connections that open after their calls were aborted are used by later calls', async () => {
    const { db } = await newPool({ timeout: 20_000 })
    proxy.stall()
    using gone = new Deadline(20_000)
    const ask = () => execute(db, db.kysely.selectFrom('pets').select('id'), gone)
    const outcomes = Promise.allSettled(Array.from({ length: 10 }, ask))
    await until('one is being opened', () => proxy.clients > 0)
    gone.giveUp(new Error('Gone'))
    expect((await outcomes).map(({ status }) => status)).toEqual(Array(10).fill('rejected'))
    expect(proxy.clients, 'one at a time').toBe(1)
    proxy.flow()
    await list(db)
    expect(proxy.clients).toBe(1)
  })
})

test('a connection that is being opened while a server refuses a write is replaced, too', async () => {
  const { db } = await newPool()
  await list(db)
  const before = proxy.opened
  const held = proxy.holdAt(/^show variables/)
  const work = inTransaction(db, async (inside) => {
    const release = await held
    void proxy.failAt(/^update `pets`/, 1290)
    await write(inside).finally(release)
  })
  const listed = list(db)
  await expect(work).rejects.toThrow()
  await listed
  expect(proxy.opened - before).toBe(2)
})

test('after a peak one connection serves the calls, so that the others end for want of use', async () => {
  const { db } = await newPool()
  await warm(db, 6)
  const first = await idOf(db)
  for (let call = 0; call < 12; call++) expect(await idOf(db)).toBe(first)
})

describe('lost connections', () => {
  test('of idle connections that a router has dropped, at most one fails a call', async () => {
    const { db, usage } = await newPool({ timeout: 20_000 })
    await warm(db, 7)
    const before = proxy.unheard
    proxy.forget()
    using gone = new Deadline(20_000)
    let hasEnded = false // as it does where a busy machine takes half a second to begin
    const first = execute(db, db.kysely.selectFrom('pets').select('id'), gone)
      .catch(() => {})
      .finally(() => {
        hasEnded = true
      })
    await until('it has a connection', () => usage.used === 1 || hasEnded)
    await setTimeout(600) // half a second after its last use, a connection is checked
    gone.giveUp(new Error('Gone'))
    await first
    for (let call = 0; call < 8; call++) await list(db)
    // The statement, and a ping for its kill and for the first call: without an answer these close all others.
    expect(proxy.unheard - before).toBeLessThanOrEqual(3)
  })

  test('a connection that works is kept after another one was lost', async () => {
    const { db } = await newPool()
    const opened = await warm(db, 4)
    const hanging = proxy.hangAt(/^select .*from `pets`/)
    await expect(list(db)).rejects.toThrow('cannot be used')
    await hanging
    await until('it is closed', () => proxy.clients < opened)
    await list(db)
    expect(proxy.clients).toBe(opened - 1)
  })

  test('a session that the server has ended is not used, and the driver writes no line', async () => {
    const { db } = await newPool()
    await list(db)
    await setTimeout(600)
    const written = vi.spyOn(console, 'error')
    onTestFinished(() => written.mockRestore())
    proxy.expire()
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 200) // it arrives, and is not read yet
    expect((await list(db)).rows).toEqual([])
    expect(written).not.toHaveBeenCalled()
  })

  test('a ping that is answered while the process stands still is no lost connection', async () => {
    // The proxy runs in this process, too.
    const { db } = await newPool({}, direct.url)
    const before = await idOf(db)
    await setTimeout(600)
    const after = idOf(db)
    await Promise.resolve() // the ping is sent
    const end = performance.now() + 700
    while (performance.now() < end);
    expect(await after).toBe(before)
  })
})

// All sockets, with their timers: https://docs.kernel.org/networking/proc_net_tcp.html
const TCP = '/proc/net/tcp'
test.runIf(existsSync(TCP))('TCP probes the server after ten seconds of silence', async () => {
  const { db } = await newPool()
  await list(db)
  const toProxy = `:${proxy.port.toString(16).toUpperCase().padStart(4, '0')}`
  const lines = readFileSync(TCP, 'utf8').split('\n')
  const left = lines
    .map((line) => line.trim().split(/\s+/))
    // Established, with a timer for the probe.
    .filter(
      ([, , to, state, , timer]) =>
        to?.endsWith(toProxy) && `${state} ${timer}`.startsWith('01 02'),
    )
    .map(([, , , , , timer = '']) => Number.parseInt(timer.slice(3), 16))
  expect(Math.max(...left), 'hundredths of a second').toBeGreaterThan(500)
  expect(Math.max(...left)).toBeLessThanOrEqual(1_000)
})

describe('kills', () => {
  const sleep = async (db: Database) => {
    using deadline = new Deadline(20_000)
    const sleeps = async () => (await running(admin, 'select sleep(20)%')).length > 0
    void until('it runs', sleeps).then(() => deadline.giveUp(new DatabaseTimeoutError(500)))
    await execute(db, sql`select sleep(20)`, deadline)
  }
  const sentSince = (before: number, pattern: RegExp) =>
    proxy.statements.slice(before).filter((text) => pattern.test(text)).length

  // A load balancer chooses the server of the connection for a kill.
  test.each([
    ['the same server', 1, (text: string) => text],
    ['another server', 0, (text: string) => text.replace("'hostname'", "'none'")],
    [
      'a server that has started since',
      0,
      (text: string) =>
        text.replace(/^show global.*/, "select 'Uptime' as Variable_name, 0 as Value"),
    ],
  ])('a session is killed only on its own server: %s', async (_, kills, change) => {
    const { db, usage } = await newPool({ timeout: 20_000 })
    await list(db)
    onTestFinished(() => proxy.rewrite((text) => text))
    proxy.rewrite(change)
    const before = proxy.statements.length
    const sleeping = inTransaction(db, sleep)
    await expect(sleeping).rejects.toThrow('cannot be used')
    await until('another connection is open', () => sentSince(before, /^show variables/) > 0)
    if (kills > 0) await until('it is killed', () => sentSince(before, /^kill \d+$/) > 0)
    await list(db) // on that connection, after the check of the server
    await list(db)
    expect(sentSince(before, /^kill \d+$/)).toBe(kills)
    expect(sentSince(before, /^rollback/), 'its connection is closed').toBe(0)
    expect(usage).toEqual({ used: 0, waiting: 0 })
  })
})

describe('the end of a pool', () => {
  const ended = (db: RootDatabase) =>
    Promise.race([db.destroy().then(() => 'ended'), setTimeout(10_000, 'hangs')])

  test('waits for a statement that is not answered, until its deadline', async () => {
    const { db } = await newPool()
    await list(db)
    proxy.stall()
    const result = expect(list(db)).rejects.toThrow('cannot be used')
    expect(await ended(db)).toBe('ended')
    proxy.flow()
    await result
  })

  test('waits for the rows of a statement', async () => {
    const { db } = await newPool({ timeout: 10_000 })
    await admin('select get_lock(database(), 20)')
    const slow = execute(db, sql<{ got: bigint }>`select get_lock(database(), 20) as got`)
    await until('it runs', async () => (await running(admin, 'select get_lock%')).length === 1)
    const end = ended(db)
    const waits = admin('select 1').then(() => 'waits')
    expect(await Promise.race([end, waits])).toBe('waits')
    await admin('select release_lock(database())')
    expect((await slow).rows).toEqual([{ got: 1n }])
    expect(await end).toBe('ended')
    await expect(list(db)).rejects.toThrow()
  })

  test('closes idle connections to a server that hangs, and one that is being opened', async () => {
    const { db } = await newPool({ timeout: 20_000 })
    await list(db)
    proxy.stall()
    expect(await ended(db)).toBe('ended')
    proxy.flow()
    await until('all are closed', () => proxy.clients === 0)

    let clients = 0
    const silent = createServer((socket) => {
      clients++
      socket.on('close', () => clients--).resume()
    }).listen(0, '127.0.0.1')
    onTestFinished(() => void silent.close())
    await once(silent, 'listening')
    const { port } = silent.address() as AddressInfo // it listens on a port
    const opening = await newPool({ timeout: 500 }, `mysql://root@127.0.0.1:${port}/pets`)
    await expect(list(opening.db)).rejects.toThrow('cannot be used')
    await until('it is being opened', () => clients === 1)
    await setTimeout(200)
    expect(clients, 'it is kept: the server would count its end').toBe(1)
    expect(await ended(opening.db)).toBe('ended')
    await until('it is closed', () => clients === 0)
  })
})
