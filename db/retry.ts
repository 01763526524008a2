/** More attempts at work that failed because the database was unavailable. */
import { setTimeout } from 'node:timers/promises'
import type { Deadline } from './deadline.ts'
import {
  BrokenDatabaseError,
  ConflictError,
  DatabaseTimeoutError,
  DatabaseUnavailableError,
  OverloadedError,
} from './errors.ts'
import { isInTransaction } from './transaction.ts'

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
      await setTimeout(delay * (0.5 + Math.random()))
    }
  }
}
