/** Transactions for procedures: each has its own stores. */
import type { Deadline } from '../../db/deadline.ts'
import { retry } from '../../db/retry.ts'
import type { Database } from '../../db/tables.ts'
import { inTransaction } from '../../db/transaction.ts'

/**
 * Runs `work` in a transaction and returns its result after the commit. It runs `work` again after a
 * failed attempt that certainly had no effect. Throws the errors of `work`, and
 * DatabaseUnavailableError.
 */
export type Transact<Stores> = <Result>(
  work: (stores: Stores) => Promise<Result>,
  deadline: Deadline,
) => Promise<Result>

/** Returns the function that runs transactions on a database; `createStores` returns the stores of each. */
export const transactions =
  <Stores>(db: Database, createStores: (db: Database) => Stores): Transact<Stores> =>
  (work, deadline) =>
    retry(() => inTransaction(db, (transaction) => work(createStores(transaction)), deadline), {
      repeatable: false,
      deadline,
    })
