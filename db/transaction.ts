/** Work that happens as a whole or not at all. */
import type { Deadline } from './deadline.ts'
import { engineOf } from './engine.ts'
import { gather, share } from './gather.ts'
import { refuseInside } from './inside.ts'
import type { Database } from './tables.ts'

type Work<Result> = (transaction: Database) => Promise<Result>

/**
 * Runs work in a transaction, and returns its result once that is committed. Nothing of it happened
 * when this throws, unless the error says that it may have. Work must wait for nothing but the
 * transaction it is given: what reaches outside, or begins another transaction, throws. On MySQL the
 * deadlines of the statements bound it; on SQLite its deadline bounds the wait for its turn.
 */
export async function inTransaction<Result>(
  db: Database,
  work: Work<Result>,
  deadline?: Deadline,
): Promise<Result> {
  refuseInside()
  return await engineOf(db).inTransaction(db, work, deadline)
}

/** Works that run concurrently in one transaction at most. */
const MAX_SHARED = 100

/** Work for a transaction that it may share. It uses no deadline but the one that it is given. */
type SharedWork<Result> = (transaction: Database, deadline: Deadline) => Promise<Result>

/**
 * Runs work in a transaction with other such work, concurrently: their inserts share statements, and
 * all share a commit. Returns the result once that is committed; undefined where one of several works
 * failed. Then none of them has an effect that is known, and each caller must look, and try alone.
 * Work that has the transaction to itself throws what it throws.
 */
export async function inSharedTransaction<Result>(
  db: Database,
  work: SharedWork<Result>,
  deadline: Deadline,
): Promise<{ result: Result } | undefined> {
  const settled = await runShared(db, work, deadline)
  return settled as { result: Result } | undefined // it is what this work returned
}

const runShared = gather<SharedWork<unknown>, { result: unknown } | undefined>({
  most: MAX_SHARED,
  lane: () => '',
  async ask(db, works, deadline) {
    const runAll = async (transaction: Database) => {
      share(transaction)
      const settled = await Promise.allSettled(works.map((work) => work(transaction, deadline)))
      return settled.map((outcome) => {
        if (outcome.status === 'rejected') throw outcome.reason
        return { result: outcome.value }
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
