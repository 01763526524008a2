/** DATABASE_URL → the database: Kysely, and its queue. Outside this folder, no code depends on the kind of database. */
import { type Dialect, DummyDriver, Kysely } from 'kysely'
import type { RootDatabase } from './database.ts'
import type { EngineParts } from './engine.ts'
import type { PoolSettings } from './engines/mysql/dialect.ts'
import { Statements } from './plan.ts'
import { Queue } from './queue.ts'
import { kyselyConnectionOf } from './runner.ts'
import type { Tables } from './tables.ts'
import { CREATE, describeUrl } from './url.ts'

/**
 * Returns the database of a URL: `mysql://user:password@host:port/database`, `sqlite:path` for a file
 * that exists, or `sqlite:path?create`. The first query opens it; `destroy()` closes it. Only the driver
 * that is needed is loaded, because the other one would add a fifth to the start.
 */
export async function connect(
  databaseUrl: string,
  settings: PoolSettings = {},
): Promise<RootDatabase> {
  const { engine, location } = describeUrl(databaseUrl)
  if (engine === 'mysql') {
    const { mysqlParts } = await import('./engines/mysql/dialect.ts')
    return await databaseOf(mysqlParts(databaseUrl, settings))
  }
  const { sqliteParts } = await import('./engines/sqlite/dialect.ts')
  return await databaseOf(sqliteParts(location, databaseUrl.endsWith(CREATE), settings.timeout))
}

async function databaseOf(parts: EngineParts): Promise<RootDatabase> {
  const { dialect, settings, createSessions } = parts
  const kysely = (createDriver: Dialect['createDriver']) =>
    new Kysely<Tables>({ dialect: { ...dialect, createDriver } })
  const statements = new Statements(kysely(() => new DummyDriver()))
  const queue = new Queue(statements, settings, createSessions)
  const db = Object.assign(
    kysely(() => driverOf(queue)),
    { runner: queue },
  )
  await db.connection().execute(async () => {}) // Kysely destroys only a driver that it has used
  return db
}

/** Returns Kysely's driver, whose statements wait in the queue. */
function driverOf(queue: Queue) {
  const connection = kyselyConnectionOf(queue)
  const refuse = async () => {
    throw new Error('Use inTransaction of db/transaction.ts')
  }
  return {
    async init() {},
    acquireConnection: async () => connection,
    beginTransaction: refuse,
    commitTransaction: refuse,
    rollbackTransaction: refuse,
    async releaseConnection() {},
    destroy: () => queue.end(),
  }
}
