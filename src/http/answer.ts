/** Writes answers: status, headers and body at once. */
import type { ServerResponse } from 'node:http'
import { requestIdOf } from './telemetry.ts'

/**
 * Answers with a list of names and values of headers, and a body. `Content-Length` and
 * `X-Request-Id` are added, and what `setHeader` was told before stays, unless the list has it too.
 * HEAD, 204 and 304 have no body.
 */
export function answer(
  res: ServerResponse,
  status: number,
  headers: readonly string[],
  body: string | Buffer,
): void {
  // What a request is refused for in the middle of its body has been answered by the server.
  if (res.headersSent) return
  const list = [...headers, 'X-Request-Id', requestIdOf(res)]
  if (status !== 204 && status !== 304) {
    const length = typeof body === 'string' ? Buffer.byteLength(body) : body.length
    list.push('Content-Length', String(length))
  }
  res.writeHead(status, list)
  res.end(body)
}
