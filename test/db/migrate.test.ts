/** What an instance does with a schema that is not its own. */
import { setTimeout } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { withDatabase } from '../../src/cli/command.ts'
import { engine, newDatabase } from '../support/database.ts'
import { programs, runToEnd } from '../support/process.ts'
import { startService } from '../support/service.ts'
import { openSql } from '../support/sql.ts'

test('a schema that a newer release has migrated further is left as it is', async () => {
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

  // With less than its own it is not ready.
  await service.sql('delete from kysely_migration')
  expect(await status()).toBe(503)
  await service.stop()
})

// A statement waits for 5 s by itself.
test.runIf(engine === 'sqlite')('somebody who holds the database is waited for', async () => {
  const database = await newDatabase()
  const migrate = () => runToEnd('src/cli/migrate.ts', { DATABASE_URL: database.url })
  await migrate()
  await using sql = await openSql(database.url)
  await sql("delete from kysely_migration where name = '2026-11-20-pets'")
  await sql('begin immediate')
  const migrated = migrate()
  await setTimeout(7_000)
  await sql('rollback')
  await sql.close()
  expect(await migrated).toMatchObject({ code: 0, stdout: expect.stringMatching(/^Migrated /) })
  await database.remove()
})

test.runIf(engine === 'mysql')(
  'tables that cannot roll back are refused, with the remedy',
  async () => {
    const database = await newDatabase()
    const migrate = () => withDatabase({ databaseUrl: database.url }, (_db, migrated) => migrated)
    await migrate()
    await using sql = await openSql(database.url)
    // Whatever else is in the database is not the service's.
    await sql('create table other (n int) engine = MyISAM')
    expect(await migrate()).toEqual([])
    await sql('alter table pets engine = MyISAM')
    await sql('alter table api_keys engine = MyISAM')
    const { code, stderr } = await runToEnd(programs.server, { DATABASE_URL: database.url })
    expect(code).toBe(1)
    const { host, pathname } = new URL(database.url)
    const [words, remedy = ''] = stderr.split(/: (?=alter)/)
    expect(words).toBe(
      `DATABASE_URL: cannot use the database ${host}${pathname}: Tables must have the storage engine InnoDB`,
    )
    for (const statement of remedy.split('; ')) await sql(statement)
    expect(await migrate()).toEqual([])
    await database.remove()
  },
)
