/** The embedded engine: Kysely's dialect on Node's own SQLite. */
import { closeSync, existsSync, mkdirSync, openSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite'
import {
  type CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  type Driver,
  type Kysely,
  type QueryResult,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
  sql,
} from 'kysely'
import { LRUCache } from 'lru-cache'
import { DatabaseUnavailableError, databaseError } from './errors.ts'
import { noteFailure, refuseAfterEnd, refuseInside } from './inside.ts'
import type { ImmediateAdapter, Statement } from './statement.ts'
import { join, type Target, type Trace } from './trace.ts'

/** Milliseconds that one process waits for another's transaction, if nothing else is said. */
const BUSY_TIMEOUT = 5_000

/** The same where requests are served: node:sqlite waits with the whole process. */
const SERVING_BUSY_TIMEOUT = 500

/** What traces say of the database. */
const TARGET: Target = { 'db.system.name': 'sqlite' }

/** Statements kept prepared; beyond them the one used least recently is forgotten. */
const MAX_PREPARED = 200

/**
 * A dialect on the SQLite file at `path`, which is made where it is missing, with its folder, if it
 * may be. Where a `timeout` is set, in milliseconds, no statement waits longer.
 */
export function sqliteDialect(
  path: string,
  { timeout, mayCreate }: { timeout?: number | undefined; mayCreate: boolean },
): Dialect {
  const busy = timeout === undefined ? BUSY_TIMEOUT : Math.min(timeout, SERVING_BUSY_TIMEOUT)
  const driver = new EmbeddedDriver(() => open(path, busy, mayCreate))
  return {
    createDriver: () => driver,
    createAdapter: () => new EmbeddedAdapter(driver),
    createQueryCompiler: () => new SqliteQueryCompiler(),
    createIntrospector: (db: Kysely<unknown>) => new SqliteIntrospector(db),
  }
}

/** A prepared statement, and the columns of its rows, of which one that only writes has none. */
interface Prepared {
  statement: StatementSync
  columns: string[]
}

/** The driver and its only connection, which its users have one after another. */
class EmbeddedDriver implements Driver, DatabaseConnection {
  readonly #open: () => DatabaseSync
  readonly #prepared = new LRUCache<string, Prepared>({ max: MAX_PREPARED })
  #database: DatabaseSync | undefined
  /** Settles when the connection is free again; undefined while it is. */
  #taken: PromiseWithResolvers<void> | undefined
  /** The traces of those whose statements the transaction has, and of whose it had last. */
  readonly #traces = new Set<Trace>()
  #latest: Trace | undefined

  constructor(open: () => DatabaseSync) {
    this.#open = open
  }

  async init(): Promise<void> {
    this.#database = translated(this.#open)
  }

  // Kysely's own queue, which the adapter turns off, would come before anything could be refused.
  async acquireConnection(): Promise<DatabaseConnection> {
    refuseInside()
    while (this.#taken) await this.#taken.promise
    this.#taken = Promise.withResolvers()
    return this
  }

  async releaseConnection(): Promise<void> {
    const taken = this.#taken
    this.#taken = undefined
    taken?.resolve()
  }

  // Immediate: a transaction that reads first could not be sure to write afterwards.
  async beginTransaction(): Promise<void> {
    this.execute('begin immediate')
  }

  async commitTransaction(): Promise<void> {
    const trace = this.#traces.size > 0 ? join(this.#traces) : undefined
    this.#traces.clear()
    // What waits for the disk is the commit, for all of them at once.
    if (trace) this.#traced(trace, 'commit', [])
    else this.execute('commit')
  }

  // A full disk, for one, ends a transaction by itself: to end it again would fail, and hide why.
  async rollbackTransaction(): Promise<void> {
    this.#traces.clear()
    if (this.isInTransaction) this.execute('rollback')
  }

  async destroy(): Promise<void> {
    this.#prepared.clear()
    this.#database?.close()
  }

  get isInTransaction(): boolean {
    return this.#database?.isTransaction ?? false
  }

  async executeQuery<Row>(query: CompiledQuery): Promise<QueryResult<Row>> {
    try {
      return this.#executeAtOnce<Row>(query)
    } catch (error) {
      if (error instanceof DatabaseUnavailableError) noteFailure(error)
      throw error
    }
  }

  /**
   * The result of a statement; undefined when it has to wait, because the connection is not open
   * yet, or is somebody's who is in a transaction.
   */
  executeNow<Row>(query: Statement<Row>): QueryResult<Row> | undefined {
    if (!this.#database?.isOpen || this.isInTransaction) return undefined
    return this.#executeAtOnce(query)
  }

  #executeAtOnce<Row>({ sql: text, parameters, deadline }: Statement): QueryResult<Row> {
    if (deadline?.reason) throw deadline.reason
    refuseAfterEnd()
    if (deadline?.trace) {
      if (this.isInTransaction) {
        this.#traces.add(deadline.trace)
        this.#latest = deadline.trace
      }
      return this.#traced<Row>(deadline.trace, text, parameters)
    }
    if (this.#latest) {
      // A savepoint ends, or begins: who is undone does not wait for the commit.
      if (text.startsWith('rollback')) this.#traces.delete(this.#latest)
      this.#latest = undefined
    }
    return this.execute<Row>(text, parameters)
  }

  #traced<Row>(trace: Trace, text: string, parameters: readonly unknown[]): QueryResult<Row> {
    const ended = trace.statement(text, TARGET)
    try {
      const result = this.execute<Row>(text, parameters)
      ended()
      return result
    } catch (error) {
      ended(error)
      throw error
    }
  }

  execute<Row>(text: string, parameters: readonly unknown[] = []): QueryResult<Row> {
    return translated(() => {
      const { statement, columns } = this.#prepare(text)
      const values = parameters as SQLInputValue[] // node:sqlite itself refuses what is not
      if (columns.length > 0) {
        // The columns are those that the query asks for: its type is Kysely's word.
        const rows = statement.all(...values) as unknown as unknown[][]
        return { rows: rows.map((row) => objectOf(columns, row)) as Row[] }
      }
      const { changes, lastInsertRowid } = statement.run(...values)
      return { rows: [], numAffectedRows: BigInt(changes), insertId: BigInt(lastInsertRowid) }
    })
  }

  #prepare(text: string) {
    const known = this.#prepared.get(text)
    if (known) return known
    if (!this.#database) throw new Error('The database is not open')
    const statement = this.#database.prepare(text)
    // Lists of values are read a quarter faster than objects, of which one is made here.
    statement.setReturnArrays(true)
    const prepared = { statement, columns: statement.columns().map(({ name }) => name) }
    this.#prepared.set(text, prepared)
    return prepared
  }

  // biome-ignore lint/correctness/useYield: Kysely wants the method; nothing here streams.
  async *streamQuery(): AsyncGenerator<never> {
    throw new Error('Streaming is not supported')
  }
}

// Kysely takes no lock of its own here, since its connection is the only one of the process.
// Another process may have the same file: an immediate transaction keeps it out.
class EmbeddedAdapter extends SqliteAdapter implements ImmediateAdapter {
  readonly #driver: EmbeddedDriver
  /** Kysely need not queue those who use the connection: the driver does. */
  override get supportsMultipleConnections() {
    return true
  }

  constructor(driver: EmbeddedDriver) {
    super()
    this.#driver = driver
  }

  executeNow<Row>(query: Statement<Row>): QueryResult<Row> | undefined {
    return this.#driver.executeNow(query)
  }

  override async acquireMigrationLock(db: Kysely<unknown>) {
    await sql`begin immediate`.execute(db)
  }
  override async releaseMigrationLock(db: Kysely<unknown>) {
    if (this.#driver.isInTransaction) await sql`commit`.execute(db)
  }
}

function open(path: string, timeout: number, mayCreate: boolean): DatabaseSync {
  if (mayCreate) mkdirSync(dirname(path), { recursive: true })
  else if (!existsSync(path)) {
    // A slip in the path must not become an empty shop.
    const cause = new Error('there is no such file; with ?create behind its name it is made')
    throw new DatabaseUnavailableError(cause, false)
  }
  // Names and hashes of keys are nobody else's business; SQLite gives its other files the same mode.
  closeSync(openSync(path, 'a', 0o600))
  const database = new DatabaseSync(path, { readBigInts: true, timeout })
  // FULL: what was acknowledged is on the disk, also after a power cut (sqlite.org/pragma.html).
  database.exec('pragma journal_mode = wal; pragma synchronous = full')
  return database
}

function translated<Result>(run: () => Result): Result {
  try {
    return run()
  } catch (error) {
    throw databaseError(error)
  }
}

function objectOf(columns: string[], row: unknown[]): Record<string, unknown> {
  const object: Record<string, unknown> = {}
  for (let index = 0; index < columns.length; index++) {
    object[columns[index] as string] = row[index] // within its bounds
  }
  return object
}
