/** Statements with a deadline; those that are executed often are compiled once. */
import type { Compilable, CompiledQuery, QueryResult } from 'kysely'
import type { Deadline } from './deadline.ts'
import { oncePerEngine } from './engine.ts'
import type { Database } from './tables.ts'

/** A statement with options for the driver. Kysely passes the object to the connection unchanged. */
export interface Statement<Row = unknown> extends CompiledQuery<Row> {
  /** The deadline that ends the statement, also on the server. */
  deadline?: Deadline | undefined
  /** Whether the statement only reads, so that it does not wait behind writes; by default a `selectFrom` does. */
  isRead?: boolean
  /** Throws NoConsecutiveIdsError if the server does not guarantee consecutive ids. */
  needsConsecutiveIds?: boolean
}

/** A placeholder in a compiled statement for a value of each execution. */
class Placeholder<Values> {
  readonly read: (values: Values) => unknown
  constructor(read: (values: Values) => unknown) {
    this.read = read
  }
}

/** Returns a placeholder for the value that `read` returns at each execution. */
export type Value<Values> = <Type>(read: (values: Values) => Type) => Type

/** Executes a statement with these values. Throws DatabaseUnavailableError, also at the deadline. */
export type Execute<Values, Row> = (
  db: Database,
  values: Values,
  deadline?: Deadline,
) => Promise<QueryResult<Row>>

/**
 * Returns a statement that is compiled once for each database. `build` must always return the same query,
 * with a placeholder for each value that differs between executions:
 *
 * `where('id', '=', value((pet) => pet.id))` → `where id = ?`, and the execution with `{ id: 7n }` sends 7
 */
export function statement<Values, Row = never>(
  build: (db: Database, value: Value<Values>) => Compilable<Row>,
): Execute<Values, Row> {
  // Kysely accepts any object as a value, and returns it among the parameters.
  const value: Value<Values> = (read) => new Placeholder(read) as never
  const compiled = oncePerEngine((db) => build(db, value).compile())
  return (db, values, deadline) => {
    const query = compiled(db)
    const parameters = query.parameters.map((parameter) =>
      parameter instanceof Placeholder ? parameter.read(values) : parameter,
    )
    const complete: Statement<Row> = { ...query, parameters, deadline }
    return db.executeQuery<Row>(complete)
  }
}

/** Compiles and executes a query. Throws DatabaseUnavailableError, also at the deadline. */
export function execute<Row>(
  db: Database,
  query: Compilable<Row>,
  deadline?: Deadline,
): Promise<QueryResult<Row>> {
  const complete: Statement<Row> = { ...query.compile(), deadline }
  return db.executeQuery<Row>(complete)
}
