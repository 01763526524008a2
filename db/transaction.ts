/** Transactions. */
import { allowBatches, batch } from './batch.ts'
import type { Deadline } from './deadline.ts'
import { engineOf } from './engine.ts'
import type { Database } from './tables.ts'
import { refuseInTransaction } from './transaction-scope.ts'

/**
 * Runs work in a transaction, and returns its result after the commit. If it throws, the work had no
 * effect, unless the error says that it may have had one. Work must not use another connection, and
 * must not begin another transaction: both throw. On MySQL, the deadlines of the statements limit the
 * transaction; on SQLite, its own deadline limits the wait for its begin.
 */
export async function inTransaction<Result>(
  db: Database,
  work: (transaction: Database) => Promise<Result>,
  deadline?: Deadline,
): Promise<Result> {
  refuseInTransaction()
  return await engineOf(db).inTransaction(db, work, deadline)
}

/** Work for a shared transaction. It must use the deadline that it receives, and no other. */
type SharedWork<Result> = (transaction: Database, deadline: Deadline) => Promise<Result>

/**
 * Runs work in a transaction with other such works, which run concurrently: their inserts share
 * statements, and all of them share a commit. Returns the result after the commit, and undefined if one
 * of several works failed. Then the effect of each is unknown, and each caller must check, and run its
 * work alone. Work that is alone in the transaction throws its own errors.
 */
export async function inSharedTransaction<Result extends object>(
  db: Database,
  work: SharedWork<Result>,
  deadline: Deadline,
): Promise<Result | undefined> {
  const result = await runShared(db, work, deadline)
  return result as Result | undefined // the result of this work
}

const runShared = batch<SharedWork<object>, object | undefined>({
  maxSize: 100,
  async run(db, works, deadline) {
    const runAll = async (transaction: Database) => {
      allowBatches(transaction)
      // The transaction must not end while some of the works still run.
      const outcomes = await Promise.allSettled(works.map((work) => work(transaction, deadline)))
      return outcomes.map((outcome) => {
        if (outcome.status === 'rejected') throw outcome.reason
        return outcome.value
      })
    }
    try {
      return await inTransaction(db, runAll, deadline)
    } catch (error) {
      if (works.length === 1) throw error
      return works.map(() => undefined)
    }
  },
})
