/** Kysely's dialect for a SQLite file. */
import {
  CompiledQuery,
  type Dialect,
  type Kysely,
  type QueryResult,
  SqliteIntrospector,
  SqliteQueryCompiler,
} from 'kysely'
import { DatabaseUnavailableError } from '../../errors.ts'
import type { Statement } from '../../statement.ts'
import { Connection, createDriver } from '../driver.ts'
import { SqliteEngine } from './engine.ts'
import { SqliteFile } from './file.ts'

/** Milliseconds that a statement waits for the transaction of another process, by default. */
const LOCK_TIMEOUT = 5_000

// Immediate: a transaction that begins with a read may be unable to write later
// (https://sqlite.org/rescode.html#busy_snapshot).
const BEGIN = CompiledQuery.raw('begin immediate')
const COMMIT = CompiledQuery.raw('commit')
const ROLLBACK = CompiledQuery.raw('rollback')

interface Settings {
  /** Maximum milliseconds that a statement waits for the transaction of another process. */
  timeout?: number | undefined
  /** Whether a missing file is created, with its folder. */
  mayCreate: boolean
}

/** Returns a dialect for the SQLite file at `path`. A statement that waits does not block the process. */
export function sqliteDialect(
  path: string,
  { timeout = LOCK_TIMEOUT, mayCreate }: Settings,
): Dialect {
  const file = new SqliteFile(path, mayCreate, timeout)
  return {
    createDriver: () => createDriver(() => new SqliteSession(file), file),
    createAdapter: () => new SqliteEngine(file),
    createQueryCompiler: () => new SqliteQueryCompiler(),
    createIntrospector: (db: Kysely<unknown>) => new SqliteIntrospector(db),
  }
}

class SqliteSession extends Connection {
  readonly #file: SqliteFile
  #hasBegun = false

  constructor(file: SqliteFile) {
    super()
    this.#file = file
  }

  async begin(): Promise<void> {
    await this.#file.execute(this, BEGIN)
    this.#hasBegun = true
  }

  /** Commits without a wait for a lock, which the transaction holds (https://sqlite.org/wal.html). */
  async commit(): Promise<void> {
    await this.execute(COMMIT)
    this.#hasBegun = false
  }

  async rollback(): Promise<void> {
    this.#hasBegun = false
    // Some errors, such as a full disk, end the transaction. A rollback would then hide the error.
    if (this.#file.isOwnedBy(this)) await this.#file.execute(this, ROLLBACK)
  }

  async release(): Promise<void> {}

  async execute<Row>(statement: Statement): Promise<QueryResult<Row>> {
    if (this.#hasBegun && !this.#file.isOwnedBy(this)) {
      const cause = new Error('the database has ended the transaction')
      throw new DatabaseUnavailableError(cause, true)
    }
    return await this.#file.execute<Row>(this, statement)
  }
}
