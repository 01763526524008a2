/** Transactions that concurrent callers share: one commit, and one statement for their inserts. */
import type { Deadline } from '../deadline.ts'
import type { Database } from '../tables.ts'
import { inTransaction } from '../transaction.ts'
import { allowBatches, coalesce } from './coalesce.ts'

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

const runShared = coalesce<SharedWork<object>, object | undefined>({
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
