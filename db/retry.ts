/** More attempts at work that failed because the database was unavailable. */
import { setTimeout } from 'node:timers/promises'
import type { Deadline } from './deadline.ts'
import { DatabaseTimeoutError, DatabaseUnavailableError, OverloadedError } from './errors.ts'
import { isInTransaction } from './transaction-scope.ts'

/** Average milliseconds before the second and the third attempt. */
const DELAYS = [20, 100]

/**
 * Returns the result of `work`, with up to three attempts while the database is unavailable. Work that
 * is not `repeatable` is repeated only if the attempt certainly had no effect. Throws the error of the
 * last attempt, or the reason of the deadline. In a transaction there is one attempt, because the
 * transaction is repeated as a whole.
 */
export async function retry<Value>(
  work: () => Promise<Value>,
  { repeatable, deadline }: { repeatable: boolean; deadline?: Deadline },
): Promise<Value> {
  if (isInTransaction()) return await work()
  for (const delay of DELAYS) {
    try {
      return await work()
    } catch (error) {
      // After the deadline, the error may be a consequence of it.
      if (deadline?.reason) throw deadline.reason
      if (!(error instanceof DatabaseUnavailableError)) throw error
      if (error instanceof DatabaseTimeoutError || error instanceof OverloadedError) throw error
      if (!repeatable && !error.hadNoEffect) throw error
    }
    // Random, so that calls in conflict do not collide again.
    await setTimeout(delay * (0.5 + Math.random()))
  }
  return await work()
}
