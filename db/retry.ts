/** Second and third attempts, where they can do no harm. */
import { setTimeout } from 'node:timers/promises'
import { DatabaseTimeoutError, DatabaseUnavailableError } from './errors.ts'

/** Milliseconds before the second and the third attempt, on average. */
const DELAYS = [20, 100]

/**
 * What `work` gives, tried up to three times when the database is unavailable: `repeatable` work
 * in any case, other work only if the attempt provably had no effect. Not after `signal` aborts.
 */
export async function retry<Value>(
  work: () => Promise<Value>,
  { repeatable, signal }: { repeatable: boolean; signal?: AbortSignal },
): Promise<Value> {
  for (const delay of DELAYS) {
    try {
      return await work()
    } catch (error) {
      // What is thrown then may be only what came of it.
      if (signal?.aborted) throw signal.reason
      if (!(error instanceof DatabaseUnavailableError)) throw error
      if (error instanceof DatabaseTimeoutError) throw error
      if (!repeatable && !error.hadNoEffect) throw error
    }
    // Spread, so that those who collided do not collide again.
    await setTimeout(delay * (0.5 + Math.random()))
  }
  return await work()
}
