/** Blocks the writes of the service from another connection. */
import { engine } from './database.ts'
import { tables as tablesOfAll } from './operations.ts'
import { openSql } from './sql.ts'

/** Takes a lock that blocks the writes of these tables, by default of all resources; returns a function that releases it. */
export async function holdWrites(
  databaseUrl: string,
  tables: readonly string[] = tablesOfAll,
): Promise<() => Promise<void>> {
  const sql = await openSql(databaseUrl)
  await sql(engine === 'mysql' ? `lock tables ${tables.join(' write, ')} write` : 'begin immediate')
  return async () => {
    await sql(engine === 'mysql' ? 'unlock tables' : 'rollback')
    await sql.close()
  }
}
