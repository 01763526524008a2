/** Statements that a store makes for a call. */
import type { Compilable, QueryResult } from 'kysely'
import type { Database } from './database.ts'
import type { Deadline } from './deadline.ts'

/**
 * Compiles and executes a query, once. Throws the errors of db/errors.ts, and the reason of the deadline; by
 * default the database has its timeout.
 */
export const execute = <Row>(
  db: Database,
  query: Compilable<Row>,
  deadline?: Deadline,
): Promise<QueryResult<Row>> => db.runner.execute<Row>({ ...query.compile(), deadline })
