/** The engine of SQLite: row ids, the lock of the migrations, and shared transactions. */
import { CompiledQuery, type Kysely, SqliteAdapter, sql } from 'kysely'
import { Deadline } from '../../deadline.ts'
import type { Engine } from '../../engine.ts'
import { LockedError } from '../../errors.ts'
import type { Statement } from '../../statement.ts'
import type { Tables } from '../../tables.ts'
import { existsOnSqlite, isSqliteRowRejected } from './errors.ts'
import type { SqliteFile } from './file.ts'
import { inSqliteTransaction } from './transaction.ts'

/** Milliseconds that one attempt waits for the lock of the migrations. */
const LOCK_TIMEOUT = 1_000

export class SqliteEngine extends SqliteAdapter implements Engine {
  /** Only a primary key of this type is a row id, which is an int64. */
  readonly idType = 'integer'
  /** Rounded, because the seconds are a floating-point number: https://sqlite.org/lang_datefunc.html */
  readonly now = sql<bigint>`cast(round(unixepoch('subsec') * 1000) as integer)`
  readonly pagesPerQuery = 1
  readonly inTransaction = inSqliteTransaction
  readonly isRowRejected = isSqliteRowRejected
  readonly existsAlready = existsOnSqlite
  readonly #file: SqliteFile

  constructor(file: SqliteFile) {
    super()
    this.#file = file
  }

  // Otherwise a session that waits would block all other sessions in Kysely.
  override get supportsMultipleConnections(): boolean {
    return true
  }

  /**
   * Begins an immediate transaction, which locks out other processes. Throws LockedError if another
   * process holds the lock. The driver locks out other sessions.
   */
  override async acquireMigrationLock(db: Kysely<unknown>): Promise<void> {
    using deadline = new Deadline(LOCK_TIMEOUT)
    const begin: Statement = { ...CompiledQuery.raw('begin immediate'), deadline }
    try {
      await db.executeQuery(begin)
    } catch (error) {
      throw error === deadline.reason ? new LockedError(error, true) : error
    }
  }

  override async releaseMigrationLock(db: Kysely<unknown>): Promise<void> {
    if (this.#file.hasTransaction) await sql`commit`.execute(db)
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
