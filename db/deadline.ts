/** When a call is given up, handed down to everything that it waits for. */
import { DatabaseTimeoutError } from './errors.ts'
import type { Trace } from './trace.ts'

type Listener = (reason: Error) => void

/**
 * The end of a call: `timeout` milliseconds from now, or when it is given up. With Infinity it ends
 * only by `giveUp`.
 */
export class Deadline {
  /** The trace of the call, which hears of its statements; undefined where nothing is traced. */
  readonly trace: Trace | undefined
  readonly #timer: NodeJS.Timeout | undefined
  #reason: Error | undefined
  #listeners: Listener[] | undefined
  #isOver = false

  constructor(timeout: number, trace?: Trace) {
    this.trace = trace
    if (timeout === Number.POSITIVE_INFINITY) return
    // A call that waits has a connection open: its timer alone need not keep the process alive.
    this.#timer = setTimeout(() => this.giveUp(new DatabaseTimeoutError(timeout)), timeout).unref()
  }

  /** The reason why the call was given up; undefined while it was not. */
  get reason(): Error | undefined {
    return this.#reason
  }

  /** Gives the call up for this reason, unless it is over or was given up before. */
  giveUp(reason: Error): void {
    if (this.#isOver) return
    this.#reason = reason
    const listeners = this.#listeners
    this.clear()
    for (const listener of listeners ?? []) listener(reason)
  }

  /** Calls the listener when the call is given up, at once if it was; returns what removes it. */
  onGiveUp(listener: Listener): () => void {
    if (this.#reason) listener(this.#reason)
    if (this.#isOver) return () => {}
    this.#listeners ??= []
    this.#listeners.push(listener)
    return () => {
      const index = this.#listeners?.indexOf(listener) ?? -1
      if (index >= 0) this.#listeners?.splice(index, 1)
    }
  }

  /** Settles as the promise does, or rejects with the reason when the call is given up before. */
  race<Value>(promise: Promise<Value>): Promise<Value> {
    return new Promise((resolve, reject) => {
      const forget = this.onGiveUp(reject)
      promise.then(resolve, reject).finally(forget)
    })
  }

  /** A deadline that ends with this one, for a part of the call that has a trace of its own. */
  traced(trace: Trace): Deadline {
    const part = new Deadline(Number.POSITIVE_INFINITY, trace)
    this.onGiveUp((reason) => part.giveUp(reason))
    return part
  }

  /** Ends the call: no listener is called any more, and nothing is held. */
  clear(): void {
    this.#isOver = true
    this.#listeners = undefined
    clearTimeout(this.#timer)
  }
}
