/** Second and third attempts, where they can do no harm. */
import { setTimeout } from 'node:timers/promises'
import type { Deadline } from './deadline.ts'
import { DatabaseTimeoutError, DatabaseUnavailableError, OverloadedError } from './errors.ts'
import { isInside } from './inside.ts'

/** Milliseconds before the second and the third attempt, on average. */
const DELAYS = [20, 100]

/**
 * What `work` gives, tried up to three times when the database is unavailable: `repeatable` work
 * in any case, other work only if the attempt provably had no effect. Not after the deadline. Inside
 * a transaction, which fails and is tried again as a whole, work is tried once.
 */
export async function retry<Value>(
  work: () => Promise<Value>,
  { repeatable, deadline }: { repeatable: boolean; deadline?: Deadline },
): Promise<Value> {
  if (isInside()) return await work()
  for (const delay of DELAYS) {
    try {
      return await work()
    } catch (error) {
      // What is thrown then may be only what came of it.
      if (deadline?.reason) throw deadline.reason
      if (!(error instanceof DatabaseUnavailableError)) throw error
      if (error instanceof DatabaseTimeoutError || error instanceof OverloadedError) throw error
      if (!repeatable && !error.hadNoEffect) throw error
    }
    // Spread, so that those who collided do not collide again.
    await setTimeout(delay * (0.5 + Math.random()))
  }
  return await work()
}
