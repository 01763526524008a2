/** The HTTP server: one request at a time on each connection, timeouts, refusals of what is not HTTP. */
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { Server as NetServer, type Socket } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
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

/** Milliseconds in which a stop still reads requests from idle connections: one may be on its way. */
const ON_THE_WAY = 100

/** Bytes that Node holds for a pipelined request, as measured. */
const PIPELINED_REQUEST = 6_000

/** Requests that a client may send before the answer to its first one. None of them is done. */
const MAX_PIPELINED = 100

type State = 'idle' | 'answering' | 'last' | 'closing'
type Event = 'request' | 'lastRequest' | 'refusal' | 'answered' | 'end'

interface Connection {
  readonly socket: Socket
  state: State
  /** The answer that the client has not taken in full. */
  current: ServerResponse | undefined
  /** Requests behind that of the current answer. */
  pipelined: number
  /** Bytes that the connection had read when the last answer was sent. */
  bytesBefore: number
}

/**
 * Takes a connection to its next state. Entering `last` tells the client, if the head of its answer is not
 * sent; entering `closing` ends this side.
 *
 * | State | The connection | request | lastRequest | refusal | answered | end |
 * |---|---|---|---|---|---|---|
 * | `idle` | waits for a request | `answering` | `last` | `closing` | `idle` | `closing` |
 * | `answering` | has an answer that the client has not taken in full | `last` | `last` | `last` | `idle` | `closing` |
 * | `last` | has one, and closes after it | `last` | `last` | `last` | `closing` | `closing` |
 * | `closing` | waits for the client to end its side | `closing` | `closing` | `closing` | `closing` | `closing` |
 *
 * - `request`: the head of a request has arrived. Behind an answer that is not over, the request is not done,
 *   and the answer closes the connection (RFC 9112, section 9.3.2).
 * - `lastRequest`: the head of one that no other can follow.
 * - `refusal`: what has arrived is not HTTP, or has not arrived in time.
 * - `answered`: the answer is over, and its request has arrived in full.
 * - `end`: Node has sent the last answer, or an answer is over that no request can follow.
 */
function next(connection: Connection, event: Event): void {
  connection.state = stateAfter(event, connection.state)
  const { state, current, socket } = connection
  if (state === 'last' && current && !current.headersSent) current.shouldKeepAlive = false
  if (state === 'closing') close(socket)
}

function stateAfter(event: Event, state: State): State {
  if (state === 'closing') return 'closing'
  switch (event) {
    case 'request':
      return state === 'idle' ? 'answering' : 'last'
    case 'lastRequest':
      return 'last'
    case 'refusal':
      return state === 'idle' ? 'closing' : 'last'
    case 'answered':
      return state === 'last' ? 'closing' : 'idle'
    case 'end':
      return 'closing'
  }
}

/**
 * Returns a server that does not listen yet, and the function that stops it. `onRequest` answers a request. A
 * client has `keepAliveTimeout` milliseconds to send the next request, and to read the next bytes of an
 * answer.
 */
