/** What a request says of itself: its target, its Host, its body, and the address that it comes from. */
import type { IncomingMessage } from 'node:http'
import { isIP } from 'node:net'
import { TRPCError } from '@trpc/server'
import type { Request } from 'express'

export interface Target {
  /** Still percent-encoded; begins with a slash, except for `*`. */
  path: string
  /** What follows the question mark, or nothing. */
  query: string
}

/**
 * The target of a request line, in one of the forms of RFC 9112, section 3.2: of an absolute address
 * only the path and the query count, as this is the server that was asked. Undefined for one that
 * cannot be taken apart.
 */
export function parseTarget(url: string): Target | undefined {
  if (!url.startsWith('/') && url !== '*') {
    const parsed = URL.parse(url)
    return parsed ? { path: parsed.pathname, query: parsed.search.slice(1) } : undefined
  }
  const end = url.indexOf('?')
  return end === -1
    ? { path: url, query: '' }
    : { path: url.slice(0, end), query: url.slice(end + 1) }
}

/** The target of a request, with what its path has after `prefix`; undefined for all other paths. */
export function targetBelow(prefix: string, { url }: Request): Target | undefined {
  const target = parseTarget(url)
  if (!target?.path.startsWith(prefix)) return undefined
  const path = target.path.slice(prefix.length)
  return path === '' || path.startsWith('/') ? { path, query: target.query } : undefined
}

/**
 * RFC 9112, section 3.2: there is one Host header, and it names a host; only HTTP/1.0 may go
 * without. Throws BAD_REQUEST.
 */
export function checkHost(req: IncomingMessage): void {
  const { host } = req.headers
  if (
    host === undefined ? req.httpVersion === '1.0' : isHost(host) && countHeader(req, 'host') === 1
  ) {
    return
  }
  const message = 'The request must have one valid Host header'
  throw new TRPCError({ code: 'BAD_REQUEST', message })
}

// Nearly all hosts are plain names, which need no parser.
function isHost(host: string): boolean {
  const plain = /^[\w.-]+(?::(\d{1,5}))?$/.exec(host)
  if (plain) return Number(plain[1] ?? 0) <= 65_535
  return /^[^\s/?#@\\]+$/.test(host) && URL.canParse(`http://${host}`)
}

/**
 * How often a request has a header, by its name in lower case: Node keeps the first of several that
 * there should be only one of.
 */
export function countHeader({ rawHeaders }: IncomingMessage, name: string): number {
  let count = 0
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const sent = rawHeaders[index] as string // an even index below the length
    if (sent.length === name.length && sent.toLowerCase() === name) count++
  }
  return count
}

/** Whether a request announces a body (RFC 9112, section 6.3). */
export function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
}

/** Whether a request's body has not arrived whole. */
export const isUnread = (req: IncomingMessage): boolean => hasBody(req) && !req.complete

/**
 * Whether a request is one of HTTP/1.1 or HTTP/1.0. Node's parser accepts HTTP/0.9, HTTP/2.0 and RTSP
 * as well. It reports RTSP/1.0 as 1.0, so the bytes that it is parsing are looked at, as far as Node
 * shows them: that is not documented.
 */
export function isHttp({ httpVersion, method, url, socket }: IncomingMessage): boolean {
  if (httpVersion !== '1.0') return httpVersion === '1.1'
  const { parser } = socket as { parser?: { getCurrentBuffer?(): Buffer } }
  const text = parser?.getCurrentBuffer?.().toString('latin1') ?? ''
  return !text.includes(`${method} ${url} RTSP/`)
}

/**
 * The client's address, as far as TRUST_PROXY says whom to believe. What a proxy calls an address and
 * is none counts for nothing: then it is that of the connection. Undefined when that is gone.
 */
export const addressOf = ({ ip = '', socket }: Request): string | undefined =>
  isIP(ip) ? ip : socket.remoteAddress
