/** Migrations: brings a database to the newest schema, and checks whether it has it. */
import fs from 'node:fs/promises'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { FileMigrationProvider, type Migration } from 'kysely/migration'
import { tableOptions } from './columns.ts'
import type { Deadline } from './deadline.ts'
import { dedupe } from './dedupe.ts'
import { engineOf } from './engine.ts'
import { DatabaseUnavailableError, DuplicateError, LockedError } from './errors.ts'
import { type LockOptions, underLock } from './lock.ts'
import { retry } from './retry.ts'
import { execute } from './statement.ts'
import type { Database } from './tables.ts'

const FOLDER = path.join(import.meta.dirname, 'migrations')

/** The table of the migrations that have run, as Kysely's Migrator makes it, except its character set. */
const TABLE = 'kysely_migration'
type Executed = { [TABLE]: { name: string; timestamp: string } }

/**
 * Runs the pending migrations of a folder in the alphabetical order of their names, under the lock of the
 * database, and returns these names. A migration that is added later with an earlier name runs too, and
 * those of a newer release are left alone. In a Galera cluster each node has a lock of its own, so a
 * migration must be able to run twice. Throws the error of a migration, LockedError after the timeout of
 * the lock, and DatabaseUnavailableError, also for tables of another program.
 */
export async function migrate(
  db: Database,
  { folder = FOLDER, ...lock }: LockOptions & { folder?: string } = {},
): Promise<string[]> {
  const isDone = await isCurrent(db, undefined, folder).catch((error) => {
    // A server that hangs is waited for once, for a minute. A new database has no table of migrations.
    if (error instanceof DatabaseUnavailableError && !(error instanceof LockedError)) throw error
    return false
  })
  const work = async (session: Database) => runPending(session, await migrationsOf(folder))
  const run = () => underLock(db, work, lock)
  return isDone ? [] : await retry(run, { repeatable: false })
}

async function runPending(db: Database, migrations: Record<string, Migration>): Promise<string[]> {
  const before = await executedNames(db).catch(() => []) // a new database has no table of them
  const isOurs = before.some((name) => name in migrations)
  const foreign = before.length > 0 && !isOurs ? TABLE : await engineOf(db).claim(db, isOurs)
  if (foreign !== undefined) {
    const message = `its table ${foreign} belongs to another program: give the service a database of its own`
    throw new DatabaseUnavailableError(new Error(message), false)
  }
  await db.schema
    .createTable(TABLE)
    .ifNotExists()
    .addColumn('name', 'varchar(255)', (column) => column.notNull().primaryKey())
    .addColumn('timestamp', 'varchar(255)', (column) => column.notNull())
    .modifyEnd(await tableOptions(db))
    .execute()
  const executed = await executedNames(db)
  const pending = Object.entries(migrations)
    .filter(([name]) => !executed.includes(name))
    .sort(([name], [other]) => (name < other ? -1 : 1))
  for (const [name, { up }] of pending) {
    try {
      await up(db)
    } catch (cause) {
      if (cause instanceof DatabaseUnavailableError) throw cause
      throw new Error(`The migration ${name} failed`, { cause })
    }
    const row = { name, timestamp: new Date().toISOString() } // for the operator: nothing compares the time
    const record = db.withTables<Executed>().insertInto(TABLE).values(row)
    await record.execute().catch((error) => {
      // Another node of the cluster has run the migration at the same moment.
      if (!(error instanceof DuplicateError)) throw error
    })
  }
  return pending.map(([name]) => name)
}

/**
 * Returns whether each migration of the folder has run, with one query. A newer release may have run
 * others. Throws DatabaseUnavailableError, also at the deadline, and if there is no table of them. Throws
 * BrokenDatabaseError if the files of the database are no longer those that were opened.
 */
export async function isCurrent(
  db: Database,
  deadline?: Deadline,
  folder = FOLDER,
): Promise<boolean> {
  engineOf(db).checkPlace()
  const executed = await executedNames(db, deadline)
  return Object.keys(await migrationsOf(folder)).every((name) => executed.includes(name))
}

async function executedNames(db: Database, deadline?: Deadline): Promise<string[]> {
  const query = db
    .withTables<Executed>()
    .selectFrom(TABLE)
    // Where the database had the character set `binary`, Kysely's Migrator made its names binary, too.
    .select((builder) => builder.cast<string>('name', 'char').as('name'))
  return (await execute(db, query, deadline)).rows.map(({ name }) => name)
}

/** Returns the migrations of a folder, which it reads once. */
const migrationsOf = dedupe(
  (migrationFolder: string) =>
    new FileMigrationProvider({
      fs,
      path,
      migrationFolder,
      import: (file) => import(pathToFileURL(file).href), // as a path, `#`, `?` or `%` would mislead
    }).getMigrations(),
  { keep: true },
)
