/** The memory that clients make the process hold: bodies that do not end, requests that wait, and answers that are not read. */
import type { Socket } from 'node:net'

/** Bytes that all connections may hold together, and again all requests that wait: an eighth of the heap in a container of 512 MB. */
const LIMIT = 32 * 1024 * 1024

/** Bytes of a usual request, which is not counted, so that large ones refuse no usual one: the queue of the database bounds how many wait. */
const USUAL = 4_096

/** What the connections of a server hold. */
export class ClientMemory {
  /**
   * By connection. A Map keeps the order of insertion: its first one has not changed for the longest time. A request
   * and an answer of one packet each never come here, so V8 has few old tables to keep.
   */
  readonly #held = new Map<Socket, number>()
  #total = 0
  #ofRequests = 0

  /**
   * Sets the bytes that a connection holds for its client. While all hold more than the limit together, the
   * connection that has not changed for the longest time is destroyed.
   */
  hold(socket: Socket, bytes: number): void {
    this.#total += bytes - (this.#held.get(socket) ?? 0)
    this.#held.delete(socket)
    if (bytes > 0) this.#held.set(socket, bytes)
    for (const [oldest, amount] of this.#held) {
      if (this.#total <= LIMIT) return
      this.#held.delete(oldest)
      this.#total -= amount
      oldest.destroy()
    }
  }

  /**
   * Changes the bytes of a request that waits, and returns what counts of them. Returns undefined, and changes
   * nothing, if it would need more than the limit together with all others: to destroy those would lose their answers.
   */
  recount(before: number, bytes: number): number | undefined {
    const counted = bytes > USUAL ? bytes : 0
    const total = this.#ofRequests + counted - before
    if (counted > before && total > LIMIT) return undefined
    this.#ofRequests = total
    return counted
  }
}
