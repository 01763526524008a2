/**
 * Creations of rows. Concurrent ones share a statement: `insert into pets …`. With Idempotency-Keys they share a
 * transaction: `begin` → `insert into pets …` → (`delete from idempotency_keys …`, of expired keys) → `insert into
 * idempotency_keys …`, with the answers → `commit`. Each returns the id of its row.
 */
import type { Generated, InsertObject } from 'kysely'
import type { Builder } from '../builder.ts'
import type { Database } from '../database.ts'
import type { Deadline, WithDeadline } from '../deadline.ts'
import {
  ConflictError,
  DatabaseUnavailableError,
  DuplicateError,
  KeyTakenError,
  LockedError,
  RejectedStatementError,
} from '../errors.ts'
import { searchInHalves } from '../halves.ts'
import type { StatementPlan, Statements, TransactionPlan, Value } from '../plan.ts'
import type { Session } from '../session.ts'
import type { IdempotencyKeysTable, Tables } from '../tables.ts'
import { transact } from '../transaction.ts'

/** Maximum number of rows of a statement, and of rows with keys of a transaction. */
const MAX_ROWS = 200
const MAX_KEYED_ROWS = 100

/** The tables whose ids the database assigns. For others, MySQL returns no id. */
type WithId = {
  [Table in keyof Tables]: Tables[Table] extends { id: Generated<bigint> } ? Table : never
}[keyof Tables]

/** Returns the columns of a row, with a `value` for each that differs between rows: a column that a row may lack is `null`. */
type Columns<Row, Table extends WithId> = (
  value: Value<Row>,
  db: Builder,
) => InsertObject<Tables, Table>

/**
 * Returns the plan that inserts a row into a table, and returns its id. A row that the database rejects does not
 * affect the other rows of its statement.
 */
function inserts<Row, Table extends WithId>(
  table: Table,
  columns: Columns<Row, Table>,
): StatementPlan<Row, bigint, bigint> {
  return {
    use: 'write',
    maxSize: { inProcess: MAX_ROWS, server: MAX_ROWS },
    needsConsecutiveIds: true,
    build: (db, values) =>
      db.kysely.insertInto(table).values(values.map((value) => columns(value, db))),
    split({ insertId }, rows) {
      if (insertId === undefined)
        throw new Error(`The database returned no id for a row of ${table}`)
      return rows.map((_row, index) => insertId + BigInt(index))
    },
    output: (id) => id,
    // After any other error, the rows may have been inserted.
    blamesOne: isRejected,
  }
}

const isRejected = (error: unknown) => error instanceof RejectedStatementError

/** An Idempotency-Key, and the request that it is of. */
export type NewKey = Omit<IdempotencyKeysTable, 'id' | 'answer' | 'created_at'>

/** What is stored beside a row in its transaction. */
export interface KeyOfRow {
  key: NewKey
  /** The id of the row of the same key that has expired, which is removed. */
  expired: bigint | undefined
  /** Returns the answer that is stored, by the id of the row. */
  answerOf(id: bigint): string
}

interface KeyedRow<Row> extends KeyOfRow {
  row: Row
}

/** The id of a row, or why the database has rejected it. */
type RowOutcome = { id: bigint } | { error: unknown }

/**
 * Returns the plan that does the same with Idempotency-Keys, by one transaction: begin, the rows, their keys with
 * the answers, commit. Throws KeyTakenError, without an effect, if another request has stored the key meanwhile,
 * and ConflictError if another one is about to store one of the keys.
 */
function withKeys<Row>(
  rows: StatementPlan<Row, bigint, bigint>,
): TransactionPlan<KeyedRow<Row>, bigint, RowOutcome> {
  return {
    use: 'write',
    maxSize: { inProcess: MAX_KEYED_ROWS, server: MAX_KEYED_ROWS },
    runTogether: (inputs, session, deadline, statements) =>
      transact(session, deadline, async () => {
        const run = { session, deadline, statements }
        const outcomes = await insertRows(rows, inputs, run)
        await storeKeys(inputs, outcomes, run)
        return inputs.map((input) => outcomes.get(input) as RowOutcome) // each has one
      }),
    output(outcome) {
      if ('error' in outcome) throw outcome.error
      return outcome.id
    },
    // That the database is unavailable is the fault of no input.
    blamesOne: (error) =>
      error instanceof KeyTakenError || !(error instanceof DatabaseUnavailableError),
  }
}

