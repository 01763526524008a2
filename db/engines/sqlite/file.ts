/** A SQLite database: its one connection, which several sessions share. */
import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite'
import { setTimeout } from 'node:timers/promises'
import { type QueryResult, type RootOperationNode, ValuesNode } from 'kysely'
import { LRUCache } from 'lru-cache'
import { BrokenDatabaseError, LockedError, RejectedRowError } from '../../errors.ts'
import type { Statement } from '../../transaction.ts'
import { sqliteError } from './errors.ts'
import { type Files, filesOf, isLogLost, lostPath, openFile } from './place.ts'

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
  readonly #prepared = new LRUCache<string, Prepared>({ max: MAX_PREPARED })
  #database: DatabaseSync | undefined
  /** The files that were opened. */
  #files: Files = new Map()
  /** Why the database is not used until the files are back. */
  #lost: BrokenDatabaseError | undefined
  /** Why the database is not used any more. */
  #damage: BrokenDatabaseError | undefined
  /** The session with an open transaction, and what resolves at its end. */
  #owner: { session: object; end: PromiseWithResolvers<void> } | undefined

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
    this.#database = undefined
    this.#damage = new BrokenDatabaseError(new Error('The service has closed the database'), true)
  }

  /**
   * Throws BrokenDatabaseError if a path no longer leads to the file that was opened, which SQLite goes on
   * using (https://sqlite.org/howtocorrupt.html#_unlinking_or_renaming_a_database_file_while_in_use), and
   * from the first error on that SQLite reports of damage.
   */
  checkPlace(): void {
    if (this.#damage) throw this.#damage
    const lost = lostPath(this.#files)
    if (lost === undefined) {
      this.#lost = undefined
      return
    }
    if (!this.#lost) {
      const message = `${lost} is no longer the file that the service opened, and new data is lost with the old file: put that back, or restart the service`
      this.#lost = new BrokenDatabaseError(new Error(message), true)
    }
    this.#undo()
    // SQLite still has a log that was removed: this copies what was acknowledged into the database. At each
    // call, because a reader with an older snapshot delays it.
    if (isLogLost(this.#files)) this.#database?.exec('pragma wal_checkpoint')
    throw this.#lost
  }

  isOwnedBy(session: object): boolean {
    return this.#owner?.session === session
  }

  /**
   * Executes a statement once no other session has a transaction, and no other process the lock. The first
   * statement opens the file. Throws the reason of the deadline, LockedError after the timeout,
   * RejectedRowError, and the errors of `sqliteError`.
   */
  async execute<Row>(session: object, statement: Statement): Promise<QueryResult<Row>> {
    const { deadline } = statement
    const end = performance.now() + this.#timeout
    for (;;) {
      while (this.#owner && this.#owner.session !== session) {
        const { promise } = this.#owner.end
        await (deadline ? deadline.race(promise) : promise)
      }
      if (deadline?.reason) throw deadline.reason
      try {
        return this.#run<Row>(statement)
      } catch (cause) {
        const error = sqliteError(cause)
        if (error instanceof BrokenDatabaseError && error !== this.#lost) {
          this.#damage = error
          this.#undo()
        }
        if (!(error instanceof LockedError) || performance.now() > end) throw error
      } finally {
        this.#setOwner(this.#database?.isTransaction ? session : undefined)
      }
      // SQLite's own wait, `busy_timeout`, would block the whole process.
      await setTimeout(LOCK_INTERVAL)
    }
  }

  /** Undoes the open transaction, whose session executes no further statement. */
  #undo(): void {
    if (!this.#database?.isTransaction) return
    this.#database.exec('rollback')
    this.#setOwner(undefined)
  }

  #setOwner(session: object | undefined): void {
    if (this.#owner?.session === session) return
    this.#owner?.end.resolve()
    this.#owner = session && { session, end: Promise.withResolvers() }
  }

  #run<Row>({ sql, parameters, query }: Statement): QueryResult<Row> {
    if (this.#damage || this.#lost) this.checkPlace()
    if (!this.#database) {
      const opened = openFile(this.#path, this.#mayCreate)
      this.#files = filesOf(this.#path)
      this.#database = opened
    }
    const database = this.#database
    const { statement, columns } = this.#prepare(database, sql)
    const values = parameters as SQLInputValue[] // node:sqlite rejects other values
    if (columns.length > 0) {
      // `setReturnArrays` makes rows arrays. Kysely declares the type of the objects.
      const rows = statement.all(...values) as unknown as unknown[][]
      return { rows: rows.map((row) => toObject(columns, row)) as Row[] }
    }
    const isAlone = !database.isTransaction
    if (isAlone || sql === 'commit') this.checkPlace()
    const rowCount = rowsOf(query)
    const insertsAlone = isAlone && rowCount !== undefined
    if (insertsAlone) this.#prepare(database, 'begin immediate').statement.run()
    try {
      const result = statement.run(...values)
      const changes = BigInt(result.changes)
      if (rowCount !== undefined && changes !== BigInt(rowCount)) {
        // A trigger of the operator has ignored a row (`raise(ignore)`): SQLite reports a success.
        throw new RejectedRowError(`Of ${rowCount} rows the database added ${changes}`)
      }
      if (insertsAlone) this.#prepare(database, 'commit').statement.run()
      // As in MySQL, the id of the first of several rows, whose ids are consecutive.
      const insertId = BigInt(result.lastInsertRowid) - changes + 1n
      return { rows: [], numAffectedRows: changes, insertId }
    } catch (error) {
      if (insertsAlone && database.isTransaction) database.exec('rollback')
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
