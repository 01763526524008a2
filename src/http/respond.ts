/** Writes answers: status, headers and body at once. */
import type { ServerResponse } from 'node:http'
import type { RequestHandler } from 'express'
import { methodNotSupported } from '../errors/problem.ts'
import { jsonHeaders } from './headers.ts'
import { http } from './node.ts'
import { recordOf } from './record.ts'
import { isUnread } from './request.ts'

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
  // What is left of a body is not read, so that no other request can follow it.
  if (isUnread(res.req)) res.shouldKeepAlive = false
  const record = recordOf(res)
  const list = [...headers, ...record.headers, 'X-Request-Id', record.requestId]
  if (status !== 204 && status !== 304) {
    const length = typeof body === 'string' ? Buffer.byteLength(body) : body.length
    list.push('Content-Length', String(length))
  }
  res.writeHead(status, list)
  res.end(body)
}

/** The text of an error's answer for a socket that has no request to be answered, and is closed then. */
export function rawAnswer(status: number, body: string, requestId: string): string {
  const lines = [`HTTP/1.1 ${status} ${http.STATUS_CODES[status]}`]
  const headers = [
    ...jsonHeaders,
    'Date',
    new Date().toUTCString(),
    'X-Request-Id',
    requestId,
    'Content-Length',
    String(Buffer.byteLength(body)),
    'Connection',
    'close',
  ]
  for (let at = 0; at < headers.length; at += 2) lines.push(`${headers[at]}: ${headers[at + 1]}`)
  return `${lines.join('\r\n')}\r\n\r\n${body}`
}

/** The methods of an address as `Allow` has them: HEAD goes with GET (RFC 9110, section 9.3.2). */
export const allowOf = (methods: readonly string[]): string =>
  methods.flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method])).join(', ')

/** Refuses what is none of these methods with METHOD_NOT_SUPPORTED. */
export function notAllowed(methods: readonly string[]): RequestHandler {
  const allow = allowOf(methods)
  return (req) => {
    throw methodNotSupported(req.method, allow)
  }
}
