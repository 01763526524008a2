/** Statements that a store makes for a call. */
import { type QueryResult, sql } from 'kysely'
import type { Query } from './builder.ts'
import type { Database } from './database.ts'
import type { Deadline, WithDeadline } from './deadline.ts'
import type { Tables } from './tables.ts'

/**
 * Compiles and executes a query, once. Throws the errors of db/errors.ts, and the reason of the deadline; by
 * default the database has its timeout.
 */
export const execute = <Row>(
  db: Database,
  query: Query<Row>,
  deadline?: Deadline,
): Promise<QueryResult<Row>> => db.runner.execute(query.compile(db.kysely), deadline)

/**
 * Locks the row with this id until the end of the transaction, and returns whether there is one. Throws the errors of
 * db/errors.ts.
 * @public Relations need it, such as that of visits and helpers in test/visits.
 */
export const lockRow = (
  db: Database,
  table: keyof Tables,
  id: bigint,
  call: WithDeadline,
): Promise<boolean> => lockRows(db, table, [id], call)

/**
 * Locks the rows with these ids until the end of the transaction, by one statement in the order of their ids, and
 * returns whether there are all of them: databases count the rows that an update matches, also those that it does
 * not change. Throws the errors of db/errors.ts.
 * @public As `lockRow`, for what names several rows, such as a tour in test/visits.
 */
export async function lockRows(
  db: Database,
  table: keyof Tables,
  ids: readonly bigint[],
  { deadline }: WithDeadline,
): Promise<boolean> {
  const wanted = [...new Set(ids)]
  if (wanted.length === 0) return true
  // The primary key is read in its order, whatever the order of this list is.
  const lock = sql`update ${sql.table(table)} set id = id where id in (${sql.join(wanted)})`
  return (await execute(db, lock, deadline)).numAffectedRows === BigInt(wanted.length)
}
