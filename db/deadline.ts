/** When a call is to be given up, handed down to everything that it waits for. */
import { DatabaseTimeoutError } from './errors.ts'
import type { Trace } from './trace.ts'

type Listener = (reason: Error) => void

/**
 * The end of a call's patience: `timeout` milliseconds from now, or when it is told to give up.
 * With Infinity only the latter. Not exact to the millisecond: all calls share one timer.
 */
export class Deadline {
  readonly timeout: number
  /** The trace of the call, which hears of its statements; undefined where nothing is traced. */
  readonly trace: Trace | undefined
  #expires = 0
  #previous: Deadline = this
  #next: Deadline = this
  #reason: Error | undefined
  #listeners: Listener[] | undefined
  #isOver = false

  constructor(timeout: number, trace?: Trace) {
    this.timeout = timeout
    this.trace = trace
    if (timeout !== Number.POSITIVE_INFINITY) this.#queue()
  }

  /** Why the call was given up; undefined while it was not. */
  get reason(): Error | undefined {
    return this.#reason
  }

  /** Gives the call up, for this reason, unless it is over or was given up before. */
  giveUp(reason: Error): void {
    if (this.#isOver) return
    this.#reason = reason
    const listeners = this.#listeners
    this.clear()
    for (const listener of listeners ?? []) listener(reason)
  }

  /** Tells the listener when the call is given up, at once if it was; gives what takes it back. */
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

  /** What the promise gives, or throws the reason when the call is given up before. */
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

  /** The call is over: nobody is told anything any more, and nothing is held. */
  clear(): void {
    this.#isOver = true
    this.#listeners = undefined
    this.#previous.#next = this.#next
    this.#next.#previous = this.#previous
    this.#previous = this
    this.#next = this
  }

  // The deadlines of one timeout end in the order in which they began. They are a ring around a
  // deadline that never ends, so that each leaves it at no cost, and one timer, set for the oldest,
  // serves all of them.
  #queue(): void {
    let ring = rings.get(this.timeout)
    if (!ring) {
      ring = new Deadline(Number.POSITIVE_INFINITY)
      rings.set(this.timeout, ring)
    }
    const isFirst = ring.#expires === 0
    this.#expires = performance.now() + this.timeout
    this.#previous = ring.#previous
    this.#next = ring
    ring.#previous.#next = this
    ring.#previous = this
    if (isFirst) ring.#wait(this.timeout)
  }

  /** On a ring: looks after `delay` milliseconds whose time is up. */
  #wait(delay: number): void {
    this.#expires = delay
    // Whoever waits has a connection open: the timer alone need not keep the process alive.
    setTimeout(() => this.#expire(), delay).unref()
  }

  #expire(): void {
    this.#expires = 0
    while (this.#next !== this) {
      const oldest = this.#next
      const left = oldest.#expires - performance.now()
      // A timer may come early by a millisecond.
      if (left > 1) {
        this.#wait(left)
        return
      }
      oldest.giveUp(new DatabaseTimeoutError(oldest.timeout))
    }
  }
}

const rings = new Map<number, Deadline>()
