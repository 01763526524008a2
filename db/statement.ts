/** Statements with a deadline, compiled once where they are executed often. */
import type { Compilable, CompiledQuery, QueryResult } from 'kysely'
import type { Deadline } from './deadline.ts'
import { perDatabase } from './per-database.ts'
import type { Database } from './tables.ts'

/** What a driver is told of a statement. Kysely hands the object to the connection as it is. */
export interface Statement<Row = unknown> extends CompiledQuery<Row> {
  /** When it is given up, and ended on the server. */
  deadline?: Deadline | undefined
  /** It counts on consecutive ids: without that promise it throws NoConsecutiveIdsError, unsent. */
  needsConsecutiveIds?: boolean
}

/** Stands for a value that each execution puts in its place. */
class Placeholder<Values> {
  readonly read: (values: Values) => unknown
  constructor(read: (values: Values) => unknown) {
    this.read = read
  }
}

/** Puts a value that is read from those of the execution into a query. */
export type Value<Values> = <Type>(read: (values: Values) => Type) => Type

/** Executes a statement with these values. Throws what `DatabaseConnection.executeQuery` throws. */
export type Execute<Values, Row> = (
  db: Database,
  values: Values,
  deadline?: Deadline,
) => Promise<QueryResult<Row>>

/**
 * A statement that Kysely compiles once for each database. `build` must always give the same
 * query, which has `value(({ id }) => id)` wherever the executions differ.
 */
export function statement<Values, Row = never>(
  build: (db: Database, value: Value<Values>) => Compilable<Row>,
): Execute<Values, Row> {
  // Kysely takes whatever it is given for a value: it comes back among the parameters.
  const value: Value<Values> = (read) => new Placeholder(read) as never
  const compiled = perDatabase((db) => build(db, value).compile())
  return async (db, values, deadline) => {
    const query = compiled(db)
    const parameters = query.parameters.map((parameter) =>
      parameter instanceof Placeholder ? parameter.read(values) : parameter,
    )
    const { sql, query: node, queryId } = query
    const complete: Statement<Row> = { sql, parameters, query: node, queryId, deadline }
    return await db.executeQuery<Row>(complete)
  }
}

/** Executes a query that is not worth keeping, with a deadline. */
export function execute<Row>(
  db: Database,
  query: Compilable<Row>,
  deadline?: Deadline,
): Promise<QueryResult<Row>> {
  const complete: Statement<Row> = { ...query.compile(), deadline }
  return db.executeQuery<Row>(complete)
}
