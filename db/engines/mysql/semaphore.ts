/** A semaphore: callers without a permit wait in the order of their arrival. */
import type { Deadline } from '../../deadline.ts'
import { OverloadedError } from '../../errors.ts'

/**
 * Returns a function that waits for one of `count` permits, and returns a function that releases it.
 * It throws the reason of the deadline, and OverloadedError if `maxWaiting` callers already wait.
 */
export function createSemaphore(count: number, maxWaiting: number) {
  let free = count
  const waiting = new Set<() => void>()

  function release(): void {
    const [next] = waiting
    if (next) next()
    else free++
  }

  return async (deadline: Deadline): Promise<() => void> => {
    if (free > 0) {
      free--
      return release
    }
    if (waiting.size >= maxWaiting) {
      throw new OverloadedError('Too many calls wait for a connection to the database')
    }
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const enter = () => {
      waiting.delete(enter)
      resolve()
    }
    waiting.add(enter)
    const removeListener = deadline.onGiveUp((reason) => {
      waiting.delete(enter)
      reject(reason)
    })
    try {
      await promise
      return release
    } finally {
      removeListener()
    }
  }
}
