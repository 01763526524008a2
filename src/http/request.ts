/** The parts of a request's head: target, Host, IP address. */
import type { IncomingMessage } from 'node:http'
import { isIP } from 'node:net'
import type { Trust } from '../config/config.ts'
import { problem } from '../errors/problem.ts'

/** The request target (RFC 9112, section 3.2), split in two. */
export interface Target {
  /** Percent-encoded; begins with a slash, except for `*`. */
  path: string
  /** The text after the question mark; empty without one. */
  query: string
}

/**
 * Returns the target of a request line in any form of RFC 9112, section 3.2. The host of an absolute
 * URL is ignored. Undefined for a target that cannot be parsed.
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

/**
 * Throws BAD_REQUEST unless the request has exactly one Host header, with a valid host. Only HTTP/1.0
 * may omit it (RFC 9112, section 3.2).
 */
export function checkHost({ headers: { host }, httpVersion }: IncomingMessage): void {
  const isValid = host === undefined ? httpVersion === '1.0' : isHost(host)
  if (!isValid) throw problem('invalidHost')
}

// Several Host headers are no host: the server joins them by ", ". Most hosts are plain names: the URL parser is
// slower, and only the others need it.
function isHost(host: string): boolean {
  const plain = /^[\w.-]+(?::(\d{1,5}))?$/.exec(host)
  if (plain) return Number(plain[1] ?? 0) <= 65_535
  return /^[^\s/?#@\\]+$/.test(host) && URL.canParse(`http://${host}`)
}

/**
 * Returns the client's IP address: the last of X-Forwarded-For that no trusted proxy has, without its
 * port, which some proxies add. It falls back to the connection's where a proxy has sent no valid one.
 * Undefined if the connection is closed.
 */
export function ipAddressOf({ headers, socket }: IncomingMessage, trust: Trust) {
  const { remoteAddress = '' } = socket
  const forwarded = String(headers['x-forwarded-for'] ?? '')
    .split(',')
    .map(withoutPort)
  const addresses = [remoteAddress, ...forwarded.reverse()]
  const isClient = (address: string, index: number) => !isIP(address) || !trust(address, index)
  const client = addresses.find(isClient) ?? addresses.at(-1) ?? ''
  return isIP(client) ? client : socket.remoteAddress
}

/** `203.0.113.7:50001` and `[2001:db8::7]:443` lose their port. */
function withoutPort(text: string): string {
  const address = text.trim()
  const [, inBrackets, plain] = /^(?:\[([^\]]+)\]|([\d.]+))(?::\d+)?$/.exec(address) ?? []
  return inBrackets ?? plain ?? address
}
