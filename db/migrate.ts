/** Migrations: brings a database to the newest schema, and checks whether it has it. */
import fs from 'node:fs/promises'
import path from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import {
  FileMigrationProvider,
  type Migration,
  type MigrationResult,
  Migrator,
} from 'kysely/migration'
import type { Deadline } from './deadline.ts'
import { dedupe } from './dedupe.ts'
import { engineOf } from './engine.ts'
import { DatabaseUnavailableError, DuplicateError, LockedError } from './errors.ts'
import { execute } from './statement.ts'
import type { Database } from './tables.ts'

const FOLDER = path.join(import.meta.dirname, 'migrations')

/** Maximum number of attempts, and the average milliseconds between two of them. */
const ATTEMPTS = 5
const INTERVAL = 200

/** Milliseconds after which no further attempt begins: each takes seconds if the server hangs. */
const TIMEOUT = 10_000

/** Milliseconds that another process may hold the lock. */
const LOCK_TIMEOUT = 60_000

const WAITING = 'Waiting for the lock of the migrations: another process may be running its own'

interface MigrateOptions {
  folder?: string
  /** Is called once if another process holds the lock for more than a second. */
  onWait?: (message: string) => void
  /** Milliseconds that another process may hold the lock. */
  lockTimeout?: number
}

/**
 * Runs the pending migrations of a folder in the alphabetical order of their names, and returns these
 * names. A migration that is added later with an earlier name runs too. Many instances may migrate at
 * once, because Kysely holds a lock. In a Galera cluster the lock is limited to one node, so a migration
 * must be able to run twice. Throws the error of a migration, LockedError after the timeout of the lock,
 * and DatabaseUnavailableError.
 */
export async function migrate(
  db: Database,
  { folder = FOLDER, onWait, lockTimeout = LOCK_TIMEOUT }: MigrateOptions = {},
): Promise<string[]> {
  const end = performance.now() + TIMEOUT
  const executed = await executedNames(db).catch(() => []) // a new database has no table of them
  // A folder that is unreadable at the moment is read again by each attempt.
  const isDone = await hasAll(executed, folder).catch(() => false)
  return isDone ? [] : await runPending(db, executed, folder, onWait, lockTimeout, end)
}

async function runPending(
  db: Database,
  executed: string[],
  folder: string,
  onWait: MigrateOptions['onWait'],
  lockTimeout: number,
  end: number,
): Promise<string[]> {
  // For Kysely, an executed migration that it does not know is a corruption. In fact it belongs to a
  // newer release, and Kysely does not run it again.
  const known: Migration = { up: async () => {} }
  const getMigrations = async () => ({
    ...Object.fromEntries(executed.map((name) => [name, known])),
    ...(await migrationsOf(folder)),
  })
  const migrator = new Migrator({
    db,
    provider: { getMigrations },
    allowUnorderedMigrations: true,
  })
  const names: string[] = []
  const lockEnd = performance.now() + lockTimeout
  let hasWaited = false
  for (let attempt = 1; ; ) {
    const { error, results = [] } = await migrator.migrateToLatest()
    const succeeded = results.filter(({ status }) => status === 'Success')
    names.push(...succeeded.map(({ migrationName }) => migrationName))
    if (!error) return names
    if (error instanceof LockedError) {
      if (performance.now() > lockEnd) throw heldTooLong(lockTimeout)
      if (!hasWaited) onWait?.(WAITING)
      hasWaited = true
      end = performance.now() + TIMEOUT
    } else {
      const isLast = attempt++ === ATTEMPTS || performance.now() > end
      if (isLast || !isWorthRetry(error)) throw withName(error, results)
      await wait(INTERVAL * (0.5 + Math.random()))
    }
    executed = await executedNames(db).catch(() => executed)
  }
}

/** Whether the database was unavailable, or the error may be the effect of a concurrent process. */
function isWorthRetry(error: unknown): boolean {
  // The other process has run a migration that this one does not know. Kysely has no class for this.
  const isUnknown = error instanceof Error && error.message.startsWith('corrupted migrations')
  const hadNoEffect = error instanceof DatabaseUnavailableError && error.hadNoEffect
  return isUnknown || hadNoEffect || error instanceof DuplicateError
}

/** Returns the error with the name of the migration that failed, if one failed. */
function withName(error: unknown, results: readonly MigrationResult[]): unknown {
  const failed = results.find(({ status }) => status === 'Error')
  if (!failed || error instanceof DatabaseUnavailableError) return error
  return new Error(`The migration ${failed.migrationName} failed`, { cause: error })
}

function heldTooLong(timeout: number): LockedError {
  const message = `another process has held the lock of the migrations for ${timeout / 1_000} s; try again when it is done`
  return new LockedError(new Error(message), true)
}

/**
 * Returns whether each migration of the folder has run, with one query. A newer release may have run
 * others. Throws DatabaseUnavailableError, also at the deadline, and if there is no table of them. Throws
 * ReplacedError if the database is no longer the one that was opened.
 */
export async function isCurrent(
  db: Database,
  deadline?: Deadline,
  folder = FOLDER,
): Promise<boolean> {
  engineOf(db).checkPlace()
  return await hasAll(await executedNames(db, deadline), folder)
}

async function hasAll(executed: string[], folder: string): Promise<boolean> {
  return Object.keys(await migrationsOf(folder)).every((name) => executed.includes(name))
}

async function executedNames(db: Database, deadline?: Deadline): Promise<string[]> {
  const query = db
    .withTables<{ kysely_migration: { name: string } }>()
    .selectFrom('kysely_migration')
    .select('name')
  return (await execute(db, query, deadline)).rows.map(({ name }) => name)
}

/** Returns the migrations of a folder, which it reads once. */
const migrationsOf = dedupe(
  (migrationFolder: string) =>
    new FileMigrationProvider({ fs, path, migrationFolder }).getMigrations(),
  { keep: true },
)
