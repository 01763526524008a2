/** Migrations that are added late or run twice, their lock, and the tables that they create. */
import { readdirSync } from 'node:fs'
import path from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { sql as raw } from 'kysely'
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import { connect } from '../../db/connect.ts'
import type { Database, RootDatabase } from '../../db/database.ts'
import { Deadline } from '../../db/deadline.ts'
import { DatabaseUnavailableError, LockedError } from '../../db/errors.ts'
import { isCurrent, migrate } from '../../db/migrate.ts'
import { MIGRATIONS } from '../../db/migrations.ts'
import { execute } from '../../db/statement.ts'
import { pass } from '../support/clock.ts'
import { engine, newDatabase, type TestDatabase } from '../support/database.ts'
import { failToStart } from '../support/process.ts'
import { proxied } from '../support/proxy.ts'
import { openSql } from '../support/sql.ts'

let database: TestDatabase
let db: RootDatabase
beforeEach(async () => {
  database = await newDatabase()
  db = await connect(database.url)
})
afterEach(async () => {
  await db.destroy()
  await database.remove()
})

/** Returns the migrations of the service with another one. */
const withMore = (name: string, up: (db: Database) => unknown) =>
  [...MIGRATIONS, { name, up: async (db: Database) => void (await up(db)) }].sort((one, other) =>
    one.name < other.name ? -1 : 1,
  )
const createLate = (db: Database) =>
  execute(db, db.kysely.schema.createTable('late').addColumn('id', 'integer'))

test('a migration that is added late runs, also beside one of a newer release', async () => {
  const files = readdirSync(path.join(import.meta.dirname, '../../db/migrations')).sort()
  expect((await migrate(db)).map((name) => `${name}.ts`)).toEqual(files)
  expect(await isCurrent(db)).toBe(true)
  const newer = { name: '2999-01-01-newer', timestamp: '2999-01-01T00:00:00.000Z' }
  const withIt = db.kysely.withTables<{ kysely_migration: typeof newer }>()
  await execute(db, withIt.insertInto('kysely_migration').values(newer))
  const all = withMore('2026-11-20-b-late', createLate)
  expect(await isCurrent(db, undefined, all)).toBe(false)
  expect(await migrate(db, undefined, all)).toEqual(['2026-11-20-b-late'])
  expect(await isCurrent(db, undefined, all)).toBe(true)
  const late = db.kysely.withTables<{ late: { id: bigint } }>().selectFrom('late').selectAll()
  expect((await execute(db, late)).rows).toEqual([])
  expect(await migrate(db, undefined, all)).toEqual([])
  // A release without the file stays ready, and changes nothing.
  expect(await isCurrent(db)).toBe(true)
  expect(await migrate(db)).toEqual([])
})

test('the error of a migration that fails has its name', async () => {
  const all = withMore('2026-11-22-broken', () => {
    throw new Error('No')
  })
  await expect(migrate(db, undefined, all)).rejects.toMatchObject({
    message: 'The migration 2026-11-22-broken failed',
    cause: { message: 'No' },
  })
})

test.runIf(engine === 'mysql')('a full disk in a migration is reported as such', async () => {
  const full = raw`signal sqlstate '45000' set mysql_errno = 1021`
  const all = withMore('2026-11-22-large', (db) => execute(db, full))
  await expect(migrate(db, undefined, all)).rejects.toBeInstanceOf(DatabaseUnavailableError)
})

test.runIf(engine === 'mysql')('a lock that the server does not give is not taken', async () => {
  const { proxy, url } = await proxied(database.url)
  proxy.rewrite((text) => text.replace(/^select get_lock.*/, 'select null as taken'))
  await using through = await connect(url)
  const work = async () => 'done'
  await expect(through.engine.underLock(through, work)).rejects.toBeInstanceOf(LockedError)
  await proxy.cut()
})

/** On MySQL an attempt to take the lock takes a second; on SQLite it takes the timeout, five by default. */
const HURRIED = engine === 'sqlite' ? { timeout: 1_000 } : {}

/** Takes the lock of the migrations, and returns a function that releases it. */
async function holdLock(): Promise<() => Promise<void>> {
  const gate = Promise.withResolvers<void>()
  const begun = Promise.withResolvers<void>()
  const all = withMore('2026-11-19-slow', () => {
    begun.resolve()
    return gate.promise
  })
  const holder = await connect(database.url)
  const migrated = migrate(holder, undefined, all)
  await begun.promise
  return async () => {
    gate.resolve()
    await migrated
    await holder.destroy()
  }
}

