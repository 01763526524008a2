/** The HTTP server: one request at a time on each connection, timeouts, refusals of what is not HTTP. */
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { Server as NetServer, type Socket } from 'node:net'
import { MAX_HEADER_COUNT, MAX_HEADERS } from '../config/product.ts'
import { Problem, problem } from '../errors/problem.ts'
import { jsonHeaders } from './headers.ts'
import { hold } from './held.ts'
import type { Telemetry } from './record.ts'
import { answer } from './respond.ts'

// An `import` would evaluate all exports (https://nodejs.org/api/process.html#processgetbuiltinmoduleid). One of
// them, `WebSocket`, loads an HTTP client: 9 MB, and a tenth of the start's CPU time.
const http = process.getBuiltinModule('node:http')

/** Milliseconds that a client has to read the last answer of its connection (RFC 9112, section 9.6). */
const CLOSE_TIMEOUT = 1_000

/** Bytes that Node holds for a pipelined request, as measured. */
const PIPELINED_REQUEST = 6_000

/** Requests that a client may send before the answer to its first one. None of them is done. */
const MAX_PIPELINED = 100

interface Connection {
  /** The answer that the client has not taken in full. */
  current: ServerResponse | undefined
  /** Requests behind that of the current answer. */
  pipelined: number
  /** Whether the connection closes after the current answer. */
  isLast: boolean
  /** Bytes that the connection had read when the last answer was sent. */
  bytesBefore: number
}

/**
 * Returns a server that does not listen yet, and the function that stops it. `serve` answers a request. A client has `keepAliveTimeout` milliseconds to send the next
 * request, and to read the next bytes of an answer.
 */
