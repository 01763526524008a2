/** Holds up what the service writes, without its knowledge. */
import { engine } from './database.ts'
import { openSql } from './sql.ts'

/** From now on nobody else adds pets to this database, until the function that it gives is called. */
export async function holdWrites(databaseUrl: string): Promise<() => Promise<void>> {
  const sql = await openSql(databaseUrl)
  await sql(engine === 'mysql' ? 'lock tables pets write' : 'begin immediate')
  return async () => {
    await sql(engine === 'mysql' ? 'unlock tables' : 'rollback')
    await sql.close()
  }
}
