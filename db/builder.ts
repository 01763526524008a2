/** What builds statements, and executes none: Kysely, and what differs between MySQL and SQLite. */
import type { CompiledQuery, Kysely, QueryExecutorProvider, RawBuilder } from 'kysely'
import type { Tables } from './tables.ts'

export interface Builder {
  readonly kysely: Kysely<Tables>
  readonly engine: Syntax
}

/** A query of Kysely, or one of its templates (`sql`). */
export interface Query<Row = unknown> {
  compile(kysely: QueryExecutorProvider): CompiledQuery<Row>
}

/** What differs between the statements of engines. */
export interface Syntax {
  /** The type of an int64 primary key that the database assigns. */
  readonly idType: 'bigint' | 'integer'
  /**
   * Its clock, in milliseconds since 1970 (UTC), as an expression for a statement. Stored times come from this
   * clock, and are compared with it alone: those of instances may differ.
   */
  readonly now: RawBuilder<bigint>
  /**
   * Returns the table for `selectFrom`, read by this index, because some databases choose a slower one.
   * The columns of the index must be those of the condition, then those of the order.
   */
  forceIndex<Table extends keyof Tables>(table: Table, index: string): Table
  /**
   * Returns the query as one that locks its rows, until the end of its statement or its transaction. It throws LockedError
   * at once where another transaction has locked one.
   */
  lockAtOnce<Query extends { forUpdate(): { noWait(): unknown } }>(query: Query): Query
}
