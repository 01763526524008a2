/** DATABASE_URL → the database. Outside this folder, no code depends on the kind of database. */
import { DummyDriver, Kysely } from 'kysely'
import type { EngineParts, RootDatabase } from './database.ts'
import type { PoolSettings } from './engines/mysql/dialect.ts'
import { Statements } from './plan.ts'
import { Queue } from './queue.ts'
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
    return databaseOf(mysqlParts(databaseUrl, settings))
  }
  const { sqliteParts } = await import('./engines/sqlite/dialect.ts')
  return databaseOf(sqliteParts(location, databaseUrl.endsWith(CREATE), settings.timeout))
}

function databaseOf({ engine, dialect, settings, createSessions }: EngineParts): RootDatabase {
  const createDriver = () => new BuildingDriver()
  const builder = { kysely: new Kysely<Tables>({ dialect: { ...dialect, createDriver } }), engine }
  const runner = new Queue(new Statements(builder), settings, createSessions)
  const destroy = () => runner.end()
  return { ...builder, runner, destroy, [Symbol.asyncDispose]: destroy }
}

/** What Kysely executed itself would have no deadline, and be outside the transaction of its call. */
class BuildingDriver extends DummyDriver {
  override async acquireConnection(): Promise<never> {
    throw new TypeError(
      'Kysely only builds statements here: run them by execute(db, query, deadline), and a transaction by inTransaction(db, work, deadline)',
    )
  }
}