test('a migration waits for the lock, and reports that once', async () => {
  const release = await holdLock()
  const report = vi.fn()
  await using hurried = await connect(database.url, HURRIED)
  const migrated = migrate(hurried, report)
  await vi.waitFor(() => expect(report).toHaveBeenCalled(), 30_000)
  await setTimeout(1_200) // another attempt begins
  await release()
  expect(await migrated).toEqual([])
  expect(report.mock.calls).toEqual([[expect.stringContaining('another process')]])
})

test.runIf(engine === 'mysql')(
  'calls go on while a migration waits for the transaction of another program',
  async () => {
    await migrate(db)
    await using reader = await openSql(database.url)
    await reader('begin')
    await reader('select * from pets')
    const alter = raw`alter table pets add column color integer`
    const all = withMore('2026-11-22-color', (db) => execute(db, alter))
    await using other = await connect(database.url)
    const migrated = migrate(other, undefined, all)
    const blocked = `select id from information_schema.processlist
      where db = database() and state like '%metadata lock%'`
    await vi.waitUntil(async () => (await reader(blocked)).length > 0, 10_000)
    using deadline = new Deadline(5_000) // DATABASE_TIMEOUT
    await execute(db, db.kysely.selectFrom('pets').select('id'), deadline)
    await reader('commit')
    expect(await migrated).toEqual(['2026-11-22-color'])
    const held = `select is_used_lock(left(concat('migrations of ', database()), 64)) as holder`
    expect(await reader(held)).toEqual([{ holder: null }])
    const timeout = execute(other, raw<{ seconds: bigint }>`select @@lock_wait_timeout as seconds`)
    expect((await timeout).rows, 'of the calls that have its session next').toEqual([
      { seconds: 30n },
    ])
  },
)

test.runIf(engine === 'mysql')('a locked table is not taken for a missing one', async () => {
  await migrate(db)
  const all = withMore('2026-11-22-late', createLate)
  await using other = await connect(database.url)
  await using owner = await openSql(database.url)
  const release = await holdLock()
  const report = vi.fn()
  const migrated = migrate(other, report, all, false)
  await vi.waitFor(() => expect(report).toHaveBeenCalled(), 30_000)
  await owner('lock tables kysely_migration write')
  const released = release() // the record of its migration waits for the table
  await setTimeout(2_500)
  await owner('unlock tables')
  await released
  expect(await migrated).toEqual(['2026-11-22-late'])
})

test('a migration that is over holds no lock, though its connection stays open', async () => {
  await migrate(db)
  const all = withMore('2026-11-22-late', createLate)
  const report = vi.fn()
  await using other = await connect(database.url)
  expect(await migrate(other, report, all)).toEqual(['2026-11-22-late'])
  expect(report.mock.calls).toEqual([['Migrating the database: 2026-11-22-late']])
})

test.runIf(engine === 'mysql')('a statement of a migration may last', async () => {
  await migrate(db)
  const all = withMore('2026-11-22-slow', (db) => execute(db, raw`do sleep(6)`))
  expect(await migrate(db, undefined, all)).toEqual(['2026-11-22-slow'])
})

test('a migration fails if another process holds the lock for a minute', async () => {
  const release = await holdLock()
  const report = () => pass(60_000)
  await using hurried = await connect(database.url, HURRIED)
  await expect(migrate(hurried, report)).rejects.toMatchObject({
    hadNoEffect: false, // it is not repeated
    cause: {
      message: 'other processes have held its lock for a minute; try again when they are done',
    },
  })
  await release()
})

test.runIf(engine === 'mysql')('a migration waits once for a server that hangs', async () => {
  const { proxy, url } = await proxied(database.url)
  onTestFinished(() => proxy.cut())
  void proxy.hangAt(/from `kysely_migration`/)
  await using hanging = await connect(url, { timeout: 1_000 })
  await expect(migrate(hanging)).rejects.toBeInstanceOf(DatabaseUnavailableError)
})

test.runIf(engine === 'mysql')(
  'a migration does not wait for the lock of another database',
  async () => {
    const other = await newDatabase()
    const release = await holdLock()
    const report = vi.fn()
    const elsewhere = await connect(other.url)
    expect(await migrate(elsewhere, report)).not.toEqual([])
    expect(report).not.toHaveBeenCalled()
    await elsewhere.destroy()
    await other.remove()
    await release()
  },
)

