/** The deadline of a call, which everything that the call waits for receives. */
import { DatabaseTimeoutError } from './errors.ts'

type Listener = (reason: Error) => void

/**
 * The deadline of a call. The call ends after `timeout` milliseconds, or earlier when `giveUp` is called.
 * Infinity means no timeout.
 */
export class Deadline {
  #timer: NodeJS.Timeout | undefined
  #listeners: Set<Listener> | undefined
  #isOver = false
  /** Why the call was given up; undefined if it was not. */
  reason: Error | undefined

  constructor(timeout: number) {
    if (timeout === Number.POSITIVE_INFINITY) return
    // After a pause of the process, an answer may have arrived in time: it is read before the immediate.
    const onTimeout = () => setImmediate(() => this.giveUp(new DatabaseTimeoutError(timeout)))
    // A call that waits has an open connection, so its timer need not keep the process alive.
    this.#timer = setTimeout(onTimeout, timeout).unref()
  }

  /** Gives up the call for this reason, unless it is over. */
  giveUp(reason: Error): void {
    if (this.#isOver) return
    this.reason = reason
    const listeners = this.#listeners
    this.clear()
    for (const listener of listeners ?? []) listener(reason)
  }

  /**
   * Calls the listener when the call is given up, at once if that has happened. Returns a function that
   * removes the listener.
   */
  onGiveUp(listener: Listener): () => void {
    if (this.reason) listener(this.reason)
    if (this.#isOver) return () => {}
    this.#listeners ??= new Set()
    this.#listeners.add(listener)
    return () => void this.#listeners?.delete(listener)
  }

  /** Settles like the promise, or rejects with the reason when the call is given up first. */
  race<Value>(promise: Promise<Value>): Promise<Value> {
    return new Promise((resolve, reject) => {
      const removeListener = this.onGiveUp(reject)
      promise.then(resolve, reject).finally(removeListener)
    })
  }

  /** Ends the call, and removes its timer and listeners. */
  clear(): void {
    this.#isOver = true
    this.#listeners = undefined
    clearTimeout(this.#timer)
  }

  /** `using deadline = …` clears it at the end of its block. */
  [Symbol.dispose](): void {
    this.clear()
  }
}

/** Returns a deadline that ends with the last one of these calls. */
export function jointDeadline(calls: readonly { deadline: Deadline }[]): Deadline {
  const [first] = calls
  if (first && calls.length === 1) return first.deadline
  // The calls of a shared transaction have one deadline.
  const deadlines = new Set(calls.map(({ deadline }) => deadline))
  if (first && deadlines.size === 1) return first.deadline
  const joint = new Deadline(Number.POSITIVE_INFINITY)
  let waiting = deadlines.size
  for (const deadline of deadlines) {
    deadline.onGiveUp((reason) => {
      if (--waiting === 0) joint.giveUp(reason)
    })
  }
  return joint
}
