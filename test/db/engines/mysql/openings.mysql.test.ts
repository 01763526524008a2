/** When sessions with a MySQL server are opened, and replaced by others. */
import { setTimeout } from 'node:timers/promises'
import { sql } from 'kysely'
import { expect, onTestFinished, test, vi } from 'vitest'
import { connect } from '../../../../db/connect.ts'
import type { Database } from '../../../../db/database.ts'
import { isCurrent } from '../../../../db/migrate.ts'
import { execute } from '../../../../db/statement.ts'
import { startBalancer, startSilent } from '../../../support/balancer.ts'
import { pass, stopClock } from '../../../support/clock.ts'
import { running, until } from '../../../support/instance.ts'
import { sharedProxiedDatabase } from '../../../support/proxy.ts'
import { openSql } from '../../../support/sql.ts'

const { direct, proxy, url, admin } = await sharedProxiedDatabase()

async function newDb(to = url, size = 10, timeout = 5_000): Promise<Database> {
  const db = await connect(to, { timeout, size })
  onTestFinished(async () => {
    await db.destroy()
    await until('all are closed', () => proxy.clients === 0)
  })
  return db
}
const list = (db: Database) => execute(db, db.kysely.selectFrom('pets').select('id'))
const sent = (pattern: RegExp) => proxy.statements.filter((text) => pattern.test(text)).length

test('a lone call does not wait for a server that accepts its connection and stays silent', async () => {
  const silent = await startSilent()
  const balancer = await startBalancer(silent.port, Number(new URL(direct.url).port))
  const db = await newDb(Object.assign(new URL(direct.url), { port: balancer.port }).href)
  expect((await list(db)).rows, 'within its five seconds').toEqual([])
  expect(silent.clients, 'it is kept: the server would count its end').toBe(1)
})

test('once a server has answered, sessions are opened side by side, and only the first one asks what is true of it', async () => {
  const db = await newDb(url, 10, 60_000)
  stopClock() // on a busy machine, a session that takes a second counts as silent
  proxy.statements.length = 0
  proxy.stall()
  const lists = Array.from({ length: 8 }, () => list(db))
  await until('the first one is being opened', () => proxy.clients > 0)
  await setTimeout(100)
  expect(proxy.clients).toBe(1)
  const asked = proxy.holdAt(/^show grants/)
  proxy.flow()
  const answer = await asked
  await until('all are being opened', () => proxy.clients === 8)
  expect(sent(/^select `id`/), 'none is open').toBe(0)
  answer()
  await Promise.all(lists)
  expect(proxy.clients).toBe(8)
  // The lists may be over before the last session is set up.
  await until('three round trips for each', () => sent(/^(set|show variables where)/) === 3 * 8)
  expect(sent(/^show grants/), 'one asks').toBe(1)
})

test('readiness takes the first session that opens, before the calls that wait, and one beyond all that are in use', async () => {
  const db = await newDb(url, 2)
  proxy.statements.length = 0
  proxy.stall()
  const lists = Array.from({ length: 20 }, () => list(db))
  const ready = isCurrent(db)
  await until('one is being opened', () => proxy.clients > 0)
  proxy.flow()
  expect(await ready).toBe(true)
  await Promise.all(lists)
  const [first] = proxy.statements.filter((text) => /`(pets|kysely_migration)`/.test(text))
  expect(first).toContain('kysely_migration')

  await using locker = await openSql(direct.url)
  await locker('lock tables pets write')
  const sell = () => execute(db, db.kysely.updateTable('pets').set({ status: 'sold' }))
  const waiting = Array.from({ length: 10 }, () => [list(db), sell()]).flat()
  // A read and a write: a line has one session less than all.
  const inUse = async () =>
    [await running(admin, 'select `id`%'), await running(admin, 'update%')].flat()
  await until('all are in use', async () => (await inUse()).length === 2)
  expect(await isCurrent(db)).toBe(true)
  expect(await inUse()).toHaveLength(2)
  await locker('unlock tables')
  await Promise.all(waiting)
})

test('the session that asks about the server is lost: another one asks', async () => {
  const db = await newDb()
  proxy.statements.length = 0
  const held = proxy.holdAt(/^show grants/)
  const lists = [list(db)]
  await held
  lists.push(list(db), list(db)) // after the one that asks, which has the lowest id
  await until('two others wait for the answer', () => sent(/^show variables/) === 3)
  const sessions = () =>
    admin(
      'select id from information_schema.processlist where db = database() and id <> connection_id() order by id',
    )
  await until(
    'the sessions of the test before have ended',
    async () => (await sessions()).length === 3,
  )
  const [first] = await sessions()
  await admin(`kill ${first?.id}`)
  await Promise.all(lists)
  expect(sent(/^show grants/)).toBe(2)
})

