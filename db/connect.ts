/** DATABASE_URL → Kysely. Outside this folder, no code depends on the kind of database. */
import type { PoolSettings } from './engines/mysql/dialect.ts'
import { databaseOf } from './statement.ts'
import type { Database } from './tables.ts'
import { CREATE, describeUrl } from './url.ts'

/**
 * Returns the database of a URL: `mysql://user:password@host:port/database`, `sqlite:path` for a file
 * that exists, or `sqlite:path?create`. The first query opens it; `destroy()` closes it. Only the driver
 * that is needed is loaded, because the other one would add a fifth to the start.
 */
export async function connect(databaseUrl: string, settings: PoolSettings = {}): Promise<Database> {
  const { engine, location } = describeUrl(databaseUrl)
  if (engine === 'mysql') {
    const { mysqlDialect } = await import('./engines/mysql/dialect.ts')
    return databaseOf(mysqlDialect(databaseUrl, settings))
  }
  const { sqliteDialect } = await import('./engines/sqlite/dialect.ts')
  return databaseOf(sqliteDialect(location, databaseUrl.endsWith(CREATE), settings.timeout))
}
