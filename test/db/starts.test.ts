/** Checks of the database at the start: slow migrations, and tables without transactions. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { connect } from '../../db/connect.ts'
import { migrate } from '../../db/migrate.ts'
import type { Database } from '../../db/tables.ts'
import { engine, newDatabase, type TestDatabase } from '../support/database.ts'
import { openSql } from '../support/sql.ts'

let database: TestDatabase
let db: Database
beforeEach(async () => {
  database = await newDatabase()
  db = await connect(database.url)
})
afterEach(async () => {
  await db.destroy()
  await database.remove()
})

test('a slow migration is not reported as a wait for a lock', async () => {
  const folder = mkdtempSync(path.join(import.meta.dirname, '../../db/migrations-'))
  try {
    const slow = 'export const up = () => new Promise((resolve) => setTimeout(resolve, 1_300))'
    writeFileSync(path.join(folder, '2026-11-20-slow.ts'), slow)
    const onWait = vi.fn()
    expect(await migrate(db, { folder, onWait })).toEqual(['2026-11-20-slow'])
    expect(onWait).not.toHaveBeenCalled()
  } finally {
    rmSync(folder, { recursive: true })
  }
})

test.runIf(engine === 'mysql')(
  'a table whose engine has no transactions is rejected, and the message has the remedy',
  async () => {
    await migrate(db)
    await using sql = await openSql(database.url)
    await sql('alter table pets engine = MyISAM')
    await expect(migrate(db)).rejects.toMatchObject({
      cause: { message: expect.stringContaining('alter table pets engine = InnoDB') },
    })
    await sql('alter table pets engine = InnoDB')
    expect(await migrate(db)).toEqual([])
  },
)