export function createHttpServer(
  onRequest: (req: IncomingMessage, res: ServerResponse) => void,
  telemetry: Telemetry,
  keepAliveTimeout: number,
) {
  const connections = new Map<Socket, Connection>()
  let isStopping = false

  const accept = (req: IncomingMessage, res: ServerResponse) => {
    const connection = connections.get(req.socket)
    if (!connection) return
    if (connection.state !== 'idle') return drop(connection)
    connection.current = res
    // After an Upgrade header, Node drops the rest of the packet: the next request would lack bytes.
    const isLast = isStopping || req.headers.upgrade !== undefined
    next(connection, isLast ? 'lastRequest' : 'request')
    telemetry.begin(req, res)
    res.on('close', onOver)
    if (req.httpVersionMajor !== 1) return refuse(connection, NOT_HTTP)
    // One turn later, for two reasons: Node has then read the rest of the packet (a body, or a mistake in
    // it), and requests that arrive together are served together, so that their calls can share statements.
    setImmediate(dispatch, req, res)
  }

  // What followed in the packet may have been refused meanwhile.
  const dispatch = (req: IncomingMessage, res: ServerResponse) => {
    if (!res.headersSent && !res.destroyed) onRequest(req, res)
  }

  /** Its answer was sent, or the connection is closed. */
  function onOver(this: ServerResponse) {
    const { req } = this
    telemetry.end(this)
    const connection = connections.get(req.socket)
    if (!connection) return
    connection.current = undefined
    connection.bytesBefore = req.socket.bytesRead
    next(connection, isStopping || !req.complete ? 'end' : 'answered')
  }

  const refuse = (connection: Connection, error: Problem) => {
    const { socket, current, state } = connection
    // Node itself ends an idle connection whose client has ended its side.
    if (socket.writableEnded) return
    const body = JSON.stringify(error.refusal)
    if (state === 'idle') {
      const id = telemetry.refuse(error.status, socket.remoteAddress)
      socket.write(rawAnswer(error.status, body, id))
    }
    next(connection, 'refusal')
    if (current && !current.req.complete) answer(current, error.status, jsonHeaders, body)
  }
  const refuseAt = (socket: Socket, error: Problem) => {
    const connection = connections.get(socket)
    if (connection) refuse(connection, error)
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
      const connection = newConnection(socket)
      connections.set(socket, connection)
      socket.on('error', () => {}) // Node removes its own listener after CONNECT
      // Node calls this after the last answer, and would destroy a socket whose client still sends.
      Object.assign(socket, { destroySoon: () => next(connection, 'end') })
      socket.once('close', () => {
        connections.delete(socket)
        hold(socket, 0)
      })
    })
    .on('request', accept)
    .on('checkContinue', accept) // readBody sends 100 Continue
    .on('checkExpectation', accept) // RFC 9110, section 10.1.1: a server may ignore other values
    .on('connect', ({ socket }: IncomingMessage) => refuseAt(socket, NO_CONNECT))
    .on('clientError', ({ code }: NodeJS.ErrnoException, duplex) => {
      const socket = duplex as Socket // the sockets of a server without TLS are those of node:net
      // Browsers and pools open connections in advance: one without a request ends in silence.
      if (socket.destroyed || socket.bytesRead === 0) return socket.destroy()
      if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return refuseAt(socket, problem('timeout'))
      refuseAt(socket, code === 'HPE_HEADER_OVERFLOW' ? problem('headersTooLarge') : MALFORMED)
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
    await Promise.race([closed, wait(Math.min(ON_THE_WAY, patience))])
    for (const { socket, current, bytesBefore } of connections.values()) {
      if (!current && socket.bytesRead === bytesBefore) socket.destroy()
    }
    const timer = setTimeout(() => {
      for (const connection of connections.values()) {
        if (!connection.current?.req.complete) refuse(connection, problem('timeout'))
      }
    }, patience)
    await closed
    clearTimeout(timer)
  }
  return { server, stop }
}

const newConnection = (socket: Socket): Connection => ({
  socket,
  state: 'idle',
  current: undefined,
  pipelined: 0,
  bytesBefore: 0,
})

/** Does not do a request that has arrived before the answer to the one before it was over. */
function drop(connection: Connection): void {
  const { socket } = connection
  next(connection, 'request')
  if (++connection.pipelined > MAX_PIPELINED) socket.destroy()
  else hold(socket, socket.writableLength + connection.pipelined * PIPELINED_REQUEST)
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
  // Names and values in turn.
  const lines = headers.map((text, at) => (at % 2 ? `${text}\r\n` : `${text}: `))
  return `HTTP/1.1 ${status} ${http.STATUS_CODES[status]}\r\n${lines.join('')}\r\n${body}`
}

const MALFORMED = new Problem('BAD_REQUEST', 'The request is not well-formed HTTP')
const NOT_HTTP = new Problem('BAD_REQUEST', 'The request must be one of HTTP/1.1 or HTTP/1.0')
const NO_CONNECT = new Problem('METHOD_NOT_SUPPORTED', 'CONNECT is not supported')
