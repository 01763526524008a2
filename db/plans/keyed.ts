/**
 * Creations of rows with keys (Idempotency-Key). Concurrent ones share a transaction: `begin` → `insert into pets …` →
 * `insert into idempotency_keys …`, with the answers → `commit`.
 */
import { bisect } from '../bisect.ts'
import type { Deadline } from '../deadline.ts'
import {
  ConflictError,
  DatabaseUnavailableError,
  DuplicateError,
  KeyTakenError,
  LockedError,
  RejectedStatementError,
} from '../errors.ts'
import type { StatementPlan, Statements, TransactionPlan } from '../plan.ts'
import type { Session } from '../session.ts'
import { transact } from '../transaction.ts'

/**
 * Maximum number of rows with keys of a transaction: with their keys, they are as many rows as one statement has
 * without keys. More would hold their locks for longer, fewer would share fewer commits.
 */
const MAX_KEYED_ROWS = 100

/** A table of keys, and the plan that stores one with its answer. */
export interface KeyTable<Key = unknown> {
  readonly inserts: StatementPlan<Key, bigint, bigint>
}

/** What is stored beside a row, in its transaction. */
export interface KeyOfRow<Key = unknown> {
  /** That of all keys of a database. */
  readonly table: KeyTable<Key>
  /** Returns the key with its answer, by the id of the row. What it throws undoes the transaction. */
  withAnswer(id: bigint): Key
}

interface KeyedRow<Row> extends KeyOfRow {
  row: Row
}

/** The id of a row, or why the database has rejected it. */
type RowOutcome = { id: bigint } | { error: unknown }

/**
 * Returns the plan that inserts rows as `rows` does, each with its key: by one transaction. Throws
 * KeyTakenError, without an effect, if another request has stored the key meanwhile, and ConflictError if another one is
 * about to store one of the keys.
 */
export function withKeys<Row>(
  rows: StatementPlan<Row, bigint, bigint>,
): TransactionPlan<KeyedRow<Row>, bigint, RowOutcome> {
  return {
    use: 'write',
    maxSize: MAX_KEYED_ROWS,
    commitTogether: (inputs, session, deadline, statements) =>
      transact(session, deadline, async () => {
        const transaction = { session, deadline, statements }
        const outcomes = await insertRows(rows, inputs, transaction)
        await storeKeys(inputs, outcomes, transaction)
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

/** What the statements of a transaction need. */
interface Transaction {
  session: Session
  deadline: Deadline
  statements: Statements
}

/** Inserts the rows in a transaction. Throws what ends the transaction. */
async function insertRows<Row>(
  rows: StatementPlan<Row, bigint, bigint>,
  inputs: KeyedRow<Row>[],
  { session, deadline, statements }: Transaction,
): Promise<Map<KeyedRow<Row>, RowOutcome>> {
  const outcomes = new Map<KeyedRow<Row>, RowOutcome>()
  const attempt = async (some: KeyedRow<Row>[]) => {
    const values = some.map(({ row }) => row)
    const ids = await statements.runTogether(rows, values, session, deadline)
    for (const [index, input] of some.entries()) outcomes.set(input, { id: ids[index] as bigint })
  }
  const isOfRow = (error: unknown) =>
    error instanceof RejectedStatementError && session.isInTransaction
  const fail = (input: KeyedRow<Row>, error: unknown) => void outcomes.set(input, { error })
  // Where ids are not consecutive, the queue begins rows without keys one by one. These share their transaction all the
  // same, and have a statement each.
  const together = session.hasConsecutiveIds ? [inputs] : inputs.map((input) => [input])
  for (const some of together) {
    try {
      await attempt(some)
    } catch (error) {
      if (!isOfRow(error)) throw error
      if (some.length === 1) fail(some[0] as KeyedRow<Row>, error)
      else await bisect(some, { attempt, blamesOne: isOfRow, fail })
    }
  }
  return outcomes
}

/** Stores the keys of the rows that were inserted. */
async function storeKeys(
  inputs: KeyOfRow[],
  outcomes: Map<KeyOfRow, RowOutcome>,
  { session, deadline, statements }: Transaction,
): Promise<void> {
  const { inserts } = (inputs[0] as KeyOfRow).table // a transaction has one input at least
  const keys = inputs.flatMap((input) => {
    const outcome = outcomes.get(input)
    // Here alone this folder asks its caller, `create` of src/idempotency/keyed-writes.ts: the answer is made, and
    // checked, before the commit.
    return outcome && 'id' in outcome ? input.withAnswer(outcome.id) : []
  })
  if (keys.length === 0) return
  try {
    await statements.runTogether(inserts, keys, session, deadline)
  } catch (error) {
    if (error instanceof DuplicateError) throw new KeyTakenError(error, true)
    // Another instance is storing one of the keys. In a search for it, each half would wait for its lock. As after any
    // conflict, all have another attempt, before which each key is looked up: that finds it without a wait.
    throw error instanceof LockedError ? new ConflictError(error, true) : error
  }
}
