/** What differs between MySQL and SQLite. */
import type { Dialect, DialectAdapter, QueryExecutorProvider, RawBuilder } from 'kysely'
import type { Database, RootDatabase } from './database.ts'
import type { QueueSettings } from './queue.ts'
import type { Demand, Sessions } from './session.ts'
import type { Tables } from './tables.ts'

/** What an engine gives to make a database of. */
export interface EngineParts {
  dialect: Omit<Dialect, 'createDriver'>
  settings: QueueSettings
  /** Returns the sessions for what waits for them. */
  createSessions(demand: Demand): Sessions
}

/** A database and all transactions on it share one engine. */
export interface Engine extends DialectAdapter {
  /** The type of an int64 primary key that the database assigns. */
  readonly idType: 'bigint' | 'integer'
  /** Its clock: an expression for the milliseconds since 1970 (UTC). */
  readonly now: RawBuilder<bigint>
  /** The options after `create table (…)`. */
  tableOptions(db: QueryExecutorProvider): Promise<RawBuilder<unknown>>
  /**
   * Returns the table for `selectFrom`, read by this index, because some databases choose a slower one.
   * The columns of the index must be those of the condition, then those of the order.
   */
  forceIndex<Table extends keyof Tables>(table: Table, index: string): Table
  /** Returns the query as one that throws LockedError at once for rows that another transaction has changed. */
  withoutWait<Query extends { forUpdate(): { noWait(): unknown } }>(query: Query): Query
  /** Whether the database works in this process, which waits for it. */
  readonly isInProcess: boolean
  /** Runs work under the lock of the database. Throws LockedError if others hold it for a second (MySQL) or five (SQLite). */
  underLock<Result>(db: RootDatabase, work: (session: Database) => Promise<Result>): Promise<Result>
  /**
   * Marks a new database as the service's, in which migrations will create tables. Returns the name of a
   * table that belongs to another program, if there is one. `isOurs`: some migrations have run here.
   */
  claim(db: Database, isOurs: boolean): Promise<string | undefined>
  /** Throws BrokenDatabaseError if the opened files were replaced, removed, or found damaged. */
  checkPlace(): void
}

/** Returns the engine of a database or transaction: every dialect of `connect` has such an adapter. */
export const engineOf = (db: QueryExecutorProvider) => db.getExecutor().adapter as Engine

/**
 * Returns the time of the database, in milliseconds since 1970 (UTC), as an expression for a statement.
 * Stored times come from this clock, and are compared with it alone: those of instances may differ.
 */
export const now = (db: QueryExecutorProvider): RawBuilder<bigint> => engineOf(db).now
