/** The engine of MySQL and MariaDB: locks, storage engines, collations, index hints. */
import { type Kysely, MysqlAdapter, sql } from 'kysely'
import type { Engine } from '../../engine.ts'
import { DatabaseTimeoutError, DatabaseUnavailableError, LockedError } from '../../errors.ts'
import type { Database, Tables } from '../../tables.ts'
import { runInTransaction } from '../../transaction.ts'
import { existsOnMysql, isMysqlRowRejected } from './errors.ts'
import { COMMENT } from './session.ts'

/** Seconds that one attempt waits for the lock of the migrations. */
const LOCK_TIMEOUT = 1

/** Maximum number of characters in the name of a lock. */
const MAX_NAME = 64

// MariaDB's name, and MySQL's. Both compare code points without padding, so 'Graz' and 'Graz ' are two
// texts, as in SQLite.
const COLLATIONS = ['utf8mb4_nopad_bin', 'utf8mb4_0900_bin']

/** Returns a statement without its hints, for a table that does not have the index, or a view. */
export const withoutHints = (text: string): string =>
  text.replaceAll(/ force index \(`[^`]*`\)/g, '')

export class MysqlEngine extends MysqlAdapter implements Engine {
  readonly idType = 'bigint'
  /** Not `unix_timestamp`, which is wrong by an hour in the hour that a time zone repeats. */
  readonly now = sql<bigint>`timestampdiff(microsecond, '1970-01-01', utc_timestamp(3)) div 1000`
  readonly pagesPerQuery = 8
  readonly isRowRejected = isMysqlRowRejected
  readonly existsAlready = existsOnMysql
  readonly #lock: string

  constructor(url: string) {
    super()
    const database = decodeURIComponent(new URL(url).pathname.slice(1))
    this.#lock = `migrations of ${database}`.slice(0, MAX_NAME)
  }

  /**
   * Takes a lock for this database. Kysely's own lock is for all databases of a server, and waits for an
   * hour. Throws LockedError if another session holds the lock:
   * https://dev.mysql.com/doc/refman/9.4/en/locking-functions.html
   */
  override async acquireMigrationLock(db: Kysely<unknown>): Promise<void> {
    const query = sql<{ taken: bigint }>`select get_lock(${this.#lock}, ${LOCK_TIMEOUT}) as taken`
    const { rows } = await query.execute(db)
    if (Number(rows[0]?.taken) === 1) return
    throw new LockedError(new Error(`The lock "${this.#lock}" is held by another session`), true)
  }

  override async releaseMigrationLock(db: Kysely<unknown>): Promise<void> {
    await sql`select release_lock(${this.#lock})`.execute(db)
  }

  /** All of Unicode, compared exactly. */
  async tableOptions(db: Kysely<unknown>) {
    const query = sql<{ Collation: string }>`show collation like 'utf8mb4%bin'`
    const known = (await query.execute(db)).rows.map(({ Collation }) => Collation)
    const collation = COLLATIONS.find((name) => known.includes(name)) ?? 'utf8mb4_bin'
    return sql`character set utf8mb4 collate ${sql.raw(collation)} comment ${sql.lit(COMMENT)}`
  }

  /**
   * MariaDB would use only the first column of the index, and read all rows before the cursor. MySQL
   * would use the primary key, and read all rows that the condition excludes:
   * https://dev.mysql.com/doc/refman/9.4/en/index-hints.html
   */
  forceIndex<Table extends keyof Tables>(table: Table, index: string): Table {
    // Kysely has no hints, but an alias may be any SQL: `pets` as `pets` force index (`pets_status_id`).
    const alias = sql`${sql.id(table)} force index (${sql.id(index)})`
    return sql.table(table).as(alias) as unknown as Table // the same columns under the same name
  }

  /** Each new connection finds the server by its name. */
  checkPlace(): void {}

  /** The server rolls back a transaction with its connection, so before the commit it has no effect. */
  async inTransaction<Result>(
    db: Database,
    work: (transaction: Database) => Promise<Result>,
  ): Promise<Result> {
    return await db.transaction().execute(async (transaction) => {
      try {
        return await runInTransaction(() => work(transaction))
      } catch (error) {
        const isLost = error instanceof DatabaseUnavailableError && !error.hadNoEffect
        if (!isLost || error instanceof DatabaseTimeoutError) throw error
        throw new DatabaseUnavailableError(error.cause, true)
      }
    })
  }
}
