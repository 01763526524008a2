/** What differs between the databases. */
import type { DialectAdapter, Kysely, RawBuilder } from 'kysely'
import type { Deadline } from './deadline.ts'
import type { Database, Tables } from './tables.ts'

/** What a database and all transactions on it share. Each folder of `engines/` makes one. */
export interface Engine extends DialectAdapter {
  /** The type of an int64 primary key that the engine assigns, ever greater, never used twice. */
  readonly idType: 'bigint' | 'integer'
  /** What follows `create table (…)`. */
  tableOptions(db: Kysely<unknown>): Promise<RawBuilder<unknown>>
  hasIndex(db: Kysely<unknown>, table: string, name: string): Promise<boolean>
  /** The table for `selectFrom`, read by this index. */
  readBy<Table extends keyof Tables>(table: Table, index: string): Table
  /** Pages that one query reads at most; 1 where the database is in this process. */
  readonly pagesPerQuery: number
  /** Throws DatabaseUnavailableError, with the remedy, for tables that cannot roll back. */
  checkTables(db: Database): Promise<void>
  /** Runs work in a transaction; see `inTransaction`. */
  inTransaction<Result>(
    db: Database,
    work: (transaction: Database) => Promise<Result>,
    deadline: Deadline | undefined,
  ): Promise<Result>
}

/** The engine of a database, or of a transaction. */
export const engineOf = (db: Pick<Kysely<unknown>, 'getExecutor'>): Engine =>
  db.getExecutor().adapter as Engine // every dialect of `connect` has such an adapter
