/** The HTTP server: timeouts, refusals of what is not HTTP, and the stop. */
import type { IncomingMessage, Server } from 'node:http'
import { Server as NetServer, type Socket } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { MAX_HEADER_COUNT, MAX_HEADERS } from '../config/product.ts'
import { Problem, problem } from '../errors/problem.ts'
import { Connection, connectionOf } from './connection.ts'
import { jsonHeaders } from './headers.ts'
import { ClientMemory } from './memory.ts'
import { protocolOf } from './protocol.ts'
import { RecordedResponse, type RequestRecord } from './record.ts'
import { send } from './respond.ts'

// An `import` would evaluate all exports (https://nodejs.org/api/process.html#processgetbuiltinmoduleid). One of
// them, `WebSocket`, loads an HTTP client: 9 MB, and a tenth of the start's CPU time.
const http = process.getBuiltinModule('node:http')

/** Milliseconds in which a stop still reads requests from idle connections: one may be on its way. */
const ON_THE_WAY = 100

/** Milliseconds in which the head of a request must arrive: as in deploy/haproxy.cfg. */
const HEAD_TIMEOUT = 10_000

/** Milliseconds in which a whole request must arrive: for the largest body, 2 KB a second are enough. */
const REQUEST_TIMEOUT = 30_000

/** Milliseconds between two looks at these timeouts: how much later they may end a request. */
const TIMEOUT_INTERVAL = 1_000

/**
 * Calls that are served in a turn of the event loop, and those of the batch with the last one: between turns,
 * connections are accepted, and answers go. Both wait some 3 ms, which 50 calls take. More calls would have all
 * their outputs held before the first answer.
 */
const PORTION = 50

/**
 * Turns for which new connections delay the requests: Node accepts one connection in each, and others wait behind it.
 * 50 turns take some 5 ms, at 0.1 ms for a connection; more would let a flood of connections keep the requests waiting.
 */
const MAX_TURNS_DELAYED = 50

/** `rawPacket` is what arrived last (https://nodejs.org/api/http.html#event-clienterror). */
type ClientError = NodeJS.ErrnoException & { rawPacket?: Buffer }

/** Answers a request. Returns the number of its calls: several of a batch. */
type OnRequest = (req: IncomingMessage, res: RecordedResponse) => number

/** What hears of each request: observe/telemetry.ts. */
export interface Observer {
  /** A request begins. */
  begin(record: RequestRecord): void
  /** A request is over: its answer was sent, or the client has closed the connection. */
  end(res: RecordedResponse): void
  /** The server rejects a request before the app, or what is none, of a `protocol` that it knows. Returns its new id. */
  refuse(status: number, ipAddress: string | undefined, protocol?: string): string
}

export class HttpServer {
  /** Node's server, which does not listen yet. */
  readonly server: Server<typeof IncomingMessage, typeof RecordedResponse>
  readonly #onRequest: OnRequest
  readonly #observer: Observer
  readonly #memory = new ClientMemory()
  readonly #connections = new Set<Connection>()
  /** The requests that have arrived and are not served yet, by their responses. */
  readonly #arrived: RecordedResponse[] = []
  /** Whether a connection was accepted since the latest turn. */
  #hasAccepted = false
  /** The turns for which new connections have delayed the requests that have arrived. */
  #turnsDelayed = 0
  #isStopping = false

