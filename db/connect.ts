/** DATABASE_URL → Kysely. Below this folder nobody asks which engine runs. */
import { Kysely } from 'kysely'
import type { PoolSettings } from './mysql.ts'
import type { Database, Tables } from './tables.ts'

/** Ends the URL of an embedded database that is to be made, with its folder, where it is missing. */
const CREATE = '?create'

/** Which engine a DATABASE_URL names, and its address in words, without the password. */
export function describeUrl(databaseUrl: string): {
  engine: 'mysql' | 'sqlite'
  address: string
} {
  if (databaseUrl.startsWith('sqlite:')) {
    const end = databaseUrl.endsWith(CREATE) ? -CREATE.length : undefined
    return { engine: 'sqlite', address: databaseUrl.slice('sqlite:'.length, end) }
  }
  const { host, pathname } = new URL(databaseUrl)
  return { engine: 'mysql', address: host + pathname }
}

/**
 * The database of a URL: `mysql://user:password@host:port/database`, or `sqlite:path`, whose file must
 * be there, or `sqlite:path?create`.
 * Nothing is opened before the first query; `destroy()` closes it. The settings bound what is waited for.
 * The driver of the other engine is not even loaded, which would take a fifth of the start.
 */
export async function connect(databaseUrl: string, settings: PoolSettings = {}): Promise<Database> {
  const { engine, address } = describeUrl(databaseUrl)
  if (engine === 'mysql') {
    const { mysqlDialect } = await import('./mysql.ts')
    return new Kysely<Tables>({ dialect: mysqlDialect(databaseUrl, settings) })
  }
  const { sqliteDialect } = await import('./sqlite.ts')
  const mayCreate = databaseUrl.endsWith(CREATE)
  return new Kysely<Tables>({ dialect: sqliteDialect(address, { ...settings, mayCreate }) })
}
