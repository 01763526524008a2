/** Statements with a deadline, and more attempts after failures. */
import { setTimeout } from 'node:timers/promises'
import { type Compilable, type CompiledQuery, type Dialect, Kysely, type QueryResult } from 'kysely'
import type { Deadline } from './deadline.ts'
import { oncePerEngine } from './engine.ts'
import {
  BrokenDatabaseError,
  ConflictError,
  DatabaseTimeoutError,
  DatabaseUnavailableError,
  OverloadedError,
} from './errors.ts'
import type { Database, Tables } from './tables.ts'
import {
  type Connection,
  isInTransaction,
  refuseInTransaction,
  type Statement,
} from './transaction.ts'

/** The property of a database, but not of its transactions and sessions, that makes a connection. */
const CONNECT = Symbol('connect')

/** Returns the database of a dialect, which also makes connections for `run`. */
export async function databaseOf(dialect: Dialect & { connect(): Connection }): Promise<Database> {
  const db = new Kysely<Tables>({ dialect })
  await db.connection().execute(async () => {}) // Kysely destroys only a driver that it has used
  return Object.assign(db, { [CONNECT]: dialect.connect })
}

/**
 * Executes a statement. Outside a transaction it takes a connection itself: Kysely would take a twentieth of
 * the time of a request for that. Throws DatabaseUnavailableError, also at the deadline.
 */
export async function run<Row>(
  db: Database & { [CONNECT]?: () => Connection },
  statement: Statement<Row>,
): Promise<QueryResult<Row>> {
  const connection = db[CONNECT]?.()
  if (!connection) return await db.executeQuery<Row>(statement)
  refuseInTransaction()
  try {
    return await connection.execute<Row>(statement)
  } finally {
    connection.release()
  }
}

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
    const attempt = () => run(db, complete)
    return (await retry(attempt, { repeatable: true, deadline })).rows
  }
}

/** Compiles and executes a query. Throws DatabaseUnavailableError, also at the deadline. */
export const execute = <Row>(
  db: Database,
  query: Compilable<Row>,
  deadline?: Deadline,
): Promise<QueryResult<Row>> => run<Row>(db, { ...query.compile(), deadline })

/** Average milliseconds before the second attempt and the later ones. */
const DELAYS = [20, 100]

/** The same after a conflict of transactions: the database works, and the others will be over soon. */
const DELAYS_OF_CONFLICTS = [20, 50, 100, 200, 400]

/** Another attempt would fail, or add to the load. */
const FINAL = [DatabaseTimeoutError, OverloadedError, BrokenDatabaseError]

/**
 * Returns the result of `work`, with up to three attempts while the database is unavailable, and up to
 * six in conflicts with other transactions. Work that is not `repeatable` is repeated only if the attempt
 * certainly had no effect. Throws the error of the last attempt, or the reason of the deadline. In a
 * transaction there is one attempt, because the transaction is repeated as a whole.
 */
export async function retry<Value>(
  work: () => Promise<Value>,
  { repeatable, deadline }: { repeatable: boolean; deadline?: Deadline },
): Promise<Value> {
  if (isInTransaction()) return await work()
  for (let attempt = 0; ; attempt++) {
    try {
      return await work()
    } catch (error) {
      // After the deadline, the error may be a consequence of it.
      if (deadline?.reason) throw deadline.reason
      if (!(error instanceof DatabaseUnavailableError)) throw error
      if (FINAL.some((kind) => error instanceof kind)) throw error
      if (!repeatable && !error.hadNoEffect) throw error
      const delay = (error instanceof ConflictError ? DELAYS_OF_CONFLICTS : DELAYS)[attempt]
      if (delay === undefined) throw error
      // Random, so that calls in conflict do not collide again.
      const pause = setTimeout(delay * (0.5 + Math.random()))
      await (deadline ? deadline.race(pause) : pause)
    }
  }
}
