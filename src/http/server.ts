/** The HTTP server: what Node does before the app is asked. */
import { createServer, type Server, STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import type { TRPC_ERROR_CODE_KEY } from '@trpc/server/rpc'
import type { Express } from 'express'
import type { ApiError } from '../errors.ts'
import { MAX_HEADERS } from '../limits.ts'

/** Milliseconds that a client has to send something. */
export interface Patience {
  headers: number
  request: number
  /** Between two requests: longer than the 60 s of common load balancers, so that they close first. */
  keepAlive: number
}

const patience: Patience = { headers: 10_000, request: 30_000, keepAlive: 65_000 }

/** A server for the app. Requests that are too slow, too large or not HTTP get the Error body too. */
export function createHttpServer(app: Express, { headers, request, keepAlive } = patience): Server {
  return createServer(
    {
      headersTimeout: headers,
      requestTimeout: request,
      keepAliveTimeout: keepAlive,
      connectionsCheckingInterval: Math.min(1_000, headers),
      maxHeaderSize: MAX_HEADERS,
      requireHostHeader: false, // the app refuses it, with a body
    },
    app,
  )
    .on('checkExpectation', app) // RFC 9110, section 10.1.1: an unknown expectation may be ignored
    .on('connect', (_req, socket: Duplex) =>
      refuse(socket, 405, 'METHOD_NOT_SUPPORTED', 'CONNECT is not supported'),
    )
    .on('clientError', (error: NodeJS.ErrnoException, socket) => {
      if (error.code === 'ECONNRESET' || !socket.writable) socket.destroy()
      else if (error.code === 'HPE_HEADER_OVERFLOW') {
        refuse(
          socket,
          431,
          'BAD_REQUEST',
          `The address and the headers must have at most ${MAX_HEADERS} bytes`,
        )
      } else if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT') {
        refuse(socket, 408, 'TIMEOUT', 'The request did not arrive in time')
      } else refuse(socket, 400, 'BAD_REQUEST', 'The request is not well-formed HTTP')
    })
}

function refuse(socket: Duplex, status: number, code: TRPC_ERROR_CODE_KEY, message: string): void {
  const body = JSON.stringify({ code, message, status } satisfies ApiError)
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    'Content-Type: application/json',
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Connection: close',
  ]
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`)
}
