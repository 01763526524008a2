/** Transactions that concurrent calls share, for one commit. */
import type { Deadline } from '../deadline.ts'
import { ConflictError } from '../errors.ts'
import type { Database } from '../tables.ts'
import { inTransaction } from '../transaction.ts'
import { coalesce, shareBatches } from './coalesce.ts'

/** Work for a shared transaction. It must use the deadline that it receives, and no other. */
type SharedWork = (transaction: Database, deadline: Deadline) => Promise<unknown>

/**
 * Runs work in a transaction with other such works, which run concurrently: their inserts share
 * statements, and all of them share a commit. Returns the result of the work after the commit. If one of
 * several works fails, throws ConflictError for each of them, because the effect of each is unknown. Work
 * that is alone in the transaction throws its own errors.
 */
export const inSharedTransaction = coalesce<SharedWork, unknown>({
  maxSize: () => 100,
  async run(db, works, deadline) {
    const runAll = async (transaction: Database) => {
      shareBatches(transaction)
      // The transaction must not end while some of the works still run.
      const all = works.map((work) => work(transaction, deadline))
      await Promise.allSettled(all)
      return await Promise.all(all)
    }
    try {
      return await inTransaction(db, runAll)
    } catch (error) {
      throw works.length === 1 ? error : new ConflictError(error, false)
    }
  },
})
