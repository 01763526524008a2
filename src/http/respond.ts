/** Responses in one write, and a limit on the memory that clients make the process hold. */
import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { RequestHandler } from 'express'
import { methodNotSupported } from '../errors/problem.ts'
import { recordOf } from './request-log.ts'

/**
 * Sends a response; `headers` has names and values in turn. It adds `Content-Length` and `X-Request-Id`.
 * Headers from `res.setHeader` stay, unless the list has them too. Node omits the body of HEAD, 204 and 304.
 */
export function answer(
  res: ServerResponse,
  status: number,
  headers: readonly string[],
  body: string | Buffer,
): void {
  // The server has already responded to a request that it rejected in the middle of its body.
  if (res.headersSent) return
  // No other request can follow the rest of this body.
  if (!res.req.complete) res.shouldKeepAlive = false
  const list = [...headers, 'X-Request-Id', recordOf(res).requestId]
  const length = typeof body === 'string' ? Buffer.byteLength(body) : body.length
  if (status !== 204 && status !== 304) list.push('Content-Length', String(length))
  res.writeHead(status, list)
  // Node copies ASCII faster than it encodes UTF-8.
  res.end(body, length === body.length ? 'latin1' : 'utf8')
  const { socket } = res
  if (socket && socket.writableLength > 0) hold(socket, socket.writableLength)
}

/** The handler of all methods but GET and HEAD: it throws METHOD_NOT_SUPPORTED. */
export const getOnly: RequestHandler = ({ method }) => {
  throw methodNotSupported(method, 'GET, HEAD')
}

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
