/** The engine of MySQL and MariaDB: locks, storage engines, collations, index hints. */
import { MysqlAdapter, type QueryExecutorProvider, sql } from 'kysely'
import type { Engine } from '../../engine.ts'
import { DatabaseTimeoutError, DatabaseUnavailableError, LockedError } from '../../errors.ts'
import { type Database, TABLES, type Tables } from '../../tables.ts'
import { runInTransaction } from '../../transaction.ts'
import { existsOnMysql, isMysqlRowRejected } from './errors.ts'
import { COMMENT } from './session.ts'

/** Seconds that one attempt waits for the lock of the database. */
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
   * Kysely's own lock is for all databases of a server, and waits for an hour:
   * https://dev.mysql.com/doc/refman/9.4/en/locking-functions.html
   */
  async underLock<Result>(db: Database, work: (session: Database) => Promise<Result>) {
    return await db.connection().execute(async (session) => {
      const lock = sql<{ taken: bigint }>`select get_lock(${this.#lock}, ${LOCK_TIMEOUT}) as taken`
      const { rows } = await lock.execute(session)
      if (Number(rows[0]?.taken) !== 1) {
        throw new LockedError(new Error(`Another session holds the lock "${this.#lock}"`), true)
      }
      try {
        return await work(session)
      } finally {
        // A connection that was lost has released the lock.
        await sql`select release_lock(${this.#lock})`.execute(session).catch(() => {})
      }
    })
  }

  /** A table of the service has its comment. */
  async claim(db: Database): Promise<string | undefined> {
    const { rows } = await sql<{ name: string }>`
      select table_name as name from information_schema.tables where table_schema = database()
        and table_comment <> ${COMMENT} and table_name in (${sql.join(TABLES)})
    `.execute(db)
    return rows[0]?.name
  }

  /** All of Unicode, compared exactly. */
  async tableOptions(db: QueryExecutorProvider) {
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
