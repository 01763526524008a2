/** What an instance does with a schema that is not its own. */
import { expect, test } from 'vitest'
import { newDatabase } from './support/database.ts'
import { runToEnd } from './support/process.ts'
import { startService } from './support/service.ts'

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
    stdout: expect.stringMatching(/^There was nothing to migrate: /),
  })
  expect(await names()).toEqual(before)
  expect(await status()).toBe(200)

  // With less than its own it is not ready.
  await service.sql('delete from kysely_migration')
  expect(await status()).toBe(503)
  await service.stop()
})
