/** Responses in one write. */
import type { RequestHandler } from 'express'
import { methodNotSupported } from '../errors/problem.ts'
import { connectionOf } from './connection.ts'
import type { RecordedResponse } from './record.ts'

/**
 * Sends a response; `headers` has each name before its value. It adds `Content-Length` and `X-Request-Id`.
 * Headers from `res.setHeader` stay, unless the list has them too. Node omits the body of HEAD, 204 and 304. Once it
 * is sent, `close` of the response calls `#end` of the server.
 */
export function send(
  res: RecordedResponse,
  status: number,
  headers: readonly string[],
  body: string | Buffer,
): void {
  // The server has already responded to a request that it rejected in the middle of its body.
  if (res.headersSent) return
  // No other request can follow the rest of this body.
  if (!res.req.complete) res.shouldKeepAlive = false
  const list = [...headers, 'X-Request-Id', res.record.requestId]
  const length = typeof body === 'string' ? Buffer.byteLength(body) : body.length
  if (status !== 204 && status !== 304) list.push('Content-Length', String(length))
  res.writeHead(status, list)
  // Node copies ASCII faster than it encodes UTF-8.
  res.end(body, length === body.length ? 'latin1' : 'utf8')
  const { socket } = res
  if (socket && socket.writableLength > 0) connectionOf(socket).holdAnswer(res.req)
}

/** The handler of all methods but GET and HEAD: it throws METHOD_NOT_SUPPORTED. */
export const getOnly: RequestHandler = ({ method }) => {
  throw methodNotSupported(method, 'GET, HEAD')
}
