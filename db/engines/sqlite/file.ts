/** A SQLite database: its one connection, which several sessions share. */
import { closeSync, mkdirSync, openSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite'
import { setTimeout } from 'node:timers/promises'
import {
  type CompiledQuery,
  type QueryResult,
  type RootOperationNode,
  SelectQueryNode,
  ValuesNode,
} from 'kysely'
import { LRUCache } from 'lru-cache'
import type { Deadline } from '../../deadline.ts'
import {
  BrokenDatabaseError,
  DatabaseUnavailableError,
  LockedError,
  MissingDatabaseError,
  RejectedRowError,
} from '../../errors.ts'
import { sqliteError, withReason } from './errors.ts'
import { Place, refuseLeftovers } from './place.ts'
import { SharedReads } from './shared-reads.ts'

/** Milliseconds between two attempts while another process holds the write lock. */
const LOCK_INTERVAL = 5

/** Maximum number of prepared statements; the least recently used one is dropped. */
const MAX_PREPARED = 200

/** A prepared statement, and the columns of its rows: none if it only writes. */
interface Prepared {
  statement: StatementSync
  columns: string[]
}

/** While a session has an open transaction, the statements of other sessions wait. */
export class SqliteFile {
  readonly #path: string
  readonly #mayCreate: boolean
  readonly #timeout: number
  readonly #shared = new SharedReads(() => this.#version())
  readonly #prepared = new LRUCache<string, Prepared>({ max: MAX_PREPARED })
  #database: DatabaseSync | undefined
  #place: Place | undefined
  /** The session with an open transaction, and what resolves at its end. */
  #owner: { session: object; ended: PromiseWithResolvers<void> } | undefined
  /** Why the database is not used any more. */
  #damage: BrokenDatabaseError | undefined

  constructor(path: string, mayCreate: boolean, timeout: number) {
    this.#path = path
    this.#mayCreate = mayCreate
    this.#timeout = timeout
  }

  close(): void {
    this.#setOwner(undefined)
    try {
      this.checkPlace()
    } catch {
      return // SQLite would remove the log at its path, which may be the new one of another process.
    }
    this.#database?.close()
    this.#place?.close()
    this.#database = undefined
    this.#place = undefined
    this.#damage = new BrokenDatabaseError(new Error('The service has closed the database'), true)
  }

  /**
   * Throws BrokenDatabaseError while a path does not lead to the file that was opened, for good once a file was
   * shortened, and from the first error on that SQLite reports of damage.
   */
  checkPlace(): void {
    if (this.#damage) throw this.#damage
    try {
      this.#place?.check()
    } catch (error) {
      this.#stopUsing(error)
      // At each check, because a reader with an older snapshot delays it.
      if (this.#database) this.#place?.saveLog(this.#database)
      throw error
    }
  }

  /** Rolls back the open transaction after an error that ends it, and perhaps the use of the database. */
  #stopUsing(error: unknown): void {
    if (error instanceof BrokenDatabaseError && error !== this.#place?.lost) this.#damage = error
    this.undo()
  }

  /** Whether a session has the open transaction. */
  isOwnedBy(session: object): boolean {
    return this.#owner?.session === session
  }

  #setOwner(session: object | undefined): void {
    if (this.#owner?.session === session) return
    this.#owner?.ended.resolve()
    this.#owner = session && { session, ended: Promise.withResolvers() }
  }

  /**
   * Executes a statement once no other session has a transaction, and no other process the lock. The first
   * statement opens the file. Throws the reason of the deadline, LockedError after the timeout,
   * RejectedRowError, and the errors of `sqliteError`.
   */
  async execute<Row>(
    session: object,
    statement: CompiledQuery,
    deadline: Deadline,
  ): Promise<QueryResult<Row>> {
    const end = performance.now() + this.#timeout
    for (;;) {
      // After the end of a transaction, another one may begin at once.
      while (this.#owner && !this.isOwnedBy(session)) {
        await deadline.race(this.#owner.ended.promise)
      }
      if (deadline.reason) throw deadline.reason
      try {
        return this.#run<Row>(statement)
      } catch (cause) {
        const error = this.#errorOf(cause)
        if (!(error instanceof LockedError) || performance.now() > end) throw error
      } finally {
        this.#setOwner(this.#database?.isTransaction ? session : undefined)
      }
      // SQLite's own wait, `busy_timeout`, would block the whole process.
      await setTimeout(LOCK_INTERVAL)
    }
  }

  /**
   * Executes a read now. Undefined while a session has a transaction, or another process a lock against readers.
   * `isShared`: its rows may be those of an equal read of this turn or the one before. Throws the errors of `sqliteError`.
   */
  readNow(statement: CompiledQuery, isShared = false): QueryResult<never> | undefined {
    if (this.#database?.isTransaction) return undefined
    const read = () => this.#run<never>(statement)
    try {
      return isShared ? this.#shared.read(statement, read) : read()
    } catch (cause) {
      const error = this.#errorOf(cause)
      if (error instanceof LockedError) return undefined
      throw error
    }
  }

  /** Returns what is another after each commit of another process: https://sqlite.org/pragma.html#pragma_data_version */
  #version(): unknown {
    const { statement } = this.#prepare(this.#database as DatabaseSync, 'pragma data_version')
    return (statement.get() as unknown as unknown[])[0] // it has one row, an array as all
  }

  /** Returns an error of a statement as one of db/errors.ts, and takes note of it. */
  #errorOf(cause: unknown): unknown {
    const error = this.#reasonOf(sqliteError(cause))
    if (error instanceof BrokenDatabaseError) this.#stopUsing(error)
    return error
  }

  /** Returns why SQLite cannot use its files, if they are no longer those that were opened. */
  #reasonOf(error: unknown): unknown {
    if (!(error instanceof DatabaseUnavailableError) || error instanceof LockedError) return error
    try {
      this.checkPlace()
      return error
    } catch (reason) {
      return sqliteError(reason)
    }
  }

  /** Undoes the open transaction, whose session executes no further statement. */
  undo(): void {
    if (!this.#database?.isTransaction) return
    this.#database.exec('rollback')
    this.#setOwner(undefined)
  }

  #run<Row>({ sql, parameters, query }: CompiledQuery): QueryResult<Row> {
    if (this.#damage || this.#place?.lost) this.checkPlace()
    const database = this.#database ?? this.#open()
    const prepared = this.#prepare(database, sql)
    const values = parameters as SQLInputValue[] // node:sqlite rejects other values
    const hasRows = prepared.columns.length > 0
    if (hasRows && SelectQueryNode.is(query)) return read(prepared, values)
    this.#shared.clear()
    const isAlone = !database.isTransaction
    if (isAlone || sql === 'commit') this.checkPlace()
    if (hasRows) return read(prepared, values) // `insert … returning`, or raw SQL, which may write, too
    const rowCount = rowsOf(query)
    if (rowCount === undefined) return write(prepared, values)
    return this.#insert<Row>(database, prepared, values, rowCount)
  }

  #open(): DatabaseSync {
    const database = openFile(this.#path, this.#mayCreate)
    this.#place = new Place(this.#path)
    this.#database = database
    return database
  }

  /** Inserts rows: all of them or none, also within a transaction, which then goes on. */
  #insert<Row>(
    database: DatabaseSync,
    insert: Prepared,
    values: SQLInputValue[],
    rowCount: number,
  ): QueryResult<Row> {
    const [begin, end, undo] = database.isTransaction
      ? ['savepoint rows', 'release rows', 'rollback to rows; release rows']
      : ['begin immediate', 'commit', 'rollback']
    this.#prepare(database, begin).statement.run()
    try {
      const result = write<Row>(insert, values, rowCount)
      this.#prepare(database, end).statement.run()
      return result
    } catch (error) {
      if (database.isTransaction) database.exec(undo) // an error may have ended the transaction
      throw error
    }
  }

  #prepare(database: DatabaseSync, sql: string): Prepared {
    const known = this.#prepared.get(sql)
    if (known) return known
    const statement = database.prepare(sql)
    // Rows as arrays, converted by `toObject`, are a quarter faster than rows as objects.
    statement.setReturnArrays(true)
    const prepared = { statement, columns: statement.columns().map(({ name }) => name) }
    this.#prepared.set(sql, prepared)
    return prepared
  }
}

/**
 * Opens a file, which is created with its folder if it is missing and `mayCreate`. Throws BrokenDatabaseError if
 * what lies there would cost data, MissingDatabaseError, DatabaseUnavailableError, and the errors of node:sqlite and the file system.
 */
function openFile(path: string, mayCreate: boolean): DatabaseSync {
  if (mayCreate) mkdirSync(dirname(path), { recursive: true })
  else if (!statSync(path, { throwIfNoEntry: false })) {
    // A typing error in the path must not create an empty database.
    throw new MissingDatabaseError(
      'the file does not exist; a start with ?create at the end of the URL creates it',
    )
  }
  refuseLeftovers(path)
  // Only the owner may read the file. SQLite creates its other files with the same mode.
  closeSync(openSync(path, 'a', 0o600))
  const database = new DatabaseSync(path, { readBigInts: true, timeout: 0 })
  try {
    // FULL: a commit survives a power failure (https://sqlite.org/pragma.html#pragma_synchronous). The
    // first statement creates the log.
    database.exec('pragma journal_mode=wal; pragma synchronous=full; select 1 from sqlite_schema')
    return database
  } catch (error) {
    database.close()
    throw withReason(error, path)
  }
}

function read<Row>({ statement, columns }: Prepared, values: SQLInputValue[]): QueryResult<Row> {
  // `setReturnArrays` makes rows arrays. Kysely declares the type of the objects.
  const rows = statement.all(...values) as unknown as unknown[][]
  return { rows: rows.map((row) => toObject(columns, row)) as Row[] }
}

/** Throws RejectedRowError if the database did not add `rowCount` rows. */
function write<Row>(
  { statement }: Prepared,
  values: SQLInputValue[],
  rowCount?: number,
): QueryResult<Row> {
  const result = statement.run(...values)
  const changes = BigInt(result.changes)
  if (rowCount !== undefined && changes !== BigInt(rowCount)) {
    // A trigger of the operator has ignored a row (`raise(ignore)`): SQLite reports a success.
    throw new RejectedRowError(`Of ${rowCount} rows the database added ${changes}`)
  }
  // As in MySQL, the id of the first of several rows, whose ids are consecutive.
  const insertId = BigInt(result.lastInsertRowid) - changes + 1n
  return { rows: [], numAffectedRows: changes, insertId }
}

/** Returns the number of rows that an insert sends; undefined for other statements. */
const rowsOf = (query: RootOperationNode): number | undefined =>
  query.kind === 'InsertQueryNode' && query.values && ValuesNode.is(query.values)
    ? query.values.values.length
    : undefined

function toObject(columns: string[], row: unknown[]): Record<string, unknown> {
  const object: Record<string, unknown> = {}
  for (let index = 0; index < columns.length; index++) {
    object[columns[index] as string] = row[index] // within its bounds
  }
  return object
}
