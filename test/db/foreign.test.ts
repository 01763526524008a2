/** Databases with tables of another program, of the release before the marks, or with binary texts. */
import { expect, onTestFinished, test } from 'vitest'
import { connect } from '../../db/connect.ts'
import { isCurrent, migrate } from '../../db/migrate.ts'
import { TABLES } from '../../db/migrations.ts'
import { seed } from '../../src/petstore/pets/seed.ts'
import { engine, newDatabase, testOnce } from '../support/database.ts'
import { failToStart } from '../support/process.ts'
import { openSql } from '../support/sql.ts'

/** An empty database, plain SQL on it, and the service's access. */
async function open() {
  const { url, remove } = await newDatabase()
  const sql = await openSql(url)
  const db = await connect(url)
  onTestFinished(async () => {
    await sql.close()
    await db.destroy()
    await remove()
  })
  const tables = async () => {
    const where =
      engine === 'sqlite'
        ? "sqlite_schema where type = 'table'"
        : 'information_schema.tables where table_schema = database()'
    const rows = await sql(
      `select ${engine === 'sqlite' ? 'name' : 'table_name'} as name from ${where}`,
    )
    return rows.map(({ name }) => name).sort()
  }
  return { url, sql, db, tables }
}

test.each([...TABLES, 'kysely_migration'])(
  'with a table %s of another program, nothing is created',
  async (name) => {
    const { sql, db, tables } = await open()
    await sql(`create table ${name} (name varchar(255), timestamp varchar(255))`)
    await sql(`insert into ${name} values ('2020-strange', '2020-01-01T00:00:00.000Z')`)
    const says = new RegExp(`^its table ${name} belongs to another program: .+$`)
    await expect(migrate(db)).rejects.toMatchObject({
      cause: { message: expect.stringMatching(says) },
    })
    expect(await tables()).toEqual([name])
  },
)

testOnce('a table of another program ends the start with one line', async () => {
  const { url, sql, tables } = await open()
  await sql('create table pets (name varchar(255))')
  const { code, message } = await failToStart({ DATABASE_URL: url })
  expect(code).toBe(1)
  expect(message).toMatch(/^DATABASE_URL: .+: its table pets belongs to another program: .+$/)
  expect(await tables()).toEqual(['pets'])
})

test.runIf(engine === 'sqlite')('a file with the mark of another program is refused', async () => {
  const { sql, db } = await open()
  await sql('create table notes (id integer)')
  await sql('pragma application_id = 7')
  await expect(migrate(db)).rejects.toMatchObject({
    cause: { message: expect.stringMatching(/^its table notes belongs to another program/) },
  })
})

test('the database of the release before the marks is known by its migrations, and marked', async () => {
  const { sql, db, tables } = await open()
  await migrate(db)
  // A migration that creates a table says so, and by that name the table of another program is found.
  const own = engine === 'sqlite' ? ['kysely_migration', 'sqlite_sequence'] : ['kysely_migration']
  expect(await tables()).toEqual([...TABLES, ...own].sort())
  await sql(
    engine === 'sqlite' ? 'pragma application_id = 0' : "alter table kysely_migration comment ''",
  )
  await sql("delete from kysely_migration where name = '2026-11-21-idempotency-keys'")
  expect(await migrate(db)).toEqual(['2026-11-21-idempotency-keys'])
  if (engine === 'sqlite') {
    expect(await sql('pragma application_id')).toEqual([{ application_id: 0x50455453n }])
  }
})

test.runIf(engine === 'mysql')(
  'a database with the character set `binary` is migrated once',
  async () => {
    const { sql, db } = await open()
    await sql('alter database character set binary')
    expect(await migrate(db)).not.toEqual([])
    expect(await migrate(db)).toEqual([])
    // So Kysely's Migrator has made it there.
    await sql(
      'alter table kysely_migration modify name varbinary(255) not null, modify timestamp varbinary(255) not null',
    )
    expect(await migrate(db)).toEqual([])
    expect(await isCurrent(db)).toBe(true)
    await sql("delete from kysely_migration where name = '2026-11-21-idempotency-keys'")
    expect(await migrate(db)).toEqual(['2026-11-21-idempotency-keys'])
  },
)

test('of three seeds at once, one adds the animals', async () => {
  const { url, sql, db } = await open()
  await using other = await connect(url)
  await using third = await connect(url)
  const all = [db, other, third]
  for (const each of all) await migrate(each) // each has its connection, so that they begin at once
  const added = await Promise.all(all.map(seed))
  expect(added.sort()).toEqual([0, 0, 42])
  const [row] = await sql('select count(*) as count from pets')
  expect(Number(row?.count)).toBe(42)
})
