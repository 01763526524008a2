/** Migrations: none is skipped, however late it comes; and tables that are alike on all engines. */
import { cpSync, mkdtempSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { connect } from '../../db/connect.ts'
import { isCurrent, migrate } from '../../db/migrate.ts'
import type { Database } from '../../db/tables.ts'
import { engine, newDatabase, type TestDatabase } from '../support/database.ts'
import { running, until } from '../support/instance.ts'
import { startService } from '../support/service.ts'
import { openSql } from '../support/sql.ts'

let database: TestDatabase
let db: Database
let folder: string
beforeEach(async () => {
  database = await newDatabase()
  db = await connect(database.url)
  // Beside the real one, so that the copies find what they import.
  folder = mkdtempSync(path.join(import.meta.dirname, '../../db/migrations-'))
  cpSync(path.join(import.meta.dirname, '../../db/migrations'), folder, { recursive: true })
})
afterEach(async () => {
  rmSync(folder, { recursive: true, force: true })
  await db.destroy()
  await database.remove()
})

const add = (name: string) =>
  writeFileSync(
    path.join(folder, `${name}.ts`),
    `export const up = (db) => db.schema.createTable('late').addColumn('id', 'integer').execute()`,
  )

test('one that comes late, or second on its day, is run and named', async () => {
  const all = await migrate(db)
  expect(all.length).toBeGreaterThan(3)
  expect(await isCurrent(db)).toBe(true)
  add('2026-11-20-b-late')
  expect(await isCurrent(db, undefined, folder)).toBe(false)
  expect(await migrate(db, folder)).toEqual(['2026-11-20-b-late'])
  expect(await isCurrent(db, undefined, folder)).toBe(true)
  await expect(
    db.withTables<{ late: { id: bigint } }>().selectFrom('late').selectAll().execute(),
  ).resolves.toEqual([])
  expect(await migrate(db, folder)).toEqual([])
  // The instances without it stay ready, and migrate nothing.
  expect(await isCurrent(db)).toBe(true)
  expect(await migrate(db)).toEqual([])
})

test('one that comes late is run beside those of a newer release', async () => {
  await migrate(db)
  const newer = { name: '2999-01-01-newer', timestamp: '2999-01-01T00:00:00.000Z' }
  await db
    .withTables<{ kysely_migration: typeof newer }>()
    .insertInto('kysely_migration')
    .values(newer)
    .execute()
  add('2026-11-21-late')
  expect(await migrate(db, folder)).toEqual(['2026-11-21-late'])
})

test.runIf(engine === 'mysql')('a column that another node adds meanwhile is there', async () => {
  await migrate(db)
  await using node = await openSql(database.url)
  await node("delete from kysely_migration where name = '2026-11-22-read-only-keys'")
  await node('alter table api_keys drop column read_only')
  await node('lock tables api_keys write')
  const migrated = migrate(db)
  await using admin = await openSql(database.url)
  await until('it adds the column', async () => (await running(admin, 'alter table%')).length > 0)
  await node('alter table api_keys add column read_only bigint')
  await node('unlock tables')
  await migrated
  expect(await isCurrent(db)).toBe(true)
})

test('migrations that could not be read are read again', async () => {
  renameSync(folder, `${folder}-away`)
  await expect(isCurrent(db, undefined, folder)).rejects.toThrow()
  renameSync(`${folder}-away`, folder)
  await migrate(db, folder)
  expect(await isCurrent(db, undefined, folder)).toBe(true)
})

test('a service whose database lacks a migration is not ready', async () => {
  const service = await startService({}, { database: { ...database, remove: async () => {} } })
  await using admin = await openSql(database.url)
  const ready = async () => (await fetch(`${service.origin}/readyz`)).status
  expect(await ready()).toBe(200)
  await admin("delete from kysely_migration where name = '2026-11-20-pets'")
  expect(await ready()).toBe(503)
  await admin.close()
  await service.stop()
})

test('spaces at the end, case, accents and normal forms tell texts apart', async () => {
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

test.runIf(engine === 'sqlite')('a new file is for its owner alone', async () => {
  const url = `${database.url}-new`
  const fresh = await connect(`${url}?create`)
  await migrate(fresh)
  const file = url.slice('sqlite:'.length)
  for (const name of [file, `${file}-wal`, `${file}-shm`]) {
    expect(statSync(name).mode & 0o777, name).toBe(0o600)
  }
  await fresh.destroy()
})
