/** The embedded engine: Node's own SQLite behind Kysely's SqliteDialect. */
import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { type Kysely, SqliteAdapter, SqliteDialect, sql } from 'kysely'
import { databaseError } from './errors.ts'

/** Milliseconds that one process waits for another's transaction, if nothing else is said. */
const BUSY_TIMEOUT = 5_000

/** The same where requests are served: node:sqlite waits with the whole process. */
const SERVING_BUSY_TIMEOUT = 500

/**
 * A dialect on the SQLite file at `path`, which is made where it is missing, with its folder.
 * Where a `timeout` is set, in milliseconds, no statement waits longer.
 */
export function sqliteDialect(
  path: string,
  { timeout }: { timeout?: number | undefined },
): SqliteDialect {
  const busy = timeout === undefined ? BUSY_TIMEOUT : Math.min(timeout, SERVING_BUSY_TIMEOUT)
  return new EmbeddedDialect({ database: async () => open(path, busy) })
}

// Kysely takes no lock of its own here, since its connection is the only one of the process.
// Another process may have the same file: an immediate transaction keeps it out.
class EmbeddedDialect extends SqliteDialect {
  override createAdapter() {
    return new EmbeddedAdapter()
  }
}

class EmbeddedAdapter extends SqliteAdapter {
  #isLocked = false

  override async acquireMigrationLock(db: Kysely<unknown>) {
    await sql`begin immediate`.execute(db)
    this.#isLocked = true
  }
  // Called also when the lock was not had: then a commit would fail, and hide why.
  override async releaseMigrationLock(db: Kysely<unknown>) {
    if (this.#isLocked) await sql`commit`.execute(db)
    this.#isLocked = false
  }
}

function open(path: string, timeout: number) {
  const database = translated(() => {
    mkdirSync(dirname(path), { recursive: true })
    const opened = new DatabaseSync(path, { readBigInts: true, timeout })
    // FULL: what was acknowledged is on the disk, also after a power cut (sqlite.org/pragma.html).
    opened.exec('pragma journal_mode = wal; pragma synchronous = full')
    return opened
  })
  return {
    close: () => database.close(),
    prepare(text: string) {
      const statement = translated(() => database.prepare(text))
      type Values = Parameters<typeof statement.all>
      return {
        reader: statement.columns().length > 0,
        all: (values: readonly unknown[]) => translated(() => statement.all(...(values as Values))),
        run: (values: readonly unknown[]) => translated(() => statement.run(...(values as Values))),
        iterate: (values: readonly unknown[]) => statement.iterate(...(values as Values)),
      }
    },
  }
}

function translated<Result>(run: () => Result): Result {
  try {
    return run()
  } catch (error) {
    throw databaseError(error)
  }
}
