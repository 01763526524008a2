/** What an instance does with a schema that is not its own. */
import { expect, test } from 'vitest'
import { connect } from '../db/connect.ts'
import { isCurrent, migrate } from '../db/migrate.ts'
import { newDatabase } from './support/database.ts'

test('a schema that a newer release has migrated further is left as it is', async () => {
  const database = await newDatabase()
  const db = connect(database.url)
  expect(await isCurrent(db).catch(() => false)).toBe(false)
  expect(await migrate(db)).not.toEqual([])
  const newer = { name: '2999-01-01-newer', timestamp: '2999-01-01T00:00:00.000Z' }
  await db
    .withTables<{ kysely_migration: typeof newer }>()
    .insertInto('kysely_migration')
    .values(newer)
    .execute()
  expect(await migrate(db)).toEqual([])
  expect(await isCurrent(db)).toBe(true)
  await db.destroy()
  await database.remove()
})
