/** A new database with the tables of the service, for tests of functions in this process. */
import { afterAll } from 'vitest'
import { connect } from '../../db/connect.ts'
import { migrate } from '../../db/migrate.ts'
import { newDatabase } from './database.ts'
import { openSql } from './sql.ts'
import { watchStatements } from './statements.ts'

/** Opens one until the end of the file: `db` is the service's, `sql` runs plain SQL on another connection. */
export async function migratedForFile() {
  const { url, remove } = await newDatabase()
  const statements = await watchStatements(url)
  const db = await connect(url)
  await migrate(db)
  const sql = await openSql(url)
  afterAll(async () => {
    await sql.close()
    await db.destroy()
    await statements.close()
    await remove()
  })
  return { url, db, sql, statements }
}
