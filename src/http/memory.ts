/** The memory that clients make the process hold: bodies that do not end, requests that wait, and answers that are not read. */
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'

/** Bytes that all connections may hold together, and again all requests that wait: an eighth of the heap in a container of 512 MB. */
const LIMIT = 32 * 1024 * 1024

/** Bytes that V8 and Node take for each name and value of a header, beside its characters, as measured. */
const OF_A_TEXT = 32

/** Returns the bytes that the head of a request takes while it is answered. */
export function headSize({ url = '', rawHeaders }: IncomingMessage): number {
  let size = url.length + rawHeaders.length * OF_A_TEXT
  for (const text of rawHeaders) size += text.length
  return size
}

/** What the connections of a server hold. */
export class ClientMemory {
  /**
   * By connection. A Map keeps the order of insertion: its first one has not changed for the longest time. A request
   * and an answer of one packet each never come here, so V8 has few old tables to keep.
   */
  readonly #held = new Map<Socket, number>()
  #heldBytes = 0
  #requestBytes = 0

  /**
   * Sets the bytes that a connection holds for its client. While all hold more than the limit together, the
   * connection that has not changed for the longest time is destroyed.
   */
  hold(socket: Socket, bytes: number): void {
    this.#heldBytes += bytes - (this.#held.get(socket) ?? 0)
    this.#held.delete(socket)
    if (bytes > 0) this.#held.set(socket, bytes)
    for (const [oldest, amount] of this.#held) {
      if (this.#heldBytes <= LIMIT) return
      this.#held.delete(oldest)
      this.#heldBytes -= amount
      oldest.destroy()
    }
  }

  /**
   * Counts so many more bytes of requests that wait, or fewer. Returns false, and changes nothing, if all of them
   * would hold more than the limit: to destroy others would lose their answers.
   */
  countRequests(more: number): boolean {
    const total = this.#requestBytes + more
    if (more > 0 && total > LIMIT) return false
    this.#requestBytes = total
    return true
  }
}
