/** Migrations: brings a database to the newest schema, and checks whether it has it. Their lock. */
import { setTimeout } from 'node:timers/promises'
import type { Database, RootDatabase } from './database.ts'
import type { Deadline } from './deadline.ts'
import {
  ConflictError,
  DatabaseUnavailableError,
  DuplicateError,
  LockedError,
  MissingDatabaseError,
} from './errors.ts'
import { MIGRATIONS, type Migration } from './migrations.ts'
import type { Use } from './plan.ts'
import { retry } from './retry.ts'
import { execute } from './statement.ts'

/**
 * The table of the migrations that have run, as Kysely's Migrator makes it, except its character set, and
 * the length of a name: where a page has 4 KiB, MySQL's index has room for 191 characters of four bytes.
 */
export const TABLE = 'kysely_migration'
type Executed = { [TABLE]: { name: string; timestamp: string } }

type Report = (message: string) => void

/** Milliseconds that other processes may hold the lock. */
const LOCK_TIMEOUT = 60_000

/** Milliseconds between two attempts, in which calls go on that have waited behind a statement of the work. */
const PAUSE = 1_000

const WAITING =
  'Waiting for the lock of the database: another process may be migrating it, or use a table in a transaction'
const HELD = 'other processes have held its lock for a minute; try again when they are done'

const NO_TABLES = 'it has no tables of the service, which its start creates'

/**
 * Runs the pending migrations under the lock of the database, and returns their names. `report` hears once if
 * other processes hold the lock, and the names of the migrations if the database is not new. A migration
 * that is added later with an earlier name runs too, and those of a newer release are left alone. In a Galera cluster each node has a lock of its own, so a
 * migration must be able to run twice. Throws the error of a migration, LockedError after a minute, and
 * DatabaseUnavailableError, also for tables of another program. Throws MissingDatabaseError for a database
 * without tables of the service, unless it `mayCreate` them.
 */
export async function migrate(
  db: RootDatabase,
  report?: Report,
  migrations = MIGRATIONS,
  mayCreate = true,
): Promise<string[]> {
  const isDone = await isCurrent(db, undefined, migrations).catch((error) => {
    // A server that hangs is waited for once, for a minute. A new database has no table of migrations.
    if (error instanceof DatabaseUnavailableError && !isOfOthers(error)) throw error
    return false
  })
  const run = () =>
    underLock(db, (session) => runPending(session, migrations, mayCreate, report), report)
  return isDone ? [] : await retry(run, { repeatable: false })
}

async function runPending(
  db: Database,
  migrations: Migration[],
  mayCreate: boolean,
  report?: Report,
) {
  const before = await executedNames(db).catch((error): string[] => {
    if (error instanceof DatabaseUnavailableError) throw error
    return [] // a new database has no table of them
  })
  const isOurs = migrations.some(({ name }) => before.includes(name))
  if (!isOurs && !mayCreate) throw new MissingDatabaseError(NO_TABLES)
  const foreign = before.length > 0 && !isOurs ? TABLE : await db.engine.claim(db, isOurs)
  if (foreign !== undefined) {
    const message = `its table ${foreign} belongs to another program: give the service a database of its own`
    throw new DatabaseUnavailableError(new Error(message), false)
  }
  const create = db.kysely.schema
    .createTable(TABLE)
    .ifNotExists()
    .addColumn('name', 'varchar(190)', (column) => column.notNull().primaryKey())
    .addColumn('timestamp', 'varchar(255)', (column) => column.notNull())
    .modifyEnd(await db.engine.tableOptions(db))
  await execute(db, create)
  const executed = await executedNames(db)
  const pending = migrations.filter(({ name }) => !executed.includes(name))
  const pendingNames = pending.map(({ name }) => name)
  if (isOurs && pending.length > 0) report?.(`Migrating the database: ${pendingNames.join(', ')}`)
  for (const { name, up } of pending) {
    try {
      await up(db)
    } catch (cause) {
      if (cause instanceof DatabaseUnavailableError) throw cause
      throw new Error(`The migration ${name} failed`, { cause })
    }
    const row = { name, timestamp: new Date().toISOString() } // for the operator: nothing compares the time
    const record = db.kysely.withTables<Executed>().insertInto(TABLE).values(row)
    await execute(db, record).catch((error) => {
      // Another node of the cluster has run the migration at the same moment.
      if (!(error instanceof DuplicateError)) throw error
    })
  }
  return pendingNames
}

/**
 * Returns whether each migration has run, with one query, before the calls that wait. A newer release may have run others. Throws
 * DatabaseUnavailableError, also at the deadline, and if there is no table of them. Throws
 * BrokenDatabaseError if the files of the database are no longer those that were opened.
 */
export async function isCurrent(
  db: Database,
  deadline?: Deadline,
  migrations = MIGRATIONS,
): Promise<boolean> {
  db.engine.checkPlace()
  const executed = await executedNames(db, deadline, 'readiness')
  return migrations.every(({ name }) => executed.includes(name))
}

async function executedNames(db: Database, deadline?: Deadline, use?: Use): Promise<string[]> {
  const query = db.kysely
    .withTables<Executed>()
    .selectFrom(TABLE)
    // Where the database had the character set `binary`, Kysely's Migrator made its names binary, too.
    .select((builder) => builder.cast<string>('name', 'char').as('name'))
  const { rows } = await db.runner.execute(query.compile(), deadline, use)
  return rows.map(({ name }) => name)
}

/**
 * Runs work while no other process has the lock of this database, and returns its result. A Galera cluster
 * has one lock on each node. Work that another transaction locks out or interrupts runs again, as if it were
 * new. On SQLite the work is one transaction. Throws LockedError after a minute.
 */
export async function underLock<Result>(
  db: RootDatabase,
  work: (session: Database) => Promise<Result>,
  report?: Report,
): Promise<Result> {
  const end = performance.now() + LOCK_TIMEOUT
  for (let attempt = 1; ; attempt++) {
    try {
      return await db.engine.underLock(db, work)
    } catch (error) {
      if (!isOfOthers(error)) throw error
      if (performance.now() > end) throw new LockedError(new Error(HELD), false)
      if (attempt === 1 && error instanceof LockedError) report?.(WAITING)
      await setTimeout(PAUSE)
    }
  }
}

const isOfOthers = (error: unknown) =>
  error instanceof LockedError || error instanceof ConflictError
