/** Migrations that are added late or run twice, their lock, and the tables that they create. */
import { cpSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import { connect } from '../../db/connect.ts'
import { DatabaseUnavailableError, LockedError } from '../../db/errors.ts'
import { isCurrent, migrate } from '../../db/migrate.ts'
import type { Database } from '../../db/tables.ts'
import { engine, newDatabase, type TestDatabase } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'
import { running, until } from '../support/instance.ts'
import { openSql, type Sql } from '../support/sql.ts'

let database: TestDatabase
let db: Database
let folder: string
beforeEach(async () => {
  database = await newDatabase()
  db = await connect(database.url)
  // Beside the real folder, so that the imports of the copies work.
  folder = mkdtempSync(path.join(import.meta.dirname, '../../db/migrations-'))
  cpSync(path.join(import.meta.dirname, '../../db/migrations'), folder, { recursive: true })
})
afterEach(async () => {
  rmSync(folder, { recursive: true, force: true })
  await db.destroy()
  await database.remove()
})

const TABLE = `export const up = (db) =>
  db.schema.createTable('late').addColumn('id', 'integer').execute()`
const COLUMN = `import { addColumn } from '../columns.ts'
export const up = (db) => addColumn(db, 'pets', 'late', 'bigint')`

/** Returns a function that puts the clock of timeouts forward, to milliseconds after now. */
function fakeClock(): (milliseconds: number) => void {
  const now = performance.now.bind(performance)
  let ahead = 0
  vi.spyOn(performance, 'now').mockImplementation(() => now() + ahead)
  onTestFinished(() => void vi.restoreAllMocks())
  return (milliseconds) => {
    ahead = milliseconds
  }
}

const add = (name: string, code = TABLE) => writeFileSync(path.join(folder, `${name}.ts`), code)

test('a migration that is added late runs, also beside one of a newer release', async () => {
  const all = await migrate(db)
  expect(all).toHaveLength(readdirSync(folder).length)
  expect(await isCurrent(db)).toBe(true)
  const newer = { name: '2999-01-01-newer', timestamp: '2999-01-01T00:00:00.000Z' }
  await db
    .withTables<{ kysely_migration: typeof newer }>()
    .insertInto('kysely_migration')
    .values(newer)
    .execute()
  add('2026-11-20-b-late')
  expect(await isCurrent(db, undefined, folder)).toBe(false)
  expect(await migrate(db, { folder })).toEqual(['2026-11-20-b-late'])
  expect(await isCurrent(db, undefined, folder)).toBe(true)
  await expect(
    db.withTables<{ late: { id: bigint } }>().selectFrom('late').selectAll().execute(),
  ).resolves.toEqual([])
  expect(await migrate(db, { folder })).toEqual([])
  // An instance without the file stays ready.
  expect(await isCurrent(db)).toBe(true)
  expect(await migrate(db)).toEqual([])
})

test('the error of a migration that fails has its name', async () => {
  add('2026-11-22-broken', `export const up = () => { throw new Error('No') }`)
  await expect(migrate(db, { folder })).rejects.toMatchObject({
    message: 'The migration 2026-11-22-broken failed',
    cause: { message: 'No' },
  })
})

test.runIf(engine === 'mysql')('a full disk in a migration is reported as such', async () => {
  const full = `import { sql } from 'kysely'
export const up = (db) => sql\`signal sqlstate '45000' set mysql_errno = 1021\`.execute(db)`
  add('2026-11-22-large', full)
  await expect(migrate(db, { folder })).rejects.toBeInstanceOf(DatabaseUnavailableError)
})

test.runIf(engine === 'mysql')(
  'a migration accepts a column that another node adds concurrently',
  async () => {
    await migrate(db)
    add('2026-11-22-late', COLUMN)
    await using node = await openSql(database.url)
    await node('lock tables pets write')
    const migrated = migrate(db, { folder })
    await using admin = await openSql(database.url)
    await until(
      'the migration waits',
      async () => (await running(admin, 'alter table%')).length > 0,
    )
    await node('alter table pets add column late bigint')
    await node('unlock tables')
    expect(await migrated).toEqual(['2026-11-22-late'])
    expect(await isCurrent(db, undefined, folder)).toBe(true)
  },
)

/** The columns of a table, and its unique constraints with their columns in order. */
interface Table {
  columns: string[]
  unique: string[]
}

const tables: Record<string, Table> = {
  api_keys: {
    columns: [
      'id bigint not null',
      'name varchar(255) not null',
      'prefix varchar(32) not null',
      'hash char(64) not null',
      'created_at bigint not null',
      'expires_at bigint',
      'revoked_at bigint',
      'last_used_at bigint',
      'read_only bigint not null',
      'grace_until bigint',
      'holder bigint',
    ],
    unique: ['hash', 'id'],
  },
  idempotency_keys: {
    columns: [
      'id bigint not null',
      'api_key_id bigint not null',
      'key_hash char(64) not null',
      'operation varchar(64) not null',
      'fingerprint char(64) not null',
      'answer mediumtext not null',
      'created_at bigint not null',
    ],
    unique: ['api_key_id, key_hash', 'created_at, id', 'id'],
  },
  pets: {
    columns: [
      'id bigint not null',
      'name varchar(255) not null',
      'category_id bigint not null',
      'status varchar(16) not null',
    ],
    unique: ['id', 'status, id'],
  },
}

/** Returns the description of a table by its database. An integer primary key of SQLite is a bigint. */
async function describeTable(sql: Sql, table: string): Promise<Table> {
  if (engine === 'sqlite') {
    const columns = (await sql(`pragma table_info(${table})`)).map(({ name, type, notnull, pk }) =>
      pk
        ? `${name} bigint not null`
        : `${name} ${String(type).toLowerCase()}${notnull ? ' not null' : ''}`,
    )
    const unique = ['id']
    for (const index of await sql(`pragma index_list(${table})`)) {
      expect(index).toMatchObject({ unique: 1n, partial: 0n })
      const parts = await sql(`pragma index_info(${index.name})`)
      unique.push(parts.map(({ name }) => name).join(', '))
    }
    return { columns, unique: unique.sort() }
  }
  const columns = await sql(
    `select column_name as name, data_type as type, character_maximum_length as length,
       is_nullable as nullable
     from information_schema.columns where table_schema = database() and table_name = ?
     order by ordinal_position`,
    [table],
  )
  const indexes = await sql(
    `select max(non_unique) as others,
       group_concat(column_name order by seq_in_index separator ', ') as columns
     from information_schema.statistics where table_schema = database() and table_name = ?
     group by index_name`,
    [table],
  )
  expect(indexes.map(({ others }) => Number(others))).toEqual(indexes.map(() => 0))
  return {
    columns: columns.map(({ name, type, length, nullable }) => {
      const size = String(type).endsWith('char') ? `(${length})` : ''
      return `${name} ${type}${size}${nullable === 'YES' ? '' : ' not null'}`
    }),
    unique: indexes.map((index) => String(index.columns)).sort(),
  }
}

/** The collations of the tables and their texts, except Kysely's own. */
async function collationsOf(sql: Sql): Promise<unknown[]> {
  const rows = await sql(
    `select distinct table_collation as collation from information_schema.tables
     where table_schema = database() and table_name not like 'kysely%'
     union select distinct collation_name from information_schema.columns
     where table_schema = database() and table_name not like 'kysely%' and collation_name is not null`,
  )
  return rows.map(({ collation }) => collation)
}

/** Takes the lock of the migrations, and returns a function that releases it. */
async function holdLock(): Promise<() => Promise<void>> {
  const gate = Promise.withResolvers<void>()
  const begun = Promise.withResolvers<void>()
  Object.assign(globalThis, { gate: gate.promise, begun: begun.resolve })
  add(
    '2026-11-19-slow',
    'export const up = async () => { globalThis.begun(); await globalThis.gate }',
  )
  const holder = await connect(database.url)
  const migrated = migrate(holder, { folder })
  await begun.promise
  return async () => {
    gate.resolve()
    await migrated
    await holder.destroy()
  }
}

test('a migration waits for the lock, and reports that once', async () => {
  const release = await holdLock()
  const onWait = vi.fn()
  const migrated = migrate(db, { onWait })
  await eventually(() => expect(onWait).toHaveBeenCalled())
  await setTimeout(1_200)
  await release()
  expect(await migrated).toEqual([])
  expect(onWait.mock.calls).toEqual([[expect.stringContaining('another process')]])
})

test('a migration that is over holds no lock, though its connection stays open', async () => {
  await migrate(db)
  add('2026-11-22-late')
  const other = await connect(database.url)
  expect(await migrate(other, { folder })).toEqual(['2026-11-22-late'])
  await other.destroy()
})

test.runIf(engine === 'mysql')('a statement of a migration may last', async () => {
  await migrate(db)
  const slow = `import { sql } from 'kysely'
export const up = (db) => sql\`do sleep(6)\`.execute(db)`
  add('2026-11-22-slow', slow)
  expect(await migrate(db, { folder })).toEqual(['2026-11-22-slow'])
})

test('a migration fails if another process holds the lock for a minute', async () => {
  const release = await holdLock()
  const setClock = fakeClock()
  const onWait = () => setClock(60_000)
  await expect(migrate(db, { onWait })).rejects.toMatchObject({
    hadNoEffect: false, // it is not repeated
    cause: {
      message: 'other processes have held its lock for a minute; try again when they are done',
    },
  })
  await release()
})

test.runIf(engine === 'mysql')(
  'a migration does not wait for the lock of another database',
  async () => {
    const other = await newDatabase()
    const release = await holdLock()
    const onWait = vi.fn()
    const elsewhere = await connect(other.url)
    expect(await migrate(elsewhere, { onWait })).not.toEqual([])
    expect(onWait).not.toHaveBeenCalled()
    await elsewhere.destroy()
    await other.remove()
    await release()
  },
)

test.runIf(engine === 'mysql')(
  'the lock of a database with a long name has the 64 characters that MySQL allows',
  async () => {
    const name = `petstore_${'x'.repeat(55)}`
    await using sql = await openSql(database.url)
    await sql(`create database ${name}`)
    await sql('select get_lock(?, 0)', [`migrations of ${name}`.slice(0, 64)])
    const long = await connect(Object.assign(new URL(database.url), { pathname: name }).href)
    const setClock = fakeClock()
    const onWait = () => setClock(60_000)
    await expect(migrate(long, { onWait })).rejects.toBeInstanceOf(LockedError)
    await long.destroy()
    await sql(`drop database ${name}`)
  },
)

test('the tables are these, on MySQL even after all migrations ran twice', async () => {
  const names = await migrate(db)
  await using sql = await openSql(database.url)
  for (let round = 0; round < 2; round++) {
    for (const [name, table] of Object.entries(tables)) {
      expect(await describeTable(sql, name), name).toEqual(table)
    }
    if (engine === 'mysql') expect(await collationsOf(sql)).toEqual([expect.stringMatching(/bin$/)])
    if (engine === 'sqlite') return // a migration and its record are one transaction
    await sql('delete from kysely_migration')
    expect(await migrate(db)).toEqual(names)
  }
})

test('texts that differ in case, accents, normal form or spaces at the end are different', async () => {
  await migrate(db)
  const names = ['Graz', 'Graz ', 'graz', 'Gräz', 'Gra\u0308z', 'Graz\t']
  for (const name of names) {
    await db.insertInto('pets').values({ name, category_id: 1n, status: 'sold' }).execute()
  }
  for (const name of names) {
    const rows = await db.selectFrom('pets').select('name').where('name', '=', name).execute()
    expect(rows).toEqual([{ name }])
  }
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
  expect(await db.selectFrom('api_keys').select(columns).orderBy('id').execute()).toEqual([
    { name: 'working', revoked_at: null, grace_until: null },
    { name: 'revoked', revoked_at: BigInt(past), grace_until: null },
    { name: 'old', revoked_at: null, grace_until: BigInt(future) },
  ])
})