  /**
   * `onRequest` answers a request. A client has `keepAliveTimeout` milliseconds to send the next request, and to
   * read the next bytes of an answer.
   */
  constructor(onRequest: OnRequest, observer: Observer, keepAliveTimeout: number) {
    this.#onRequest = onRequest
    this.#observer = observer
    this.server = http.createServer({
      ServerResponse: RecordedResponse,
      headersTimeout: HEAD_TIMEOUT,
      requestTimeout: REQUEST_TIMEOUT,
      keepAliveTimeout,
      connectionsCheckingInterval: TIMEOUT_INTERVAL,
      maxHeaderSize: MAX_HEADERS,
      // Of several headers Host or Authorization, Node keeps the first one otherwise, and a proxy may have read another.
      joinDuplicateHeaders: true,
      requireHostHeader: false, // a missing Host gets an Error as its body: see checkHost
    })
    // A client that closes its side first still gets its answer. Node does not document this property.
    Object.assign(this.server, { httpAllowHalfOpen: true })
    this.server.maxHeadersCount = MAX_HEADER_COUNT
    // An answer that is being made may take longer, as the database allows.
    this.server.setTimeout(keepAliveTimeout, (socket: Socket) => {
      const { current } = connectionOf(socket)
      if (!current || current.headersSent) socket.destroy()
    })
    const accept = this.#accept.bind(this)
    this.server
      .on('connection', (socket: Socket) => this.#connect(socket))
      .on('request', accept)
      .on('checkContinue', accept) // readBody sends 100 Continue
      .on('checkExpectation', accept) // RFC 9110, section 10.1.1: a server may ignore other values
      .on('connect', ({ socket }: IncomingMessage) =>
        this.#refuse(connectionOf(socket), NO_CONNECT),
      )
      // The sockets of a server without TLS are those of node:net.
      .on('clientError', (error, socket) => this.#onClientError(error, socket as Socket))
  }

  #connect(socket: Socket): void {
    const connection = new Connection(socket, this.#memory)
    this.#hasAccepted = true
    this.#connections.add(connection)
    socket.once('close', () => this.#connections.delete(connection))
  }

  #accept(req: IncomingMessage, res: RecordedResponse): void {
    const connection = connectionOf(req.socket)
    if (!connection.isIdle) {
      connection.drop(req)
      return
    }
    // After an Upgrade header, Node drops the rest of the packet: the next request would lack bytes.
    connection.begin(res, this.#isStopping || req.headers.upgrade !== undefined)
    this.#observer.begin(res.record)
    res.on('close', () => this.#end(connection, res))
    if (req.httpVersionMajor !== 1) {
      this.#refuse(connection, NOT_HTTP)
      return
    }
    // One turn later, for two reasons: Node has then read the rest of the packet (a body, or a mistake in
    // it), and requests that arrive together are served together, so that their calls can share statements.
    if (this.#arrived.push(res) === 1) setImmediate(this.#serve)
  }

  /** Serves the requests that have arrived, in portions. */
  readonly #serve = (): void => {
    // A turn in which much is served, and the database answers, takes long: each new connection would wait for one.
    if (this.#hasAccepted && this.#turnsDelayed < MAX_TURNS_DELAYED) this.#turnsDelayed++
    else this.#servePortion()
    this.#hasAccepted = false
    if (this.#arrived.length > 0) setImmediate(this.#serve)
  }

  #servePortion(): void {
    this.#turnsDelayed = 0
    let calls = 0
    while (calls < PORTION) {
      const res = this.#arrived.shift()
      if (!res) return
      // What followed in the packet may have been refused meanwhile.
      if (!res.headersSent && !res.destroyed) calls += this.#onRequest(res.req, res)
    }
  }

  /** The answer was sent, or the connection is closed. */
  #end(connection: Connection, res: RecordedResponse): void {
    this.#observer.end(res)
    connection.over(res.req, this.#isStopping)
  }

  #onClientError({ code, rawPacket }: ClientError, socket: Socket): void {
    // Browsers and pools open connections in advance: one without a request ends in silence.
    if (socket.destroyed || socket.bytesRead === 0) return void socket.destroy()
    const overflow = () => (code === 'HPE_HEADER_OVERFLOW' ? problem('headersTooLarge') : MALFORMED)
    const error = code === 'ERR_HTTP_REQUEST_TIMEOUT' ? problem('timeout') : overflow()
    this.#refuse(connectionOf(socket), error, protocolOf(rawPacket))
  }

  #refuse(connection: Connection, error: Problem, protocol?: string): void {
    const { socket, current, isIdle } = connection
    // Node itself ends an idle connection whose client has ended its side.
    if (socket.writableEnded) return
    const body = JSON.stringify(error.refusal)
    if (isIdle) {
      const id = this.#observer.refuse(error.status, socket.remoteAddress, protocol)
      socket.write(rawAnswer(error.status, body, id))
    }
    connection.endAfterAnswer()
    if (current && !current.req.complete) send(current, error.status, jsonHeaders, body)
  }

  /**
   * Accepts no more connections, closes each after its answer, and resolves when all are closed. After
   * `patience` milliseconds, a request that has not arrived in full gets 408.
   */
  async stop(patience: number): Promise<void> {
    this.#isStopping = true
    const closed = new Promise((resolve) => this.server.once('close', resolve))
    // Node's own close() of http would cut answers that are still being read.
    NetServer.prototype.close.call(this.server)
    await Promise.race([closed, wait(Math.min(ON_THE_WAY, patience))])
    for (const connection of this.#connections) if (connection.isQuiet) connection.socket.destroy()
    const timer = setTimeout(() => {
      for (const connection of this.#connections) {
        if (!connection.current?.req.complete) this.#refuse(connection, problem('timeout'))
      }
    }, patience)
    await closed
    clearTimeout(timer)
  }
}

/** Returns the text of an error response, for a socket without a request that is closed after it. */
function rawAnswer(status: number, body: string, requestId: string): string {
  const length = String(Buffer.byteLength(body))
  const own = ['X-Request-Id', requestId, 'Content-Length', length, 'Connection', 'close']
  const headers = [...jsonHeaders, 'Date', new Date().toUTCString(), ...own]
  // Each name, then its value.
  const lines = headers.map((text, at) => (at % 2 ? `${text}\r\n` : `${text}: `))
  return `HTTP/1.1 ${status} ${http.STATUS_CODES[status]}\r\n${lines.join('')}\r\n${body}`
}

const MALFORMED = new Problem('BAD_REQUEST', 'The request is not well-formed HTTP')
const NOT_HTTP = new Problem('BAD_REQUEST', 'The request must be one of HTTP/1.1 or HTTP/1.0')
const NO_CONNECT = new Problem('METHOD_NOT_SUPPORTED', 'CONNECT is not supported')
