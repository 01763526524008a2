/** The embedded engine: Node's own SQLite behind Kysely's SqliteDialect. */
import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { type Kysely, SqliteAdapter, SqliteDialect, sql } from 'kysely'
import { guardDriver } from './guard.ts'

/** Milliseconds that a writer waits for another process's transaction. */
const BUSY_TIMEOUT = 5_000

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
  override createDriver() {
    return guardDriver(super.createDriver())
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
        all: (values: readonly unknown[]) => statement.all(...(values as Values)),
        run: (values: readonly unknown[]) => statement.run(...(values as Values)),
        iterate: (values: readonly unknown[]) => statement.iterate(...(values as Values)),
      }
    },
  }
}
