/** The memory that clients make the process hold: bodies that do not end, and answers that are not read. */
import type { Socket } from 'node:net'

/** Bytes that all connections may hold together: an eighth of the heap in a container of 512 MB. */
const LIMIT = 32 * 1024 * 1024

// A Map keeps the order of insertion: its first connection has not changed for the longest time.
const held = new Map<Socket, number>()
let total = 0

/**
 * Sets the bytes that a connection holds for its client. While all hold more than the limit together, the
 * connection that has not changed for the longest time is destroyed.
 */
export function hold(socket: Socket, bytes: number): void {
  total += bytes - (held.get(socket) ?? 0)
  held.delete(socket)
  if (bytes > 0) held.set(socket, bytes)
  for (const [oldest, amount] of held) {
    if (total <= LIMIT) return
    held.delete(oldest)
    total -= amount
    oldest.destroy()
  }
}
