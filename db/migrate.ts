/** Brings a database to the newest schema, and tells whether it is there. */
import fs from 'node:fs/promises'
import path from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { FileMigrationProvider, type Migration, Migrator } from 'kysely/migration'
import type { Deadline } from './deadline.ts'
import { dedupe } from './dedupe.ts'
import { engineOf } from './engine.ts'
import { DatabaseUnavailableError, DuplicateError, LockedError } from './errors.ts'
import { execute } from './statement.ts'
import type { Database } from './tables.ts'

const FOLDER = path.join(import.meta.dirname, 'migrations')

/** How often migrations are tried, and the milliseconds between two attempts. */
const ATTEMPTS = 5
const INTERVAL = 200

/** Milliseconds after which no other attempt begins: one on a server that hangs takes seconds itself. */
const TIMEOUT = 10_000

/** Milliseconds that another process may hold the lock, and those after which the wait is reported. */
const LOCK_TIMEOUT = 60_000
const REPORT_DELAY = 1_000

const WAITING = 'Waiting for the lock of the migrations: another process may be running its own'

interface MigrateOptions {
  folder?: string
  /** Hears, once, that the migrations have not begun within a second. */
  onWait?: (words: string) => void
  /** Milliseconds that another process may hold the lock. */
  lockTimeout?: number
}

/**
 * Runs the pending migrations of a folder, in the order of their names, letter by letter (several
 * of one day that need an order have a number behind the date), and gives their names. One that
 * comes late, with a name before some that have run, is run like the others. It holds Kysely's
 * lock meanwhile, so that many instances may start at once. In a Galera cluster the lock counts on
 * one node only: who is overtaken by an instance on another node goes on with what is still to do.
 * That is why a migration must be such that it may run twice. Throws what stopped a migration, and
 * LockedError when another process holds the lock for too long, and DatabaseUnavailableError for a
 * table that cannot roll back.
 */
export async function migrate(
  db: Database,
  { folder = FOLDER, onWait, lockTimeout = LOCK_TIMEOUT }: MigrateOptions = {},
): Promise<string[]> {
  let end = performance.now() + TIMEOUT
  let executed: string[] = []
  let isReached = true
  try {
    executed = await executedNames(db)
  } catch (error) {
    isReached = !(error instanceof DatabaseUnavailableError) // or there is no table yet
  }
  if (await hasAll(executed, folder).catch(() => false)) {
    await engineOf(db).checkTables(db)
    return []
  }
  // Kysely takes a migration that has run and that it does not know for a corruption; it is one of
  // a newer release, and will not be run again.
  const ran: Migration = { up: async () => {} }
  let isReported = false
  const report = () => {
    if (!isReported) onWait?.(WAITING)
    isReported = true
  }
  let timer: NodeJS.Timeout | undefined
  const provider = {
    async getMigrations() {
      clearTimeout(timer) // Kysely asks for them when it has the lock
      return {
        ...Object.fromEntries(executed.map((name) => [name, ran])),
        ...(await migrationsOf(folder)),
      }
    },
  }
  const names: string[] = []
  const lockEnd = performance.now() + lockTimeout
  for (let attempt = 1; ; ) {
    const migrator = new Migrator({ db, provider, allowUnorderedMigrations: true })
    // What cannot be reached has no lock to wait for.
    if (isReached) timer = setTimeout(report, REPORT_DELAY)
    const { error, results = [] } = await migrator.migrateToLatest()
    clearTimeout(timer)
    const done = results.filter(({ status }) => status === 'Success')
    names.push(...done.map(({ migrationName }) => migrationName))
    if (!error) {
      await engineOf(db).checkTables(db)
      return names
    }
    if (error instanceof LockedError) {
      if (performance.now() > lockEnd) throw heldTooLong(lockTimeout)
      report()
      end = performance.now() + TIMEOUT
    } else {
      if (!wasOvertaken(error) || attempt++ === ATTEMPTS || performance.now() > end) throw error
      await wait(INTERVAL * (0.5 + Math.random()))
    }
    executed = await executedNames(db).catch(() => executed)
  }
}

/** Whether the error may have come of what another process did meanwhile. */
function wasOvertaken(error: unknown): boolean {
  // The other process has run one that this one does not know: Kysely gives no other sign of it.
  const isUnknown = error instanceof Error && error.message.startsWith('corrupted migrations')
  const hadNoEffect = error instanceof DatabaseUnavailableError && error.hadNoEffect
  return isUnknown || hadNoEffect || error instanceof DuplicateError
}

function heldTooLong(timeout: number): LockedError {
  const message = `another process has held the lock of the migrations for ${timeout / 1_000} s; try again when it is done`
  return new LockedError(new Error(message), true)
}

/** Whether each migration of the folder has run; one query. A newer release may have run others. */
export async function isCurrent(
  db: Database,
  deadline?: Deadline,
  folder = FOLDER,
): Promise<boolean> {
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

/** The migrations of a folder, read once. */
const migrationsOf = dedupe(
  (migrationFolder: string) =>
    new FileMigrationProvider({ fs, path, migrationFolder }).getMigrations(),
  { keep: true },
)
