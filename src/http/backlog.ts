/** What connections of this process hold up, and how much of it there may be. */

/** Something that holds memory for a client, and can be made to let go of it. */
interface Holder {
  destroy(): void
}

/**
 * A sum over connections with an upper bound. When there would be more, those that have not moved
 * for the longest time are destroyed, so that a crowd that never reads cannot end the process.
 */
export class Backlog {
  readonly #limit: number
  // A Map keeps the order of insertion: the first is the one that has waited longest.
  readonly #amounts = new Map<Holder, number>()
  #total = 0

  constructor(limit: number) {
    this.#limit = limit
  }

  /** Says what a connection holds from now on. That it has changed counts as a movement. */
  set(holder: Holder, amount: number): void {
    this.delete(holder)
    if (amount === 0) return
    this.#amounts.set(holder, amount)
    this.#total += amount
    for (const longest of this.#amounts.keys()) {
      if (this.#total <= this.#limit) return
      this.delete(longest)
      longest.destroy()
    }
  }

  /** A connection holds nothing any more. */
  delete(holder: Holder): void {
    this.#total -= this.#amounts.get(holder) ?? 0
    this.#amounts.delete(holder)
  }
}
