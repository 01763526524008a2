/** The HTTP server: what Node does before the app is asked. */
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { Express, Request, Response } from 'express'
import { MAX_HEADER_COUNT, MAX_HEADERS } from '../../config/limits.ts'
import {
  type ApiError,
  HEADERS_TOO_LARGE,
  REQUEST_TIMEOUT,
  refusalOf,
} from '../../errors/problem.ts'
import { Backlog } from '../backlog.ts'
import { jsonHeaders } from '../headers.ts'
import { http } from '../node.ts'
import { isHttp } from '../request.ts'
import { answer, rawAnswer } from '../respond.ts'
import { Connection } from './connection.ts'

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

const defaultPatience: Patience = { headers: 10_000, request: 30_000, keepAlive: 65_000 }

/** Hears of a request that the app never sees, and returns the id to answer it with. */
type OnRefused = (refusal: { status: number; address: string | undefined }) => string

/**
 * A server for the app. What is refused before it is known what was asked (too slow, too large, not
 * HTTP) gets one body that clients of both surfaces understand.
 */
export function createHttpServer(
  app: Express,
  onRefused: OnRefused,
  patience: Patience = defaultPatience,
): Server {
  const connections = new Map<Duplex, Connection>()
  const shared = {
    held: new Backlog(32 * 1024 * 1024),
    serve(req: IncomingMessage, res: ServerResponse) {
      // What the app itself has no answer to: an address that it cannot even take apart, and an
      // answer that broke off. Both were made with Express's own prototypes.
      app(req as Request, res as Response, () => {
        if (res.headersSent) return res.destroy()
        answer(res, UNREADABLE.status, jsonHeaders, JSON.stringify(refusalOf(UNREADABLE)))
      })
    },
  }
  const accept = (req: IncomingMessage, res: ServerResponse) => {
    if (!isHttp(req)) return refuse(req.socket, NOT_HTTP)
    connections.get(req.socket)?.accept(req, res)
  }
  const refuse = (socket: Duplex, error: ApiError) => {
    const place = connections.get(socket)?.refuse()
    if (!place) return
    const body = JSON.stringify(refusalOf(error))
    if (!(place instanceof Connection)) return answer(place, error.status, jsonHeaders, body)
    // A duplex of node:http's server is a socket of node:net.
    const { remoteAddress: address } = socket as Socket
    const id = onRefused({ status: error.status, address })
    place.end(rawAnswer(error.status, body, id))
  }

  class HttpServer extends http.Server {
    /**
     * Node's own takes a connection for idle whose answer the client is still reading, and for busy
     * one on which nothing was said yet.
     */
    override closeIdleConnections(): void {
      for (const connection of connections.values()) connection.closeIfIdle()
    }
  }
  const server = new HttpServer({
    ...madeFor(app),
    headersTimeout: patience.headers,
    requestTimeout: patience.request,
    keepAliveTimeout: patience.keepAlive,
    connectionsCheckingInterval: Math.min(1_000, patience.headers),
    maxHeaderSize: MAX_HEADERS,
    requireHostHeader: false, // the app refuses it, with a body
  })
  // A client that has closed its side gets its answer. Node has no documented option for it.
  Object.assign(server, { httpAllowHalfOpen: true })
  server.maxHeadersCount = MAX_HEADER_COUNT
  server.setTimeout(patience.keepAlive)
  return server
    .on('connection', (socket: Socket) => {
      // A socket keeps its address once it was asked for it: the log may ask when the client has gone.
      void socket.remoteAddress
      connections.set(socket, new Connection(socket, shared))
      socket.once('close', () => connections.delete(socket))
    })
    .on('request', accept)
    .on('checkContinue', accept) // whoever reads the body asks for it
    .on('checkExpectation', accept) // RFC 9110, section 10.1.1: an unknown one may be ignored
    .on('connect', (_req: IncomingMessage, socket: Duplex) => refuse(socket, NO_CONNECT))
    .on('clientError', (error: NodeJS.ErrnoException, socket) => {
      const connection = connections.get(socket)
      // A client that ends in the middle of a body has gone.
      const hasLeft = connection?.isInBody && error.code === 'HPE_INVALID_EOF_STATE'
      if (hasLeft || error.code === 'ECONNRESET' || !socket.writable) return socket.destroy()
      if (error.code !== 'ERR_HTTP_REQUEST_TIMEOUT') return refuse(socket, problemOf(error))
      // What came while the process was busy is read first.
      const { latest, isInBody } = connection ?? {}
      setImmediate(() => {
        const isSame = connection?.latest === latest && connection?.isInBody === isInBody
        if (isSame) refuse(socket, REQUEST_TIMEOUT)
      })
    })
}

/**
 * Makes Node's requests and answers with the prototypes that Express gives each of them before it does
 * anything else: an object whose prototype is changed is slow from then on, and one whose prototype
 * is that already is not changed. They are classes, so that V8 knows how large their objects get.
 */
function madeFor(app: Express) {
  class ExpressRequest extends http.IncomingMessage {}
  class ExpressResponse<Req extends IncomingMessage> extends http.ServerResponse<Req> {}
  app.request = Object.setPrototypeOf(ExpressRequest.prototype, app.request)
  app.response = Object.setPrototypeOf(ExpressResponse.prototype, app.response)
  return { IncomingMessage: ExpressRequest, ServerResponse: ExpressResponse }
}

const badRequest = (message: string): ApiError => ({ code: 'BAD_REQUEST', message, status: 400 })

const UNREADABLE = badRequest('The address of the request cannot be read')
const MALFORMED = badRequest('The request is not well-formed HTTP')
const NOT_HTTP = badRequest('The request must be one of HTTP/1.1 or HTTP/1.0')
const NO_CONNECT: ApiError = {
  code: 'METHOD_NOT_SUPPORTED',
  message: 'CONNECT is not supported',
  status: 405,
}

const problemOf = ({ code }: NodeJS.ErrnoException): ApiError =>
  code === 'HPE_HEADER_OVERFLOW' ? HEADERS_TOO_LARGE : MALFORMED
