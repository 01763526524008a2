/** The embedded engine: Kysely's dialect on Node's own SQLite. */
import { closeSync, existsSync, mkdirSync, openSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite'
import { setTimeout } from 'node:timers/promises'
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
import { LRUCache } from 'lru-cache'
import { DatabaseUnavailableError, databaseError, LockedError } from '../errors.ts'
import { noteFailure, refuseAfterEnd, refuseInside } from '../inside.ts'
import type { Statement } from '../statement.ts'
import { join, type Target, type Trace } from '../trace.ts'
import { SqliteEngine } from './sqlite-engine.ts'

/** Milliseconds that a statement waits for another process's transaction, if nothing else is set. */
const LOCK_TIMEOUT = 5_000

/** Milliseconds between two attempts while another process holds the write lock. */
const LOCK_INTERVAL = 5

/** What traces say of the database. */
const TARGET: Target = { 'db.system.name': 'sqlite' }

// Immediate: a transaction that reads first could not be sure to write afterwards
// (SQLITE_BUSY_SNAPSHOT, https://sqlite.org/rescode.html#busy_snapshot).
const BEGIN = CompiledQuery.raw('begin immediate')
const COMMIT = CompiledQuery.raw('commit')
const ROLLBACK = CompiledQuery.raw('rollback')

/** Statements kept prepared; beyond them the one used least recently is forgotten. */
const MAX_PREPARED = 200

/**
 * A dialect on the SQLite file at `path`, which is made where it is missing, with its folder, if it
 * may be. A statement waits for another process's transaction until its deadline, and `timeout`
 * milliseconds at most, while the process goes on. It throws the deadline's reason, or LockedError.
 */
export function sqliteDialect(
  path: string,
  { timeout = LOCK_TIMEOUT, mayCreate }: { timeout?: number | undefined; mayCreate: boolean },
): Dialect {
  const driver = new EmbeddedDriver(() => open(path, mayCreate), timeout)
  return {
    createDriver: () => driver,
    createAdapter: () => new SqliteEngine(() => driver.isInTransaction),
    createQueryCompiler: () => new SqliteQueryCompiler(),
    createIntrospector: (db: Kysely<unknown>) => new SqliteIntrospector(db),
  }
}

/** A prepared statement, and the columns of its rows, of which one that only writes has none. */
interface Prepared {
  statement: StatementSync
  columns: string[]
}

/**
 * The driver, and the only connection to the file, which its sessions share: while one of them has
 * a transaction open, the statements of the others wait.
 */
class EmbeddedDriver implements Driver {
  readonly #open: () => DatabaseSync
  readonly #timeout: number
  readonly #prepared = new LRUCache<string, Prepared>({ max: MAX_PREPARED })
  #database: DatabaseSync | undefined
  /** The session whose transaction is open, and what resolves when it is over. */
  #owner: EmbeddedSession | undefined
  #over = Promise.withResolvers<void>()

  constructor(open: () => DatabaseSync, timeout: number) {
    this.#open = open
    this.#timeout = timeout
  }

  async init(): Promise<void> {
    this.#database = await this.#whenUnlocked(() => translated(this.#open))
  }

  async acquireConnection(): Promise<EmbeddedSession> {
    refuseInside()
    return new EmbeddedSession(this)
  }

  async releaseConnection(): Promise<void> {}

  async beginTransaction(session: EmbeddedSession): Promise<void> {
    await session.begin()
  }

  async commitTransaction(session: EmbeddedSession): Promise<void> {
    await session.commit()
  }

  async rollbackTransaction(session: EmbeddedSession): Promise<void> {
    await session.rollback()
  }

  async destroy(): Promise<void> {
    this.#prepared.clear()
    this.#database?.close()
    this.#setOwner(undefined)
  }

  get isInTransaction(): boolean {
    return this.#owner !== undefined
  }

  isOwnedBy(session: EmbeddedSession): boolean {
    return this.#owner === session
  }

  /** Executes a statement when no other session has a transaction, and no other process the lock. */
  async execute<Row>(
    session: EmbeddedSession,
    { sql: text, parameters, deadline }: Statement,
    trace: Trace | undefined,
  ): Promise<QueryResult<Row>> {
    const ended = trace?.statement(text, TARGET)
    try {
      const result = await this.#whenUnlocked(async () => {
        while (this.#owner && this.#owner !== session) {
          await (deadline ? deadline.race(this.#over.promise) : this.#over.promise)
        }
        if (deadline?.reason) throw deadline.reason
        try {
          return this.#execute<Row>(text, parameters)
        } finally {
          this.#setOwner(this.#database?.isTransaction ? session : undefined)
        }
      })
      ended?.()
      return result
    } catch (error) {
      ended?.(error)
      throw error
    }
  }

  #setOwner(owner: EmbeddedSession | undefined): void {
    if (this.#owner && !owner) {
      this.#over.resolve()
      this.#over = Promise.withResolvers()
    }
    this.#owner = owner
  }

  // SQLite's own wait, `busy_timeout`, would block the whole process: a timer waits in its place.
  async #whenUnlocked<Result>(attempt: () => Result | Promise<Result>): Promise<Result> {
    const end = performance.now() + this.#timeout
    for (;;) {
      try {
        return await attempt()
      } catch (error) {
        if (!(error instanceof LockedError) || performance.now() > end) throw error
      }
      await setTimeout(LOCK_INTERVAL)
    }
  }

  #execute<Row>(text: string, parameters: readonly unknown[]): QueryResult<Row> {
    return translated(() => {
      const { statement, columns } = this.#prepare(text)
      const values = parameters as SQLInputValue[] // node:sqlite itself refuses what is not
      if (columns.length > 0) {
        // The columns are those that the query asks for: its type is Kysely's word.
        const rows = statement.all(...values) as unknown as unknown[][]
        return { rows: rows.map((row) => objectOf(columns, row)) as Row[] }
      }
      const { changes, lastInsertRowid } = statement.run(...values)
      // As on MySQL, the id of the first of several rows, whose ids are consecutive.
      const insertId = BigInt(lastInsertRowid) - BigInt(changes) + 1n
      return { rows: [], numAffectedRows: BigInt(changes), insertId }
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
}

/** What Kysely takes for a connection. */
class EmbeddedSession implements DatabaseConnection {
  readonly #driver: EmbeddedDriver
  #hasBegun = false
  /** The traces of the calls whose statements the transaction has, and the one it had last. */
  #traces = new Set<Trace>()
  #latest: Trace | undefined

  constructor(driver: EmbeddedDriver) {
    this.#driver = driver
  }

  async begin(): Promise<void> {
    await this.#driver.execute(this, BEGIN, undefined)
    this.#hasBegun = true
    this.#traces = new Set()
    this.#latest = undefined
  }

  // In WAL mode it never waits for a lock, which the transaction has: https://sqlite.org/wal.html
  async commit(): Promise<void> {
    // What waits for the disk is the commit, for all of them at once.
    await this.#execute(COMMIT, join(this.#traces))
    this.#hasBegun = false
  }

  // A full disk, for one, ends a transaction by itself: to end it again would fail, and hide why.
  async rollback(): Promise<void> {
    this.#hasBegun = false
    if (this.#driver.isOwnedBy(this)) await this.#driver.execute(this, ROLLBACK, undefined)
  }

  async executeQuery<Row>(query: CompiledQuery): Promise<QueryResult<Row>> {
    refuseAfterEnd()
    const { sql: text, deadline }: Statement = query
    const trace = deadline?.trace
    if (trace && this.#hasBegun) this.#traces.add(trace)
    // A savepoint ends, or begins: what is undone does not wait for the commit.
    else if (this.#latest && text.startsWith('rollback')) this.#traces.delete(this.#latest)
    this.#latest = trace
    try {
      return await this.#execute<Row>(query, trace)
    } catch (error) {
      if (error instanceof DatabaseUnavailableError) noteFailure(error)
      throw error
    }
  }

  async #execute<Row>(query: CompiledQuery, trace: Trace | undefined): Promise<QueryResult<Row>> {
    if (this.#hasBegun && !this.#driver.isOwnedBy(this)) {
      const cause = new Error('the database has ended the transaction')
      throw new DatabaseUnavailableError(cause, true)
    }
    return await this.#driver.execute<Row>(this, query, trace)
  }

  // biome-ignore lint/correctness/useYield: Kysely wants the method; nothing here streams.
  async *streamQuery(): AsyncGenerator<never> {
    throw new Error('Streaming is not supported')
  }
}

function open(path: string, mayCreate: boolean): DatabaseSync {
  if (mayCreate) mkdirSync(dirname(path), { recursive: true })
  else if (!existsSync(path)) {
    // A slip in the path must not become an empty shop.
    const cause = new Error('there is no such file; with ?create behind its name it is made')
    throw new DatabaseUnavailableError(cause, false)
  }
  // Names and hashes of keys are nobody else's business; SQLite gives its other files the same mode.
  closeSync(openSync(path, 'a', 0o600))
  const database = new DatabaseSync(path, { readBigInts: true, timeout: 0 })
  try {
    // FULL: what was acknowledged is on the disk, also after a power cut (sqlite.org/pragma.html).
    database.exec('pragma journal_mode = wal; pragma synchronous = full')
    return database
  } catch (error) {
    database.close()
    throw error
  }
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
