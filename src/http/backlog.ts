/** A limit on the memory that the connections of this process hold together. */

/** A connection or request that holds memory for a client until it is destroyed. */
interface Holder {
  destroy(): void
}

/**
 * Counts the bytes that all holders hold. When their sum exceeds `limit` bytes, it destroys those
 * whose amount has not changed for the longest time. So clients that never read cannot exhaust the
 * memory of the process.
 */
export class Backlog {
  readonly #limit: number
  // A Map keeps the order of insertion: its first amount has not changed for the longest time.
  readonly #amounts = new Map<Holder, number>()
  #total = 0

  constructor(limit: number) {
    this.#limit = limit
  }

  /** Sets the bytes that a holder holds. */
  set(holder: Holder, amount: number): void {
    this.delete(holder)
    if (amount === 0) return
    this.#amounts.set(holder, amount)
    this.#total += amount
    for (const oldest of this.#amounts.keys()) {
      if (this.#total <= this.#limit) return
      this.delete(oldest)
      oldest.destroy()
    }
  }

  /** Removes a holder. */
  delete(holder: Holder): void {
    this.#total -= this.#amounts.get(holder) ?? 0
    this.#amounts.delete(holder)
  }
}
