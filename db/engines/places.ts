/** A limited number of places: callers that find none wait, in the order in which they came. */
import type { Deadline } from '../deadline.ts'
import { OverloadedError } from '../errors.ts'

export interface Places {
  /**
   * Waits for a place, and returns a function that gives it back. Throws OverloadedError where too
   * many callers wait, or the reason of the deadline.
   */
  take(deadline: Deadline | undefined): Promise<() => void>
}

/** Makes `count` places, for which up to `mostWaiting` callers may wait. */
export function places(count: number, mostWaiting: number): Places {
  let free = count
  const queue = new Set<() => void>()

  function leave(): void {
    const [next] = queue
    if (next) next()
    else free++
  }

  function wait(deadline: Deadline | undefined): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    let forget: (() => void) | undefined
    const enter = () => {
      queue.delete(enter)
      forget?.()
      resolve()
    }
    queue.add(enter)
    forget = deadline?.onGiveUp((reason) => {
      queue.delete(enter)
      reject(reason)
    })
    return promise
  }

  return {
    async take(deadline) {
      if (free > 0) free--
      else if (queue.size < mostWaiting) await wait(deadline)
      else throw new OverloadedError('Too many wait for a connection to the database')
      return leave
    },
  }
}
