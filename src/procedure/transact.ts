/** Transactions, as procedures know them: by the stores that belong to one. */
import type { Deadline } from '../../db/deadline.ts'
import { retry } from '../../db/retry.ts'
import type { Database } from '../../db/tables.ts'
import { inTransaction } from '../../db/transaction.ts'

/**
 * Runs work in a transaction, again where the attempt provably had no effect, and returns what it
 * returns once that is committed. Throws what the work throws, and DatabaseUnavailableError.
 */
export type Transact<Stores> = <Result>(
  work: (stores: Stores) => Promise<Result>,
  deadline: Deadline,
) => Promise<Result>

/** Transactions of a database; `createStores` makes the stores of each. */
export const transactions =
  <Stores>(db: Database, createStores: (db: Database) => Stores): Transact<Stores> =>
  (work, deadline) =>
    retry(() => inTransaction(db, (transaction) => work(createStores(transaction)), deadline), {
      repeatable: false,
      deadline,
    })
