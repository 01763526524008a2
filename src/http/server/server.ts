/** The HTTP server: timeouts, connections, and the responses to requests that never reach the app. */
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { Express, Request, Response } from 'express'
import { MAX_HEADER_COUNT, MAX_HEADERS } from '../../config/limits.ts'
import {
  type ApiError,
  HEADERS_TOO_LARGE,
  INVALID_URL,
  Problem,
  REQUEST_TIMEOUT,
  refusalOf,
  toApiError,
} from '../../errors/problem.ts'
import { jsonHeaders } from '../headers.ts'
import { http } from '../node.ts'
import { isHttp } from '../request.ts'
import { GONE } from '../request-log.ts'
import { recordOf } from '../request-record.ts'
import { answer, rawAnswer } from '../respond.ts'
import { Connection } from './connection.ts'

/** The timeouts of clients, in milliseconds. */
export interface ClientTimeouts {
  /** To send the headers. */
  headers: number
  /** To send a whole request. */
  request: number
  /**
   * To send the next request, and to read the next bytes of a response. Longer than the 60 s of
   * common load balancers, which must close first, or they would send a request as it closes.
   */
  keepAlive: number
}

const defaultTimeouts: ClientTimeouts = { headers: 10_000, request: 30_000, keepAlive: 65_000 }

/** Reports a request that never reaches the app, and returns its id for `X-Request-Id`. */
type OnRefused = (refusal: { status: number; ipAddress: string | undefined }) => string

/**
 * Returns a server for the app, which does not listen yet. It rejects requests that are too slow, too
 * large or not HTTP with a body that clients of both surfaces can parse: their surface is unknown.
 */
export function createHttpServer(
  app: Express,
  onRefused: OnRefused,
  timeouts: ClientTimeouts = defaultTimeouts,
): Server {
  const connections = new Map<Duplex, Connection>()
  // The duplex streams of node:http's server are sockets of node:net.
  const report = ({ status }: ApiError, socket: Duplex) =>
    onRefused({ status, ipAddress: (socket as Socket).remoteAddress })
  // Both have Express's prototypes (see `madeFor`). Express calls the last handler for a URL that it
  // cannot parse, before all other handlers, and after an error in the middle of a response.
  const serve = (req: IncomingMessage, res: ServerResponse) =>
    app(req as Request, res as Response, () => {
      if (res.headersSent) return res.destroy()
      recordOf(res).requestId = report(BAD_URL, req.socket)
      answer(res, BAD_URL.status, jsonHeaders, JSON.stringify(refusalOf(BAD_URL)))
    })
  const accept = (req: IncomingMessage, res: ServerResponse) => {
    if (!isHttp(req)) return refuse(req.socket, NOT_HTTP)
    connections.get(req.socket)?.accept(req, res)
  }
  const refuse = (socket: Duplex, error: ApiError) => {
    const place = connections.get(socket)?.refuse()
    if (!place) return
    const body = JSON.stringify(refusalOf(error))
    if (!(place instanceof Connection)) return answer(place, error.status, jsonHeaders, body)
    place.end(rawAnswer(error.status, body, report(error, socket)))
  }

  class HttpServer extends http.Server {
    /**
     * Node's own method closes connections whose client is still reading a response, and leaves open
     * those on which no request has begun.
     */
    override closeIdleConnections(): void {
      for (const connection of connections.values()) connection.closeIfIdle()
    }
  }
  const server = new HttpServer({
    ...madeFor(app),
    headersTimeout: timeouts.headers,
    requestTimeout: timeouts.request,
    keepAliveTimeout: timeouts.keepAlive,
    connectionsCheckingInterval: Math.min(1_000, timeouts.headers),
    maxHeaderSize: MAX_HEADERS,
    requireHostHeader: false, // the app rejects a missing Host, with an Error as the body
  })
  // A client that closes its side first still gets its response. Node does not document this option.
  Object.assign(server, { httpAllowHalfOpen: true })
  server.maxHeadersCount = MAX_HEADER_COUNT
  server.setTimeout(timeouts.keepAlive)
  return server
    .on('connection', (socket: Socket) => {
      // A socket caches its IP address when it is read, and the log reads it after the socket closes.
      void socket.remoteAddress
      // Under load, many clients are gone before their requests are served.
      const onUnserved = () => onRefused({ status: GONE, ipAddress: socket.remoteAddress })
      connections.set(socket, new Connection(socket, serve, onUnserved))
      socket.once('close', () => connections.delete(socket))
    })
    .on('request', accept)
    .on('checkContinue', accept) // readBody sends 100 Continue
    .on('checkExpectation', accept) // RFC 9110, section 10.1.1: a server may ignore other values
    .on('connect', (_req: IncomingMessage, socket: Duplex) => refuse(socket, NO_CONNECT))
    .on('clientError', (error: NodeJS.ErrnoException, socket) => {
      const connection = connections.get(socket)
      // A client that closes its side in the middle of a body waits for no response.
      const isAborted = connection?.isInBody && error.code === 'HPE_INVALID_EOF_STATE'
      if (isAborted || error.code === 'ECONNRESET' || !socket.writable) return socket.destroy()
      if (error.code !== 'ERR_HTTP_REQUEST_TIMEOUT') return refuse(socket, parserError(error))
      // The rest of the request may have arrived while the process was busy: Node reads it first.
      const { latest, isInBody } = connection ?? {}
      setImmediate(() => {
        const isSame = connection?.latest === latest && connection?.isInBody === isInBody
        if (isSame) refuse(socket, REQUEST_TIMEOUT)
      })
    })
}

/**
 * Returns classes of requests and responses for `http.createServer` that have Express's prototypes.
 * Express sets the prototype of each request and response, and V8 is slow with an object whose
 * prototype has changed: 5 µs more a request, of 29. With these classes nothing changes. They are
 * classes, and not functions, so that V8 knows the size of their objects.
 */
function madeFor(app: Express) {
  class ExpressRequest extends http.IncomingMessage {}
  class ExpressResponse<Req extends IncomingMessage> extends http.ServerResponse<Req> {}
  app.request = Object.setPrototypeOf(ExpressRequest.prototype, app.request)
  app.response = Object.setPrototypeOf(ExpressResponse.prototype, app.response)
  return { IncomingMessage: ExpressRequest, ServerResponse: ExpressResponse }
}

const badRequest = (message: string) => toApiError(new Problem('BAD_REQUEST', message))

const BAD_URL = badRequest(INVALID_URL)
const MALFORMED = badRequest('The request is not well-formed HTTP')
const NOT_HTTP = badRequest('The request must be one of HTTP/1.1 or HTTP/1.0')
const NO_CONNECT = toApiError(new Problem('METHOD_NOT_SUPPORTED', 'CONNECT is not supported'))

const parserError = ({ code }: NodeJS.ErrnoException): ApiError =>
  code === 'HPE_HEADER_OVERFLOW' ? HEADERS_TOO_LARGE : MALFORMED
