/** The embedded engine: Node's own SQLite behind Kysely's SqliteDialect. */
import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { type Kysely, SqliteAdapter, SqliteDialect, sql } from 'kysely'
import { databaseError } from './errors.ts'

/** Milliseconds that a writer waits for another process's transaction; the whole process waits. */
const BUSY_TIMEOUT = 2_000

/** A dialect on the SQLite file at `path`, which is made where it is missing, with its folder. */
export function sqliteDialect(path: string): SqliteDialect {
  return new EmbeddedDialect({ database: async () => open(path) })
}

// Kysely takes no lock of its own here, since its connection is the only one of the process.
// Another process may have the same file: an immediate transaction keeps it out.
class EmbeddedDialect extends SqliteDialect {
  override createAdapter() {
    return new EmbeddedAdapter()
  }
}

class EmbeddedAdapter extends SqliteAdapter {
  override async acquireMigrationLock(db: Kysely<unknown>) {
    await sql`begin immediate`.execute(db)
  }
  override async releaseMigrationLock(db: Kysely<unknown>) {
    await sql`commit`.execute(db)
  }
}

function open(path: string) {
  mkdirSync(dirname(path), { recursive: true })
  const database = new DatabaseSync(path, { readBigInts: true, timeout: BUSY_TIMEOUT })
  // FULL: what was acknowledged is on the disk, also after a power cut (sqlite.org/pragma.html).
  database.exec('pragma journal_mode = wal; pragma synchronous = full')
  return {
    close: () => database.close(),
    prepare(text: string) {
      const statement = database.prepare(text)
      type Values = Parameters<typeof statement.all>
      return {
        reader: statement.columns().length > 0,
        all: translated((values) => statement.all(...(values as Values))),
        run: translated((values) => statement.run(...(values as Values))),
        iterate: translated((values) => statement.iterate(...(values as Values))),
      }
    },
  }
}

function translated<Result>(run: (values: readonly unknown[]) => Result) {
  return (values: readonly unknown[]): Result => {
    try {
      return run(values)
    } catch (error) {
      throw databaseError(error)
    }
  }
}
