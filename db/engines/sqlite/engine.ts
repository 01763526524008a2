/** The engine of SQLite: row ids, the lock of the database, its mark, and shared transactions. */
import { SqliteAdapter, sql } from 'kysely'
import { Deadline } from '../../deadline.ts'
import type { Engine } from '../../engine.ts'
import { LockedError } from '../../errors.ts'
import type { Database, Tables } from '../../tables.ts'
import { isSqliteRowRejected } from './errors.ts'
import type { SqliteFile } from './file.ts'
import { inSqliteTransaction } from './transaction.ts'

/** Milliseconds that one attempt waits for the lock of the database. */
const LOCK_TIMEOUT = 1_000

/** The mark of the service's files, "PETS": https://sqlite.org/pragma.html#pragma_application_id */
const APPLICATION_ID = 0x50_45_54_53

export class SqliteEngine extends SqliteAdapter implements Engine {
  /** Only a primary key of this type is a row id, which is an int64. */
  readonly idType = 'integer'
  /** Rounded, because the seconds are a floating-point number: https://sqlite.org/lang_datefunc.html */
  readonly now = sql<bigint>`cast(round(unixepoch('subsec') * 1000) as integer)`
  readonly pagesPerQuery = 1
  readonly inTransaction = inSqliteTransaction
  readonly isRowRejected = isSqliteRowRejected
  readonly #file: SqliteFile

  constructor(file: SqliteFile) {
    super()
    this.#file = file
  }

  /** The driver has a session for each transaction, and makes the others wait itself. */
  override get supportsMultipleConnections(): boolean {
    return true
  }

  /** The lock of the writers is the lock of the database. A failure undoes the work. */
  async underLock<Result>(db: Database, work: (session: Database) => Promise<Result>) {
    using deadline = new Deadline(LOCK_TIMEOUT)
    try {
      return await inSqliteTransaction(db, work, deadline)
    } catch (error) {
      throw error === deadline.reason ? new LockedError(error, true) : error
    }
  }

  async claim(db: Database, isOurs: boolean): Promise<string | undefined> {
    const mark = sql<{ application_id: bigint }>`pragma application_id`
    const [id = 0n] = (await mark.execute(db)).rows.map((row) => row.application_id)
    if (id === BigInt(APPLICATION_ID)) return undefined
    const names = sql<{ name: string }>`select name from sqlite_schema
      where name not like 'sqlite\\_%' escape '\\' and name not like 'kysely\\_migration%' escape '\\'`
    const [other] = (await names.execute(db)).rows.map(({ name }) => name)
    if (!isOurs && other !== undefined) return other
    await sql`pragma application_id = ${sql.lit(APPLICATION_ID)}`.execute(db)
    return undefined
  }

  /** A migration and its record are one transaction, so none runs twice. */
  existsAlready(): boolean {
    return false
  }

  async tableOptions() {
    return sql``
  }

  /** SQLite uses all columns of an index without a hint. */
  forceIndex<Table extends keyof Tables>(table: Table): Table {
    return table
  }

  checkPlace(): void {
    this.#file.checkPlace()
  }
}
