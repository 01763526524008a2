/** DATABASE_URL → the database: Kysely, and its lanes. Outside this folder, no code depends on the kind of database. */
import { type Dialect, Kysely } from 'kysely'
import type { Database } from './database.ts'
import type { PoolSettings } from './engines/mysql/dialect.ts'
import type { Lanes } from './lanes.ts'
import type { Tables } from './tables.ts'
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

/** Returns the database of a dialect, and lets its lanes build statements for it. */
async function databaseOf({
  lanes,
  ...dialect
}: Omit<Dialect, 'createDriver'> & { lanes: Lanes }): Promise<Database> {
  const createDriver = () => driverOf(lanes)
  const db = Object.assign(new Kysely<Tables>({ dialect: { ...dialect, createDriver } }), { lanes })
  lanes.db = db
  await db.connection().execute(async () => {}) // Kysely destroys only a driver that it has used
  return db
}

/** Returns Kysely's driver: its connection gives each statement a lane. */
function driverOf(lanes: Lanes) {
  const refuse = async () => {
    throw new Error('Use inTransaction of db/transaction.ts')
  }
  return {
    async init() {},
    acquireConnection: async () => lanes.connection,
    beginTransaction: refuse,
    commitTransaction: refuse,
    rollbackTransaction: refuse,
    async releaseConnection() {},
    destroy: () => lanes.end(),
  }
}
