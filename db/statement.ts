/** Statements with a deadline; those that are executed often are compiled once. */
import type { Compilable, CompiledQuery, QueryResult } from 'kysely'
import type { Deadline } from './deadline.ts'
import { oncePerEngine } from './engine.ts'
import { retry } from './retry.ts'
import type { Database } from './tables.ts'
import type { Statement } from './transaction.ts'

export type { Statement }

/** A placeholder in a compiled query for a value of each execution. */
class Placeholder<Input> {
  readonly read: (inputs: Input[]) => unknown
  constructor(read: (inputs: Input[]) => unknown) {
    this.read = read
  }
}

/** Returns a placeholder for the value that `read` returns of an input at each execution. */
export type Value<Input> = <Type>(read: (input: Input) => Type) => Type

/**
 * Returns a function that reads the rows of several inputs with one query, which is compiled once for each
 * number of them. `build` has a `value` for each input, to put in place of what differs between executions:
 *
 * `where('id', '=', value((pet) => pet.id)).limit(20)` → `where id = ? limit ?` with the parameters
 * `[Placeholder, 20]`, which are `[7n, 20]` in the execution with `{ id: 7n }`
 *
 * Makes up to three attempts. Throws DatabaseUnavailableError, and the reason of the deadline.
 */
export function reads<Input, Row>(
  build: (db: Database, values: Value<Input>[]) => Compilable<Row>,
): (db: Database, inputs: Input[], deadline: Deadline) => Promise<Row[]> {
  // Kysely accepts any object as a value, and returns it among the parameters.
  const valueAt = (_: unknown, index: number): Value<Input> => {
    return (read) => new Placeholder<Input>((inputs) => read(inputs[index] as Input)) as never
  }
  const compile = (db: Database, length: number) =>
    build(db, Array.from({ length }, valueAt)).compile()
  const compiled = oncePerEngine(() => new Map<number, CompiledQuery<Row>>())
  return async (db, inputs, deadline) => {
    const queries = compiled(db)
    const query = queries.get(inputs.length) ?? compile(db, inputs.length)
    queries.set(inputs.length, query)
    const parameters = query.parameters.map((parameter) =>
      parameter instanceof Placeholder ? parameter.read(inputs) : parameter,
    )
    const complete: Statement<Row> = { ...query, parameters, deadline, isRead: true }
    const attempt = () => db.executeQuery<Row>(complete)
    return (await retry(attempt, { repeatable: true, deadline })).rows
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