test.runIf(engine === 'mysql')('a migration that another node interrupts runs again', async () => {
  await migrate(db)
  const interrupt = async () => {
    if (up.mock.calls.length === 1) await execute(db, raw`kill query connection_id()`)
  }
  const up = vi.fn(interrupt)
  expect(await migrate(db, undefined, withMore('2026-11-22-late', up))).toEqual(['2026-11-22-late'])
  expect(up).toHaveBeenCalledTimes(2)
})

test.runIf(engine === 'mysql')('all migrations may run twice, as on two nodes', async () => {
  const names = await migrate(db)
  await using sql = await openSql(database.url)
  await sql('delete from kysely_migration')
  expect(await migrate(db)).toEqual(names)
  // The other node records one at the same moment.
  const twin = raw`insert into kysely_migration values ('2026-11-22-twin', '')`
  const all = withMore('2026-11-22-twin', (db) => execute(db, twin))
  expect(await migrate(db, undefined, all)).toEqual(['2026-11-22-twin'])
})

test.runIf(engine === 'mysql')(
  'tables without transactions prevent the start, and the message has the remedy',
  async () => {
    await migrate(db)
    await using sql = await openSql(database.url)
    // The service ignores foreign tables.
    await sql('create table other (n int) engine = MyISAM')
    await sql('alter table pets engine = MyISAM')
    // Its key is too long for MyISAM in MySQL.
    await sql('alter table kysely_migration engine = MEMORY')
    const ended = await failToStart({ DATABASE_URL: database.url })
    expect(ended.code).toBe(1)
    const [message, remedy = ''] = ended.message.split(/: (?=alter)/)
    expect(message).toMatch(/^DATABASE_URL: .+: Tables must have the storage engine InnoDB$/)
    expect(remedy.split('; ')).toHaveLength(2)
    for (const statement of remedy.split('; ')) await sql(statement)
    expect(await migrate(db)).toEqual([])
  },
)

test('texts that differ in case, accents, normal form or spaces at the end are different', async () => {
  await migrate(db)
  const names = ['Graz', 'Graz ', 'graz', 'Gräz', 'Gra\u0308z', 'Graz\t']
  for (const name of names) {
    const pet = { name, category_id: 1n, status: 'sold' } as const
    await execute(db, db.kysely.insertInto('pets').values(pet))
  }
  for (const name of names) {
    const called = db.kysely.selectFrom('pets').select('name').where('name', '=', name)
    expect((await execute(db, called)).rows).toEqual([{ name }])
  }
})

test('the output that an Idempotency-Key stores may exceed 64 KiB', async () => {
  await migrate(db)
  const answer = 'x'.repeat(2 ** 16 + 1)
  const row = { api_key_id: 1n, key_hash: 'a', operation: 'a', fingerprint: 'a', created_at: 0n }
  await execute(db, db.kysely.insertInto('idempotency_keys').values({ ...row, answer }))
  const answers = db.kysely.selectFrom('idempotency_keys').select('answer')
  expect((await execute(db, answers)).rows).toEqual([{ answer }])
})

test('a revocation in the future, as the release before wrote it, becomes a grace period', async () => {
  await migrate(db)
  await using sql = await openSql(database.url)
  for (const column of ['grace_until', 'holder']) {
    await sql(`alter table api_keys drop column ${column}`)
  }
  await sql("delete from kysely_migration where name = '2026-11-25-key-holders'")
  const [past, future] = [Date.now() - 3_600_000, Date.now() + 3_600_000]
  for (const [name, revokedAt] of Object.entries({ working: null, revoked: past, old: future })) {
    await sql(
      "insert into api_keys (name, prefix, hash, created_at, revoked_at, read_only) values (?, '', ?, 0, ?, 0)",
      [name, name, revokedAt],
    )
  }
  expect(await migrate(db)).toEqual(['2026-11-25-key-holders'])
  const columns = ['name', 'revoked_at', 'grace_until'] as const
  const keys = db.kysely.selectFrom('api_keys').select(columns).orderBy('id')
  expect((await execute(db, keys)).rows).toEqual([
    { name: 'working', revoked_at: null, grace_until: null },
    { name: 'revoked', revoked_at: BigInt(past), grace_until: null },
    { name: 'old', revoked_at: null, grace_until: BigInt(future) },
  ])
})
