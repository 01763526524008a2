/** The Host of a request. */
import type { IncomingMessage } from 'node:http'
import { TRPCError } from '@trpc/server'
import { countHeader } from './raw-headers.ts'

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
