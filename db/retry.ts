/** Second and third attempts, where they can do no harm. */
import { setTimeout } from 'node:timers/promises'
import { DatabaseUnavailableError } from './errors.ts'

/** Milliseconds before the second and the third attempt, on average. */
const DELAYS = [20, 100]

/**
 * What `work` gives, tried up to three times when the database is unavailable: `repeatable` work
 * in any case, other work only if the attempt provably had no effect. Not after `signal` aborts.
 */
export async function retry<Value>(
  work: () => Promise<Value>,
  { repeatable, signal }: { repeatable: boolean; signal?: AbortSignal | undefined },
): Promise<Value> {
  for (const delay of DELAYS) {
    try {
      return await work()
    } catch (error) {
      const isTransient = error instanceof DatabaseUnavailableError
      if (!isTransient || !(repeatable || error.hadNoEffect) || signal?.aborted) throw error
    }
    // Spread, so that those who collided do not collide again.
    await setTimeout(delay * (0.5 + Math.random()))
  }
  return await work()
}
