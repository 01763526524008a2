/** The deadline of a call, which everything that the call waits for receives. */
import { DatabaseTimeoutError } from './errors.ts'

/** What ends when a call is given up: its place in the queue, its statement, its pause. */
export interface Waiter {
  giveUp(reason: Error): void
}

/** What a store needs of a call. */
export interface WithDeadline {
  readonly deadline: Deadline
}

/**
 * The deadline of a call. The call ends after `timeout` milliseconds, or earlier when `giveUp` is called.
 * Infinity means no timeout. It is no AbortSignal, because each call of a request waits for several things, one after
 * another, and a place in a Set takes a third of the time of a listener. `signal` is one, for others.
 */
export class Deadline implements Waiter {
  #timer: NodeJS.Timeout | undefined
  #waiters: Set<Waiter> | undefined
  #isOver = false
  #controller: AbortController | undefined
  /** Why the call was given up; undefined if it was not. */
  reason: Error | undefined

  constructor(timeout: number) {
    if (timeout === Number.POSITIVE_INFINITY) return
    // A call that waits has an open connection, so its timer need not keep the process alive.
    this.#timer = setTimeout(onTimeout, timeout, this, timeout).unref()
  }

  /** Gives up the call for this reason, unless it is over. */
  giveUp(reason: Error): void {
    if (this.#isOver) return
    this.reason = reason
    const waiters = this.#waiters
    this.clear()
    for (const waiter of waiters ?? []) waiter.giveUp(reason)
  }

  /**
   * Aborts when the call is given up: with a TimeoutError, as `AbortSignal.timeout` does, or with another reason of
   * `giveUp`. It is made when it is first asked for.
   */
  get signal(): AbortSignal {
    if (!this.#controller) {
      const controller = new AbortController()
      this.#controller = controller
      this.add({ giveUp: (reason) => controller.abort(timeoutOf(reason) || reason) })
    }
    return this.#controller.signal
  }

  /** Gives up the waiter when the call is given up, at once if that has happened. */
  add(waiter: Waiter): void {
    if (this.reason) waiter.giveUp(this.reason)
    if (this.#isOver) return
    this.#waiters ??= new Set()
    this.#waiters.add(waiter)
  }

  remove(waiter: Waiter): void {
    this.#waiters?.delete(waiter)
  }

  /** Settles like the promise, or rejects with the reason when the call is given up first. */
  race<Value>(promise: Promise<Value>): Promise<Value> {
    return new Promise((resolve, reject) => {
      const waiter = { giveUp: reject }
      this.add(waiter)
      promise.then(resolve, reject).finally(() => this.remove(waiter))
    })
  }

  /** Does the same for what is not of the database: it rejects with the reason of `signal`. */
  async limit<Value>(promise: Promise<Value>): Promise<Value> {
    try {
      return await this.race(promise)
    } catch (error) {
      throw error === this.reason ? this.signal.reason : error
    }
  }

  /** Ends the call: its timer and its waiters are removed, and none of these, nor a later one, hears anything more. */
  clear(): void {
    this.#isOver = true
    this.#waiters = undefined
    clearTimeout(this.#timer)
  }

  /** `using deadline = …` clears it at the end of its block. */
  [Symbol.dispose](): void {
    this.clear()
  }
}

/** What waits for another service than the database must not say that the database is late. */
const timeoutOf = (reason: Error) =>
  reason instanceof DatabaseTimeoutError &&
  new DOMException('The deadline of the call has passed', 'TimeoutError')

// After a pause of the process, an answer may have arrived in time: it is read before the immediate.
const onTimeout = (deadline: Deadline, timeout: number) =>
  setImmediate(() => deadline.giveUp(new DatabaseTimeoutError(timeout)))

/** The deadline of several calls: it ends with the last of theirs. */
class JointDeadline extends Deadline {
  #left: number

  constructor(deadlines: Set<Deadline>) {
    super(Number.POSITIVE_INFINITY)
    this.#left = deadlines.size
    for (const deadline of deadlines) deadline.add(this)
  }

  override giveUp(reason: Error): void {
    if (--this.#left === 0) super.giveUp(reason)
  }
}

/** Returns a deadline that ends with the last one of these: that of one request, if it is the only one. */
export function jointDeadline(deadlines: Set<Deadline>): Deadline {
  const [first] = deadlines
  return first && deadlines.size === 1 ? first : new JointDeadline(deadlines)
}

/** Returns the result of `work` within this deadline, or, without one, within `timeout` milliseconds. */
export async function within<Result>(
  deadline: Deadline | undefined,
  timeout: number,
  work: (deadline: Deadline) => Promise<Result>,
): Promise<Result> {
  if (deadline) return await work(deadline)
  using own = new Deadline(timeout)
  return await work(own)
}
