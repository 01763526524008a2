/** Kysely's dialect for a SQLite file. */
import {
  CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  type Driver,
  type Kysely,
  type QueryResult,
  SqliteIntrospector,
  SqliteQueryCompiler,
} from 'kysely'
import { DatabaseUnavailableError } from '../errors.ts'
import type { Statement } from '../statement.ts'
import { join, type Trace } from '../trace.ts'
import { recordFailure, refuseAfterEnd, refuseInTransaction } from '../transaction-scope.ts'
import { SqliteEngine } from './sqlite-engine.ts'
import { SqliteFile } from './sqlite-file.ts'

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
    createDriver: () => new SqliteDriver(file),
    createAdapter: () => new SqliteEngine(() => file.hasTransaction),
    createQueryCompiler: () => new SqliteQueryCompiler(),
    createIntrospector: (db: Kysely<unknown>) => new SqliteIntrospector(db),
  }
}

class SqliteDriver implements Driver {
  readonly #file: SqliteFile

  constructor(file: SqliteFile) {
    this.#file = file
  }

  async init(): Promise<void> {
    await this.#file.open()
  }

  async acquireConnection(): Promise<SqliteSession> {
    refuseInTransaction()
    return new SqliteSession(this.#file)
  }

  async releaseConnection(): Promise<void> {}

  async beginTransaction(session: SqliteSession): Promise<void> {
    await session.begin()
  }

  async commitTransaction(session: SqliteSession): Promise<void> {
    await session.commit()
  }

  async rollbackTransaction(session: SqliteSession): Promise<void> {
    await session.rollback()
  }

  async destroy(): Promise<void> {
    this.#file.close()
  }
}

class SqliteSession implements DatabaseConnection {
  readonly #file: SqliteFile
  #hasBegun = false
  /** The traces of the calls in the transaction, and the trace of its latest statement. */
  #traces = new Set<Trace>()
  #latest: Trace | undefined

  constructor(file: SqliteFile) {
    this.#file = file
  }

  async begin(): Promise<void> {
    await this.#file.execute(this, BEGIN, undefined)
    this.#hasBegun = true
    this.#traces = new Set()
    this.#latest = undefined
  }

  /** Commits without a wait for a lock, which the transaction holds (https://sqlite.org/wal.html). */
  async commit(): Promise<void> {
    // All calls wait for the disk together.
    await this.#execute(COMMIT, join(this.#traces))
    this.#hasBegun = false
  }

  async rollback(): Promise<void> {
    this.#hasBegun = false
    // Some errors, such as a full disk, end the transaction. A rollback would then hide the error.
    if (this.#file.isOwnedBy(this)) await this.#file.execute(this, ROLLBACK, undefined)
  }

  async executeQuery<Row>(query: CompiledQuery): Promise<QueryResult<Row>> {
    refuseAfterEnd()
    const { sql, deadline }: Statement = query
    const trace = deadline?.trace
    if (trace && this.#hasBegun) this.#traces.add(trace)
    // After the rollback to a savepoint, the call does not wait for the commit.
    else if (this.#latest && sql.startsWith('rollback')) this.#traces.delete(this.#latest)
    this.#latest = trace
    try {
      return await this.#execute<Row>(query, trace)
    } catch (error) {
      if (error instanceof DatabaseUnavailableError) recordFailure(error)
      throw error
    }
  }

  async #execute<Row>(query: CompiledQuery, trace: Trace | undefined): Promise<QueryResult<Row>> {
    if (this.#hasBegun && !this.#file.isOwnedBy(this)) {
      const cause = new Error('the database has ended the transaction')
      throw new DatabaseUnavailableError(cause, true)
    }
    return await this.#file.execute<Row>(this, query, trace)
  }

  streamQuery(): never {
    throw new Error('Not supported')
  }
}
