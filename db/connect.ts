/** DATABASE_URL → Kysely. Below this folder nobody asks which engine runs. */
import { Kysely } from 'kysely'
import { mysqlDialect, type PoolSettings } from './mysql.ts'
import { sqliteDialect } from './sqlite.ts'
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
 */
export function connect(databaseUrl: string, settings: PoolSettings = {}): Database {
  const { engine, address } = describeUrl(databaseUrl)
  const dialect =
    engine === 'sqlite'
      ? sqliteDialect(address, { ...settings, mayCreate: databaseUrl.endsWith(CREATE) })
      : mysqlDialect(databaseUrl, settings)
  return new Kysely<Tables>({ dialect })
}