/** Uses this many sessions of a database at once; returns their ids. */
async function idsOf(db: Database, count: number): Promise<Set<unknown>> {
  let ids = new Set<unknown>()
  // On a busy machine one may end before another begins.
  await until('they are used at once', async () => {
    const asked = Array.from({ length: count }, () =>
      execute(db, sql<{ id: bigint }>`select connection_id() as id, sleep(0.05)`),
    )
    ids = new Set((await Promise.all(asked)).map(({ rows }) => rows[0]?.id))
    return ids.size === count
  })
  return ids
}

/** Returns what lets the databases that are opened later look at the age of their sessions: they do so by an interval. */
function holdLooks(): () => void {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  onTestFinished(() => void vi.useRealTimers())
  return () => vi.advanceTimersByTime(3_000)
}

test('after five minutes each session is replaced: one at a time, and the other one opens first', async () => {
  const look = holdLooks()
  const db = await newDb()
  const before = await idsOf(db, 2)
  pass(5 * 60_000)
  proxy.slow(30) // so that it is seen
  onTestFinished(() => proxy.slow(0))
  let most = 0
  let least = 10
  let ids = before
  const areReplaced = () => ![...ids].some((id) => before.has(id))
  const counting = async () => {
    for (; !areReplaced(); await setTimeout(5)) {
      most = Math.max(most, proxy.clients)
      least = Math.min(least, proxy.clients)
    }
  }
  const counted = counting()
  await until('all are replaced', async () => {
    ids = await idsOf(db, 2)
    // The proxy notices later that a session is closed.
    await until('one is replaced', () => proxy.clients === 2)
    // After their use, because sessions that are idle for long are closed. One look finds another at work.
    look()
    look()
    return areReplaced()
  })
  await counted
  expect([least, most]).toEqual([2, 3])
  const after = await idsOf(db, 2)
  expect(after, 'the new ones stay').toEqual(ids)
})

test('before four minutes no session is replaced', async () => {
  const look = holdLooks()
  const db = await newDb()
  const before = await idsOf(db, 2)
  pass(4 * 60_000 - 5_000)
  await idsOf(db, 2)
  const { opened } = proxy
  look()
  await setTimeout(300)
  expect(proxy.opened).toBe(opened)
  expect(await idsOf(db, 2)).toEqual(before)
})

test('a server that says that it may not write: all sessions that were opened before end', async () => {
  const db = await newDb()
  const before = await idsOf(db, 4)
  await using locker = await openSql(direct.url)
  await locker('lock tables api_keys write')
  const inUse = execute(db, db.kysely.selectFrom('api_keys').select('id'))
  await until('it waits', async () => (await running(admin, 'select `id`%')).length === 1)
  const said = proxy.failAt(/^update `pets`/, 1290)
  const sale = db.kysely.updateTable('pets').set({ status: 'sold' })
  await expect(execute(db, sale)).rejects.toThrow()
  await said
  await until('the idle ones have ended', () => proxy.clients === 1)
  await locker('unlock tables')
  expect((await inUse).rows, 'each after its use').toHaveLength(1)
  await until('it has ended', () => proxy.clients === 0)
  expect([...(await idsOf(db, 4))].filter((id) => before.has(id))).toEqual([])
})

test('a refused log-in is not repeated within a call; the pauses double up to five minutes', async () => {
  await admin("create user moved@'%' identified by 'before'")
  await admin("grant all on *.* to moved@'%'")
  const db = await newDb(
    Object.assign(new URL(url), { username: 'moved', password: 'before' }).href,
  )
  await list(db)
  await admin("alter user moved@'%' identified by 'after'")
  // MariaDB, and MySQL: then they lock the account, with errors of their own.
  await admin('set global max_password_errors = 3').catch(() =>
    admin("alter user moved@'%' failed_login_attempts 3 password_lock_time unbounded"),
  )
  onTestFinished(async () => {
    await admin('set global max_password_errors = default').catch(() => {})
  })
  await proxy.cut()
  await proxy.mend()
  await setTimeout(600) // later, a session is checked before its use
  const logIns: number[] = []
  for (let ahead = 0; ahead < 20 * 60; ahead++) {
    vi.restoreAllMocks()
    pass(ahead * 1_000)
    const before = proxy.opened
    await expect(list(db)).rejects.toMatchObject({
      hadNoEffect: true,
      cause: { message: expect.stringMatching(/^Access denied|^User is blocked/) },
    })
    if (proxy.opened > before) logIns.push(ahead)
    expect(proxy.opened - before).toBeLessThanOrEqual(1)
  }
  expect(logIns).toHaveLength(12)
  await admin("alter user moved@'%' identified by 'before' account unlock")
  pass((20 + 5) * 60_000)
  await list(db)
})
