/** The HTTP server: what Node does before the app is asked. */
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { Express, Request, Response } from 'express'
import { type ApiError, HEADERS_TOO_LARGE, REQUEST_TIMEOUT } from '../errors.ts'
import { MAX_HEADER_COUNT, MAX_HEADERS } from '../limits.ts'
import { answer, rawAnswer } from './answer.ts'
import { Connection, shared } from './connection.ts'
import { readFirstTarget, targetOf } from './first-line.ts'
import { jsonHeaders } from './headers.ts'
import { http } from './node.ts'

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

/** What is to be done with requests that the app never sees. */
export interface Refusals {
  /** The body of a refusal, in the form of the surface that the address, if it is known, belongs to. */
  body(target: string | undefined, error: ApiError): string
  /** Hears of a refusal, and gives the id to answer it with. */
  onRefused(refusal: { status: number; address: string | undefined }): string
}

/** A server for the app. Requests that are too slow, too large or not HTTP get the Error body too. */
export function createHttpServer(
  app: Express,
  refusals: Refusals,
  patience: Patience = defaultPatience,
): Server {
  const connections = new WeakMap<Duplex, Connection>()
  /** Connections on which nothing was said yet: Node's parser does not know of them. */
  const silent = new Set<Socket>()
  const common = shared((req, res) => {
    // What the app itself has no answer to: an address that it cannot even take apart, and an
    // answer that broke off.
    // They were made with Express's own prototypes.
    app(req as Request, res as Response, () => {
      if (res.headersSent) return res.destroy()
      const error = badRequest('The address of the request cannot be read')
      answer(res, error.status, jsonHeaders, refusals.body(req.url, error))
    })
  })
  const accept = (req: IncomingMessage, res: ServerResponse) =>
    connections.get(req.socket)?.accept(req, res)

  const refuse = (socket: Duplex, target: string | undefined, error: ApiError) => {
    const connection = connections.get(socket)
    const due = connection?.refuse()
    if (!connection || !due) return
    if (due !== true) {
      // Express shortens the address of a request on its way.
      const { originalUrl } = due.req as Request
      return answer(due.res, error.status, jsonHeaders, refusals.body(originalUrl, error))
    }
    const body = refusals.body(target ?? connection.target, error)
    // A duplex of node:http's server is a socket of node:net.
    const { remoteAddress: address } = socket as Socket
    const id = refusals.onRefused({ status: error.status, address })
    connection.end(rawAnswer(error.status, body, id))
  }

  class HttpServer extends http.Server {
    override closeIdleConnections(): void {
      super.closeIdleConnections()
      for (const socket of silent) socket.destroy()
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
  server.maxHeadersCount = MAX_HEADER_COUNT
  server.setTimeout(patience.keepAlive)
  // Node's own listener hands the socket to the parser: that comes after the look at the first line.
  const listeners = server.listeners('connection')
  server.removeAllListeners('connection').on('connection', (socket: Socket) => {
    // A socket keeps its address once it was asked for it: the log may ask when the client has gone.
    void socket.remoteAddress
    silent.add(socket)
    socket.once('close', () => silent.delete(socket))
    readFirstTarget(socket, patience.headers, (target, isLate) => {
      silent.delete(socket)
      if (!isLate) for (const listener of listeners) listener.call(server, socket)
      // After Node's own: when Node resumes the socket, the connection has the last word.
      connections.set(socket, new Connection(socket, common, target))
      if (isLate) refuse(socket, target, REQUEST_TIMEOUT)
    })
  })
  return server
    .on('request', accept)
    .on('checkContinue', accept) // whoever reads the body asks for it
    .on('checkExpectation', accept) // RFC 9110, section 10.1.1: an unknown one may be ignored
    .on('connect', (req: IncomingMessage, socket: Duplex) => {
      const message = 'CONNECT is not supported'
      refuse(socket, req.url, { code: 'METHOD_NOT_SUPPORTED', message, status: 405 })
    })
    .on('clientError', (error: ClientError, socket) => {
      const connection = connections.get(socket)
      // A client that ends in the middle of a body has gone.
      const hasLeft = connection?.isInBody && error.code === 'HPE_INVALID_EOF_STATE'
      if (hasLeft || error.code === 'ECONNRESET' || !socket.writable) return socket.destroy()
      refuse(
        socket,
        connection?.isArriving ? undefined : targetOf(error.rawPacket),
        problemOf(error),
      )
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

interface ClientError extends NodeJS.ErrnoException {
  /** The bytes that could not be understood. */
  rawPacket?: Buffer
}

const badRequest = (message: string): ApiError => ({ code: 'BAD_REQUEST', message, status: 400 })

function problemOf({ code }: ClientError): ApiError {
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return REQUEST_TIMEOUT
  if (code === 'HPE_HEADER_OVERFLOW') return HEADERS_TOO_LARGE
  return badRequest('The request is not well-formed HTTP')
}
