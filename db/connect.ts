/** DATABASE_URL → Kysely. Below this folder nobody asks which engine runs. */
import { Kysely } from 'kysely'
import type { PoolSettings } from './engines/mysql.ts'
import type { Database, Tables } from './tables.ts'
import { CREATE, describeUrl } from './url.ts'

/**
 * The database of a URL: `mysql://user:password@host:port/database`, or `sqlite:path`, whose file must
 * be there, or `sqlite:path?create`.
 * Nothing is opened before the first query; `destroy()` closes it. The settings bound what is waited for.
 * The driver of the other engine is not even loaded, which would take a fifth of the start.
 */
export async function connect(databaseUrl: string, settings: PoolSettings = {}): Promise<Database> {
  const { engine, location } = describeUrl(databaseUrl)
  if (engine === 'mysql') {
    const { mysqlDialect } = await import('./engines/mysql.ts')
    return new Kysely<Tables>({ dialect: mysqlDialect(databaseUrl, settings) })
  }
  const { sqliteDialect } = await import('./engines/sqlite.ts')
  const mayCreate = databaseUrl.endsWith(CREATE)
  return new Kysely<Tables>({ dialect: sqliteDialect(location, { ...settings, mayCreate }) })
}
