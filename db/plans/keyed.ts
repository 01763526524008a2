/**
 * Creations of rows with receipts: that of a request with an Idempotency-Key has the answer, for repetitions. Concurrent
 * ones share a transaction: `begin` → `insert into pets …` → `insert into idempotency_keys …` → `commit`.
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
 * Maximum number of rows of a transaction: with their receipts, they are as many rows as one statement has
 * without receipts. More would hold their locks for longer, fewer would share fewer commits.
 */
const MAX_KEYED_ROWS = 100

/** How the receipt of a row is made, and stored beside the row. */
export interface ReceiptMaker<Receipt extends object, Output> {
  /** Returns the receipt, and what the call returns, by the id of the row. Called before the commit: what it throws undoes the transaction. */
  make(id: bigint): { receipt: Receipt; output: Output }
  /** The plan that stores a receipt: the same one for all creations, whose stores know no receipts, so each call brings it. */
  readonly plan: StatementPlan<NoInfer<Receipt>, unknown>
}

interface KeyedInput<Input, Output> {
  input: Input
  receiptMaker: ReceiptMaker<object, Output>
}

/** What was made for a row, or why the database has rejected it: `output` throws that, after the others are committed. */
type RowOutcome<Output> = { receipt: object; output: Output } | RejectedStatementError

/** What the statements of a transaction need. */
interface Transaction {
  session: Session
  deadline: Deadline
  statements: Statements
}

/**
 * Returns the plan that inserts rows as `insertPlan` does, each with its receipt, and returns the output. Throws
 * KeyTakenError, without an effect, if another request has stored a receipt of the same key meanwhile, and ConflictError
 * if another one is about to store it.
 */
export function withReceipts<Input, Output>(
  insertPlan: StatementPlan<Input, bigint, bigint>,
): TransactionPlan<KeyedInput<Input, Output>, Output, RowOutcome<Output>> {
  return {
    use: 'write',
    maxSize: MAX_KEYED_ROWS,
    commitTogether: (inputs, session, deadline, statements) =>
      transact(session, deadline, async () => {
        const transaction = { session, deadline, statements }
        const outcomes = await insertRows(insertPlan, inputs, transaction)
        const [first] = inputs as [KeyedInput<Input, Output>] // there is one at least
        await storeReceipts(first.receiptMaker.plan, outcomes, transaction)
        return outcomes
      }),
    output(outcome) {
      if (outcome instanceof RejectedStatementError) throw outcome
      return outcome.output
    },
    // That the database is unavailable is the fault of no input.
    blamesOne: (error) =>
      error instanceof KeyTakenError || !(error instanceof DatabaseUnavailableError),
  }
}

/** Inserts the rows in a transaction, and returns their outcomes, in their order. Throws what ends the transaction. */
async function insertRows<Input, Output>(
  insertPlan: StatementPlan<Input, bigint, bigint>,
  inputs: KeyedInput<Input, Output>[],
  { session, deadline, statements }: Transaction,
): Promise<RowOutcome<Output>[]> {
  const outcomes: RowOutcome<Output>[] = []
  const attempt = async (some: KeyedInput<Input, Output>[]) => {
    const rows = some.map(({ input }) => input)
    const ids = await statements.run(insertPlan, rows, session, deadline)
    // Here alone this folder calls back between two statements: `make` of `create` in src/idempotency/keyed-writes.ts, so
    // that the answer in the receipt is made, and checked, before the commit.
    outcomes.push(...some.map(({ receiptMaker }, index) => receiptMaker.make(ids[index] as bigint)))
  }
  const blamesOne = (error: unknown) =>
    error instanceof RejectedStatementError && session.isInTransaction
  const fail = (_: unknown, error: unknown) => void outcomes.push(error as RejectedStatementError)
  // Where ids are not consecutive, the queue begins rows without keys one by one. These share their transaction all the
  // same, and have a statement each.
  const together = session.hasConsecutiveIds ? [inputs] : inputs.map((input) => [input])
  for (const some of together) {
    try {
      await attempt(some)
    } catch (error) {
      if (!blamesOne(error)) throw error
      if (some.length === 1) fail(some[0], error)
      else await bisect(some, { attempt, blamesOne, fail })
    }
  }
  return outcomes
}

/** Stores the receipts of the rows that were inserted. */
async function storeReceipts(
  plan: StatementPlan<object, unknown>,
  outcomes: RowOutcome<unknown>[],
  { session, deadline, statements }: Transaction,
): Promise<void> {
  const receipts = outcomes.flatMap((outcome) =>
    outcome instanceof RejectedStatementError ? [] : outcome.receipt,
  )
  if (receipts.length === 0) return
  try {
    // Not by `statements.run`: their ids are not needed, and not every session can tell them.
    await session.execute(statements.statementOf(plan, receipts), deadline)
  } catch (error) {
    if (error instanceof DuplicateError) throw new KeyTakenError(error, true)
    // Another instance is storing one of the same key. In a search for it, each half would wait for its lock. As after any
    // conflict, all have another attempt, before which each key is looked up: that finds it without a wait.
    throw error instanceof LockedError ? new ConflictError(error, true) : error
  }
}
