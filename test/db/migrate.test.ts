/** Programs and the schema of their database: newer, older, locked, or without transactions. */

import type { Kysely } from 'kysely'
import { expect, test } from 'vitest'
import { createTable } from '../../db/columns.ts'
import { connect } from '../../db/connect.ts'
import { withDatabase } from '../../src/process/program.ts'
import { engine, newDatabase } from '../support/database.ts'
import { programs, runToEnd } from '../support/process.ts'
import { startService } from '../support/service.ts'
import { openSql } from '../support/sql.ts'

test('a schema of a newer release stays unchanged', async () => {
  const database = await newDatabase()
  const migrate = () => runToEnd('src/cli/migrate.ts', { DATABASE_URL: database.url })
  expect((await migrate()).stdout).toMatch(/^Migrated /)
  const service = await startService({}, { database })
  const status = async () => (await fetch(`${service.origin}/readyz`)).status
  expect(await status()).toBe(200)

  const newer = ['2999-01-01-newer', '2999-01-01T00:00:00.000Z']
  await service.sql('insert into kysely_migration (name, timestamp) values (?, ?)', newer)
  const names = () => service.sql('select name from kysely_migration order by name')
  const before = await names()
  expect(await migrate()).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^Nothing to migrate: /),
  })
  expect(await names()).toEqual(before)
  expect(await status()).toBe(200)

  // Without a migration of its own, the service is not ready.
  await service.sql('delete from kysely_migration')
  expect(await status()).toBe(503)
  await service.stop()
})

test.runIf(engine === 'mysql')(
  'tables without transactions prevent the start, and the message has the remedy',
  async () => {
    const database = await newDatabase()
    const migrate = () => withDatabase({ databaseUrl: database.url }, (_db, migrated) => migrated)
    await migrate()
    await using sql = await openSql(database.url)
    // The service ignores foreign tables, and other databases.
    await sql('create table other (n int) engine = MyISAM')
    await sql('create table kyselyXmigration (n int) engine = MyISAM')
    const elsewhere = await newDatabase()
    await using foreign = await openSql(elsewhere.url)
    await foreign('create table kysely_migration (n int) engine = MyISAM')
    expect(await migrate()).toEqual([])
    await elsewhere.remove()
    // The table of a resource whose migration is like the others.
    const db = (await connect(database.url)) as unknown as Kysely<unknown> // as in a migration
    await (await createTable(db, 'orders')).execute()
    await db.destroy()
    await sql('alter table pets engine = MyISAM')
    await sql('alter table orders engine = MyISAM')
    // Its key is too long for MyISAM in MySQL.
    await sql('alter table kysely_migration engine = MEMORY')
    const { code, stderr } = await runToEnd(programs.server, { DATABASE_URL: database.url })
    expect(code).toBe(1)
    const { host, pathname } = new URL(database.url)
    const [message, remedy = ''] = stderr.split(/: (?=alter)/)
    expect(message).toBe(
      `DATABASE_URL: cannot use the database ${host}${pathname}: Tables must have the storage engine InnoDB`,
    )
    expect(remedy.split('; ')).toHaveLength(3)
    for (const statement of remedy.split('; ')) await sql(statement)
    expect(await migrate()).toEqual([])
    await database.remove()
  },
)
