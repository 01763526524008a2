/** More attempts after failures. */
import { setTimeout } from 'node:timers/promises'
import type { Deadline } from './deadline.ts'
import {
  BrokenDatabaseError,
  ConflictError,
  DatabaseTimeoutError,
  DatabaseUnavailableError,
  MissingDatabaseError,
  OverloadedError,
} from './errors.ts'
import { isGuarded } from './guard.ts'

/** Average milliseconds before the second attempt and the later ones. */
const DELAYS = [20, 100]

/** The same after a conflict of transactions: the database works, and the others will be over soon. */
const DELAYS_OF_CONFLICTS = [20, 50, 100, 200, 400]

/** Another attempt would fail, or add to the load. */
const FINAL = [DatabaseTimeoutError, OverloadedError, BrokenDatabaseError, MissingDatabaseError]

interface Repetition {
  /** Whether an attempt may be repeated that may have had an effect. */
  repeatable: boolean
  deadline?: Deadline
}

/**
 * Waits before another attempt, after `attempt` earlier ones and this one, which failed by `error`: there are up to
 * three while the database is unavailable, and up to six in conflicts with other transactions. Throws the error if
 * there is no other attempt, or the reason of the deadline.
 */
export async function pauseOrThrow(
  attempt: number,
  error: unknown,
  { repeatable, deadline }: Repetition,
): Promise<void> {
  // After the deadline, the error may be a consequence of it.
  if (deadline?.reason) throw deadline.reason
  if (!(error instanceof DatabaseUnavailableError)) throw error
  if (FINAL.some((kind) => error instanceof kind)) throw error
  if (!repeatable && !error.hadNoEffect) throw error
  const delay = (error instanceof ConflictError ? DELAYS_OF_CONFLICTS : DELAYS)[attempt]
  if (delay === undefined) throw error
  // Random, so that calls in conflict do not collide again.
  const pause = setTimeout(delay * (0.5 + Math.random()))
  await (deadline ? deadline.race(pause) : pause)
}

/**
 * Returns the result of `work`, with more attempts as `pauseOrThrow` says. Throws the error of the last attempt,
 * or the reason of the deadline. In a transaction there is one attempt, because the transaction is repeated
 * as a whole.
 */
export async function retry<Value>(
  work: () => Promise<Value>,
  repetition: Repetition,
): Promise<Value> {
  if (isGuarded()) return await work()
  for (let attempt = 0; ; attempt++) {
    try {
      return await work()
    } catch (error) {
      await pauseOrThrow(attempt, error, repetition)
    }
  }
}
