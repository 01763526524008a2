/** A SQLite file, opened by node:sqlite, whose one connection several sessions share. */
import {
  type BigIntStats,
  closeSync,
  existsSync,
  fstatSync,
  mkdirSync,
  openSync,
  statSync,
} from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite'
import { setTimeout } from 'node:timers/promises'
import type { QueryResult } from 'kysely'
import { LRUCache } from 'lru-cache'
import { DatabaseUnavailableError, LockedError, ReplacedError } from '../../errors.ts'
import type { Statement } from '../../statement.ts'
import { sqliteError } from './errors.ts'

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
  /** The file that was opened. */
  #opened: BigIntStats | undefined
  /** The session with an open transaction, and the promise that resolves at its end. */
  #owner: object | undefined
  #ownerLeaves = Promise.withResolvers<void>()

  constructor(path: string, mayCreate: boolean, timeout: number) {
    this.#path = path
    this.#mayCreate = mayCreate
    this.#timeout = timeout
  }

  readonly open = async (): Promise<void> => {
    const opened = await this.#whenUnlocked(() => openFile(this.#path, this.#mayCreate))
    this.#database = opened.database
    this.#opened = opened.stats
  }

  readonly close = async (): Promise<void> => {
    this.#prepared.clear()
    this.#database?.close()
    this.#setOwner(undefined)
  }

  /**
   * Throws ReplacedError if the path no longer leads to the opened file, which SQLite goes on using
   * (https://sqlite.org/howtocorrupt.html#_unlinking_or_renaming_a_database_file_while_in_use).
   */
  checkPlace(): void {
    if (!this.#opened) return
    const { dev, ino } = this.#opened
    const stats = statSync(this.#path, { bigint: true, throwIfNoEntry: false })
    if (stats?.dev === dev && stats.ino === ino) return
    const message = `${this.#path} is no longer the file that the service opened, and new data is lost with the old file: put that back, or restart the service`
    throw new ReplacedError(new Error(message), true)
  }

  get hasTransaction(): boolean {
    return this.#owner !== undefined
  }

  isOwnedBy(session: object): boolean {
    return this.#owner === session
  }

  /**
   * Executes a statement once no other session has a transaction, and no other process the lock. Throws
   * the reason of the deadline, LockedError after the timeout, and the errors of `sqliteError`.
   */
  async execute<Row>(
    session: object,
    { sql, parameters, deadline }: Statement,
  ): Promise<QueryResult<Row>> {
    return await this.#whenUnlocked(async () => {
      while (this.#owner && this.#owner !== session) {
        const { promise } = this.#ownerLeaves
        await (deadline ? deadline.race(promise) : promise)
      }
      if (deadline?.reason) throw deadline.reason
      try {
        return this.#run<Row>(sql, parameters)
      } finally {
        this.#setOwner(this.#database?.isTransaction ? session : undefined)
      }
    })
  }

  #setOwner(owner: object | undefined): void {
    if (this.#owner && !owner) {
      this.#ownerLeaves.resolve()
      this.#ownerLeaves = Promise.withResolvers()
    }
    this.#owner = owner
  }

  // SQLite's own wait, `busy_timeout`, would block the whole process.
  async #whenUnlocked<Result>(attempt: () => Result | Promise<Result>): Promise<Result> {
    const end = performance.now() + this.#timeout
    for (;;) {
      try {
        return await attempt()
      } catch (cause) {
        const error = sqliteError(cause)
        if (!(error instanceof LockedError) || performance.now() > end) throw error
      }
      await setTimeout(LOCK_INTERVAL)
    }
  }

  #run<Row>(sql: string, parameters: readonly unknown[]): QueryResult<Row> {
    const { statement, columns } = this.#prepare(sql)
    const values = parameters as SQLInputValue[] // node:sqlite rejects other values
    if (columns.length > 0) {
      // `setReturnArrays` makes rows arrays. Kysely declares the type of the objects.
      const rows = statement.all(...values) as unknown as unknown[][]
      return { rows: rows.map((row) => toObject(columns, row)) as Row[] }
    }
    const { changes, lastInsertRowid } = statement.run(...values)
    // As in MySQL, the id of the first of several rows, whose ids are consecutive.
    const insertId = BigInt(lastInsertRowid) - BigInt(changes) + 1n
    return { rows: [], numAffectedRows: BigInt(changes), insertId }
  }

  #prepare(sql: string): Prepared {
    const known = this.#prepared.get(sql)
    if (known) return known
    if (!this.#database) throw new Error('The database is not open')
    const statement = this.#database.prepare(sql)
    // Rows as arrays, converted by `toObject`, are a quarter faster than rows as objects.
    statement.setReturnArrays(true)
    const prepared = { statement, columns: statement.columns().map(({ name }) => name) }
    this.#prepared.set(sql, prepared)
    return prepared
  }
}

function openFile(
  path: string,
  mayCreate: boolean,
): { database: DatabaseSync; stats: BigIntStats } {
  if (mayCreate) mkdirSync(dirname(path), { recursive: true })
  else if (!existsSync(path)) {
    // A typing error in the path must not create an empty database.
    const cause = new Error('the file does not exist; ?create at the end of the URL creates it')
    throw new DatabaseUnavailableError(cause, false)
  }
  // Only the owner may read the file. SQLite creates its other files with the same mode.
  const descriptor = openSync(path, 'a', 0o600)
  const stats = fstatSync(descriptor, { bigint: true })
  closeSync(descriptor)
  const database = new DatabaseSync(path, { readBigInts: true, timeout: 0 })
  try {
    // FULL: a commit survives a power failure (https://sqlite.org/pragma.html#pragma_synchronous).
    database.exec('pragma journal_mode = wal; pragma synchronous = full')
    return { database, stats }
  } catch (error) {
    database.close()
    throw error
  }
}

function toObject(columns: string[], row: unknown[]): Record<string, unknown> {
  const object: Record<string, unknown> = {}
  for (let index = 0; index < columns.length; index++) {
    object[columns[index] as string] = row[index] // within its bounds
  }
  return object
}
