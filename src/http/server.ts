/** The HTTP server: what Node does before the app is asked. */
import {
  createServer,
  type RequestListener,
  type Server,
  type ServerResponse,
  STATUS_CODES,
} from 'node:http'
import type { Duplex } from 'node:stream'
import type { Express, Request, Response } from 'express'
import type { ApiError } from '../errors.ts'
import { MAX_HEADERS, MAX_PIPELINED } from '../limits.ts'
import { errorText } from './errors.ts'

/** Milliseconds that a client has to send something. */
export interface Patience {
  headers: number
  request: number
  /**
   * Between two requests, and for taking the next bytes of an answer: longer than the 60 s of
   * common load balancers, so that they close first.
   */
  keepAlive: number
}

const patience: Patience = { headers: 10_000, request: 30_000, keepAlive: 65_000 }

/** Milliseconds that a refused client has to take the answer and close. */
const FAREWELL = 1_000

/** A server for the app. Requests that are too slow, too large or not HTTP get the Error body too. */
export function createHttpServer(app: Express, { headers, request, keepAlive } = patience): Server {
  /** The answer to the latest request of each connection. */
  const latest = new WeakMap<Duplex, ServerResponse>()
  /** Requests of each connection that are not answered yet. */
  const unanswered = new WeakMap<Duplex, number>()

  const serve: RequestListener = (req, res) => {
    const { socket } = req
    // What follows an offer to upgrade has lost bytes: Node drops what came in the same packet. So
    // the connection ends with the answer to that, and all that came since is not looked at.
    if (latest.get(socket)?.req.headers.upgrade !== undefined) return
    if (req.headers.upgrade !== undefined) res.setHeader('Connection', 'close')
    const count = (unanswered.get(socket) ?? 0) + 1
    // Answers that wait for those before them, or to be taken, are held in memory.
    if (count > MAX_PIPELINED) return socket.destroy()
    unanswered.set(socket, count)
    res.once('close', () => unanswered.set(socket, (unanswered.get(socket) ?? 1) - 1))
    latest.set(socket, res)
    // What the app itself has no answer to: an address that it cannot even take apart, and an
    // answer that broke off.
    app(req as Request, res as Response, () => {
      if (res.headersSent) return res.destroy()
      const error = badRequest('The address of the request cannot be read')
      res.writeHead(error.status, { 'Content-Type': 'application/json', Connection: 'close' })
      res.end(errorText(req.url, error))
    })
  }

  const server = createServer(
    {
      headersTimeout: headers,
      requestTimeout: request,
      keepAliveTimeout: keepAlive,
      connectionsCheckingInterval: Math.min(1_000, headers),
      maxHeaderSize: MAX_HEADERS,
      requireHostHeader: false, // the app refuses it, with a body
    },
    serve,
  )
  server.setTimeout(keepAlive)
  return server
    .on('checkExpectation', serve) // RFC 9110, section 10.1.1: an unknown expectation may be ignored
    .on('connect', (req, socket: Duplex) => {
      // Node has let go of the socket: an error that nobody listens to would end the process.
      socket.on('error', () => socket.destroy())
      if (!mayAnswer(latest.get(socket), socket)) return socket.destroy()
      const message = 'CONNECT is not supported'
      refuse(socket, req.url, { code: 'METHOD_NOT_SUPPORTED', message, status: 405 })
    })
    .on('clientError', (error: ClientError, socket) => {
      const res = latest.get(socket)
      if (error.code === 'ECONNRESET' || !socket.writable || !mayAnswer(res, socket)) {
        return socket.destroy()
      }
      const unanswered = res && !res.writableFinished ? (res.req as Request).originalUrl : undefined
      refuse(socket, unanswered ?? firstTarget(error), problemOf(error))
    })
}

interface ClientError extends NodeJS.ErrnoException {
  /** The bytes that could not be understood. */
  rawPacket?: Buffer
}

/**
 * Whether an error may be written to a connection now: an answer that is still due would be
 * mistaken for it, or torn apart, and a request that has its answer gets no second one.
 */
function mayAnswer(res: ServerResponse | undefined, socket: Duplex): boolean {
  if (!res) return true
  if (res.writableFinished) return res.req.complete
  return !res.req.complete && !res.headersSent && res.socket === socket
}

// The address is known, if at all, from the first line of what was sent.
function firstTarget({ rawPacket }: ClientError): string | undefined {
  return rawPacket?.toString('latin1', 0, 64).match(/^[A-Z]+ (\S+)/)?.[1]
}

function problemOf({ code }: ClientError): ApiError {
  if (code === 'HPE_HEADER_OVERFLOW') {
    const message = `The address and the headers must have at most ${MAX_HEADERS} bytes`
    return { code: 'BAD_REQUEST', message, status: 431 }
  }
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') {
    return { code: 'TIMEOUT', message: 'The request did not arrive in time', status: 408 }
  }
  return badRequest('The request is not well-formed HTTP')
}

const badRequest = (message: string): ApiError => ({ code: 'BAD_REQUEST', message, status: 400 })

function refuse(socket: Duplex, target: string | undefined, error: ApiError): void {
  const body = errorText(target, error)
  const head = [
    `HTTP/1.1 ${error.status} ${STATUS_CODES[error.status]}`,
    'Content-Type: application/json',
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Connection: close',
  ]
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`)
  // Not at once: what a client still sends would reset the connection before it reads this.
  setTimeout(() => socket.destroy(), FAREWELL).unref()
}