/** What the statements of a transaction run on. */
interface Run {
  session: Session
  deadline: Deadline
  statements: Statements
}

/** Inserts the rows in a transaction. Throws what ends the transaction. */
async function insertRows<Row>(
  rows: StatementPlan<Row, bigint, bigint>,
  inputs: KeyedRow<Row>[],
  { session, deadline, statements }: Run,
): Promise<Map<KeyedRow<Row>, RowOutcome>> {
  const outcomes = new Map<KeyedRow<Row>, RowOutcome>()
  const attempt = async (some: KeyedRow<Row>[]) => {
    const values = some.map(({ row }) => row)
    const ids = await statements.execute(rows, values, session, deadline)
    for (const [index, input] of some.entries()) outcomes.set(input, { id: ids[index] as bigint })
  }
  const isOfRow = (error: unknown) => isRejected(error) && session.isInTransaction
  const fail = (input: KeyedRow<Row>, error: unknown) => void outcomes.set(input, { error })
  const together = session.hasConsecutiveIds ? [inputs] : inputs.map((input) => [input])
  for (const some of together) {
    try {
      await attempt(some)
    } catch (error) {
      if (!isOfRow(error)) throw error
      if (some.length === 1) fail(some[0] as KeyedRow<Row>, error)
      else await searchInHalves(some, { attempt, blamesOne: isOfRow, fail })
    }
  }
  return outcomes
}

/** Stores the keys of the rows that were inserted. */
async function storeKeys(
  inputs: KeyOfRow[],
  outcomes: Map<KeyOfRow, RowOutcome>,
  { session, deadline, statements }: Run,
): Promise<void> {
  const expired = inputs.flatMap((input) => input.expired ?? [])
  if (expired.length > 0) {
    const removal = statements.builder.kysely.deleteFrom('idempotency_keys')
    await session.execute(removal.where('id', 'in', expired).compile(), deadline)
  }
  const keys = inputs.flatMap((input) => {
    const outcome = outcomes.get(input)
    return outcome && 'id' in outcome ? { ...input.key, answer: input.answerOf(outcome.id) } : []
  })
  if (keys.length === 0) return
  try {
    await statements.execute(newIdempotencyKey, keys, session, deadline)
  } catch (error) {
    if (error instanceof DuplicateError) throw new KeyTakenError(error, true)
    // Each search for the one would wait for the lock again.
    throw error instanceof LockedError ? new ConflictError(error, true) : error
  }
}

/** The plan that stores a key with the answer of its request. */
export const newIdempotencyKey = inserts(
  'idempotency_keys',
  (value: Value<NewKey & { answer: string }>, db) => ({
    api_key_id: value((row) => row.api_key_id),
    key_hash: value((row) => row.key_hash),
    operation: value((row) => row.operation),
    fingerprint: value((row) => row.fingerprint),
    answer: value((row) => row.answer),
    created_at: db.engine.now,
  }),
)

/**
 * Returns what makes the creation of a store: how a row is inserted into a table, and how the output is made of its
 * id and the input. `columns` returns the columns of a row, with a `value` for each that differs between rows; a
 * column that a row may lack is `null`.
 */
export function creation<Input, Output, Table extends WithId>(
  table: Table,
  columns: Columns<Input, Table>,
  output: (id: bigint, input: Input) => Output,
) {
  const rows = inserts(table, columns)
  const keyedRows = withKeys(rows)
  /** Returns the creation in a database or a transaction. */
  return (db: Database) => ({
    output,
    /**
     * Inserts a row, and returns its id; with a key, which is stored beside it, in a transaction of its own. Throws
     * DuplicateError, DatabaseUnavailableError, and the reason of the deadline. With a key there is one attempt,
     * which throws KeyTakenError if the key was stored meanwhile.
     */
    insert: ({ deadline }: WithDeadline, input: Input, key?: KeyOfRow): Promise<bigint> =>
      key
        ? db.runner.run(keyedRows, { row: input, ...key }, deadline)
        : db.runner.run(rows, input, deadline),
  })
}