export function createHttpServer(
  serve: (req: IncomingMessage, res: ServerResponse) => void,
  { begin, onRefused }: Telemetry,
  keepAliveTimeout: number,
) {
  const connections = new Map<Socket, Connection>()
  let isStopping = false

  const accept = (req: IncomingMessage, res: ServerResponse) => {
    const { socket } = req
    const connection = connections.get(socket)
    if (!connection) return
    // RFC 9112, section 9.3.2: the first answer closes the connection, the second request is not done.
    if (connection.current || socket.writableEnded) {
      endAfterCurrent(connection)
      if (++connection.pipelined > MAX_PIPELINED) return socket.destroy()
      return hold(socket, socket.writableLength + connection.pipelined * PIPELINED_REQUEST)
    }
    connection.current = res
    // After an Upgrade header, Node drops the rest of the packet: the next request would lack bytes.
    if (isStopping || req.headers.upgrade !== undefined) endAfterCurrent(connection)
    const onOver = begin(req, res)
    res.on('close', () => {
      onOver()
      connection.current = undefined
      connection.bytesBefore = socket.bytesRead
      hold(socket, 0)
      if (connection.isLast || isStopping || !req.complete) close(socket)
    })
    if (req.httpVersionMajor !== 1) return refuse(socket, NOT_HTTP)
    // Node has then parsed the rest of the packet: a body, another request, or what is malformed. And the
    // requests of one turn of the event loop run together, so that their calls can share statements.
    setImmediate(dispatch, req, res)
  }

  const dispatch = (req: IncomingMessage, res: ServerResponse) =>
    res.headersSent || res.destroyed || serve(req, res)

  const refuse = (socket: Socket, error: Problem) => {
    const connection = connections.get(socket)
    if (!connection || socket.writableEnded) return
    const { current } = connection
    const body = JSON.stringify(error.refusal)
    if (current) {
      endAfterCurrent(connection)
      if (!current.req.complete) answer(current, error.status, jsonHeaders, body)
    } else {
      const id = onRefused(error.status, socket.remoteAddress)
      socket.write(rawAnswer(error.status, body, id))
      close(socket)
    }
  }

  const server: Server = http.createServer({
    headersTimeout: 10_000,
    requestTimeout: 30_000,
    keepAliveTimeout,
    connectionsCheckingInterval: 1_000,
    maxHeaderSize: MAX_HEADERS,
    requireHostHeader: false, // a missing Host gets an Error as its body: see checkHost
  })
  // A client that closes its side first still gets its answer. Node does not document this property.
  Object.assign(server, { httpAllowHalfOpen: true })
  server.maxHeadersCount = MAX_HEADER_COUNT
  // An answer that is being made may take longer, as the database allows.
  server.setTimeout(keepAliveTimeout, (socket: Socket) => {
    const current = connections.get(socket)?.current
    if (!current || current.headersSent) socket.destroy()
  })
  server
    .on('connection', (socket: Socket) => {
      void socket.remoteAddress // kept for the log, which reads it after the socket has closed
      connections.set(socket, { current: undefined, pipelined: 0, isLast: false, bytesBefore: 0 })
      socket.on('error', () => {}) // Node removes its own listener after CONNECT
      // Node calls this after the last answer, and would destroy a socket whose client still sends.
      Object.assign(socket, { destroySoon: () => close(socket) })
      socket.once('close', () => {
        connections.delete(socket)
        hold(socket, 0)
      })
    })
    .on('request', accept)
    .on('checkContinue', accept) // readBody sends 100 Continue
    .on('checkExpectation', accept) // RFC 9110, section 10.1.1: a server may ignore other values
    .on('connect', ({ socket }: IncomingMessage) => refuse(socket, NO_CONNECT))
    .on('clientError', ({ code }: NodeJS.ErrnoException, duplex) => {
      const socket = duplex as Socket // the sockets of a server without TLS are those of node:net
      // Browsers and pools open connections in advance: one without a request ends in silence.
      if (socket.destroyed || socket.bytesRead === 0) return socket.destroy()
      if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return refuse(socket, problem('timeout'))
      refuse(socket, code === 'HPE_HEADER_OVERFLOW' ? problem('headersTooLarge') : MALFORMED)
    })

  /**
   * Accepts no more connections, closes each after its answer, and resolves when all are closed. After
   * `patience` milliseconds, a request that has not arrived in full gets 408.
   */
  const stop = async (patience: number) => {
    isStopping = true
    const closed = new Promise((resolve) => server.once('close', resolve))
    // Node's own close() of http would cut answers that are still being read.
    NetServer.prototype.close.call(server)
    for (const [socket, { current, bytesBefore }] of connections) {
      if (!current && socket.bytesRead === bytesBefore) socket.destroy()
    }
    const timer = setTimeout(() => {
      for (const [socket, { current }] of connections) {
        if (!current?.req.complete) refuse(socket, problem('timeout'))
      }
    }, patience)
    await closed
    clearTimeout(timer)
  }
  return { server, stop }
}

function endAfterCurrent(connection: Connection): void {
  connection.isLast = true
  const { current } = connection
  if (current && !current.headersSent) current.shouldKeepAlive = false
}

/** Closes this side. The client's side has a moment: a reset could take the last answer from it. */
function close(socket: Socket): void {
  if (socket.destroyed || socket.writableEnded) return
  socket.end()
  const timer = setTimeout(() => socket.destroy(), CLOSE_TIMEOUT).unref()
  socket.once('close', () => clearTimeout(timer))
}

/** Returns the text of an error response, for a socket without a request that is closed after it. */
function rawAnswer(status: number, body: string, requestId: string): string {
  const length = String(Buffer.byteLength(body))
  const own = ['X-Request-Id', requestId, 'Content-Length', length, 'Connection', 'close']
  const headers = [...jsonHeaders, 'Date', new Date().toUTCString(), ...own]
  const lines = headers.map((text, at) => (at % 2 ? `${text}\r\n` : `${text}: `))
  return `HTTP/1.1 ${status} ${http.STATUS_CODES[status]}\r\n${lines.join('')}\r\n${body}`
}

const MALFORMED = new Problem('BAD_REQUEST', 'The request is not well-formed HTTP')
const NOT_HTTP = new Problem('BAD_REQUEST', 'The request must be one of HTTP/1.1 or HTTP/1.0')
const NO_CONNECT = new Problem('METHOD_NOT_SUPPORTED', 'CONNECT is not supported')
