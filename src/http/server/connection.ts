/** One connection: it carries one request at a time, and none after the last response. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { Backlog } from '../backlog.ts'
import { isUnread } from '../request.ts'

/** Milliseconds between the last response and the end of the connection, for the client to read it. */
const CLOSE_TIMEOUT = 1_000

/** Milliseconds between two interim responses to a client that has closed its side. */
const PROBE_INTERVAL = 500

/** Bytes that Node holds for a pipelined request, as measured. */
const PIPELINED_REQUEST = 6_000

/** Milliseconds that requests wait at most while connections are accepted. */
const MAX_ACCEPTING = 5

/** A request and its response. */
interface Exchange {
  req: IncomingMessage
  res: ServerResponse
  /** Whether the app has the request. */
  isServed: boolean
}

/** Passes a request to the app. */
type Serve = (req: IncomingMessage, res: ServerResponse) => void

/** The unsent bytes of responses, and pipelined requests: together at most 32 MiB. */
const held = new Backlog(32 * 1024 * 1024)

/**
 * The state of a connection.
 * - `open`: it accepts requests.
 * - `last`: it closes after the response to the current request.
 * - `over`: it accepts no request and sends no response.
 */
type State = 'open' | 'last' | 'over'

/** The functions to run after parsing, one for each request. */
const parsed: (() => void)[] = []

/** Whether a connection was accepted since requests last waited for that. */
let hasAccepted = false

/**
 * Runs a function after Node has parsed the rest of the packet: the body, or a pipelined request. The
 * requests of one turn of the event loop run together, so that their calls can share queries.
 */
function afterParsing(run: () => void): void {
  if (parsed.push(run) === 1) setImmediate(runParsed)
}

/**
 * Node accepts one connection in a turn. If each turn handled hundreds of requests, new connections
 * would wait for seconds, which neither the log nor the metrics would show. So the requests wait for
 * turns without requests, in which Node accepts the connections that wait.
 */
function runParsed(since = performance.now()): void {
  if (hasAccepted && performance.now() - since < MAX_ACCEPTING) {
    hasAccepted = false
    setImmediate(runParsed, since)
    return
  }
  for (const run of parsed.splice(0)) queueMicrotask(run)
}

export class Connection {
  readonly #socket: Socket
  readonly #serve: Serve
  readonly #onUnserved: () => void
  #state: State = 'open'
  /** The exchange whose response the socket has not sent in full. */
  #current: Exchange | undefined
  /** The latest accepted request. */
  latest: IncomingMessage | undefined
  /** Number of pipelined requests. None of them is handled, but Node holds them. */
  #pipelined = 0
  /** Bytes that the socket had read when the latest response was sent. */
  #bytesReadBefore = 0
  /** Whether the socket stays paused until the connection closes. */
  #isPaused = false

  /**
   * Must be called after Node has added its own listeners to the socket, because it replaces some.
   * `onUnserved` is called when the connection is destroyed before the app has its request.
   */
  constructor(socket: Socket, serve: Serve, onUnserved: () => void) {
    this.#socket = socket
    this.#serve = serve
    this.#onUnserved = onUnserved
    hasAccepted = true
    // Node resumes the socket after each request, and when its body is read.
    socket.on('resume', () => this.#isPaused && socket.pause())
    // An error without a listener would end the process, and Node removes its own from some sockets.
    socket.once('close', () => this.destroy()).on('error', () => this.destroy())
    socket.once('end', () => this.#onHalfClosed())
    // Node calls this after the last response. It would destroy the socket while the client is still
    // sending. The client would then receive a reset, and lose the response (RFC 9112, section 9.6).
    // So only this side closes now, and the other side a moment later.
    Object.assign(socket, { destroySoon: () => this.#close() })
  }

  /**
   * Accepts a request. A request that arrives before the response to another is not handled, and that
   * response closes the connection (RFC 9112, section 9.3.2).
   */
  accept(req: IncomingMessage, res: ServerResponse): void {
    if (this.#current || this.#state !== 'open') {
      this.#pipelined++
      this.#endAfterCurrent()
      this.#stopReading()
      this.#hold()
      return
    }
    this.latest = req
    const exchange = { req, res, isServed: false }
    this.#current = exchange
    // RFC 9112, section 9.3. After an Upgrade header Node drops the rest of the packet, so the next
    // request would lack bytes.
    if (!res.shouldKeepAlive || req.httpVersion === '1.0' || req.headers.upgrade !== undefined) {
      this.#endAfterCurrent()
    }
    res.on('prefinish', () => this.#onWritten(exchange)) // Node emits it within end()
    res.on('finish', () => this.#onSent())
    res.on('close', () => this.#current === exchange && this.destroy())
    afterParsing(() => {
      if (this.#state === 'over') return
      exchange.isServed = true
      this.#serve(req, res)
    })
  }

  /**
   * Accepts no more requests, after one that is malformed or timed out. Returns where to write the
   * error. This is the response if a request's body has not arrived in full, and otherwise this
   * connection. It is undefined if the client would take the error for the response to another request.
   */
  refuse(): Connection | ServerResponse | undefined {
    this.#stopReading()
    if (this.#state === 'over') return undefined
    this.#endAfterCurrent()
    if (!this.#current) return this
    const { req, res, isServed } = this.#current
    if (req.complete) return undefined
    return isServed ? res : this
  }

  /** Writes the last response to the socket itself, and closes the connection. */
  end(text: string): void {
    this.#socket.write(text)
    this.#close()
  }

  /** Destroys the connection, even in the middle of a response. */
  destroy(): void {
    if (this.#state !== 'over' && this.#current?.isServed === false) this.#onUnserved()
    this.#state = 'over'
    held.delete(this)
    this.#socket.destroy()
  }

  /** Destroys the connection if it is idle: no request has begun, and the last response is sent in full. */
  closeIfIdle(): void {
    const hasBegun = this.#socket.bytesRead > this.#bytesReadBefore
    if (this.#state === 'open' && !this.#current && !hasBegun) this.destroy()
  }

  /** Whether a part of a request's body has yet to arrive. */
  get isInBody(): boolean {
    return this.latest !== undefined && !this.latest.complete
  }

  #endAfterCurrent(): void {
    if (this.#state === 'open') this.#state = 'last'
    if (this.#current && !this.#current.res.headersSent) {
      this.#current.res.shouldKeepAlive = false
    }
  }

  #stopReading(): void {
    this.#isPaused = true
    this.#socket.pause()
  }

  #hold(): void {
    if (this.#socket.destroyed) return
    const pipelined = this.#pipelined * PIPELINED_REQUEST
    held.set(this, this.#socket.writableLength + pipelined)
  }

  /**
   * Handles a client that closes its side. It may still read the response (RFC 9112, section 9.6), or
   * may have exited. Only a write can distinguish the two, because the second client resets the
   * connection. So interim responses are sent, which every client of HTTP/1.1 must be able to parse
   * (RFC 9110, section 15.2).
   */
  #onHalfClosed(): void {
    if (this.#state === 'over' || !this.#current) return
    this.#endAfterCurrent()
    const { req, res } = this.#current
    if (req.httpVersion !== '1.1') return
    // The first write causes the reset, and the second one fails because of it.
    const probe = () => res.headersSent || res.writeProcessing()
    const timer = setInterval(probe, PROBE_INTERVAL).unref()
    res.once('close', () => clearInterval(timer))
  }

  /** Handles a response that the socket holds in full. */
  #onWritten({ req, res }: Exchange): void {
    if (isUnread(req)) this.#stopReading()
    if (isUnread(req) || !res.shouldKeepAlive) this.#endAfterCurrent()
    this.#hold()
  }

  /** Handles a response that the socket has sent in full. */
  #onSent(): void {
    this.#current = undefined
    this.#bytesReadBefore = this.#socket.bytesRead
    this.#hold()
    if (this.#state === 'last') this.#close()
  }

  /** Closes this side of the connection, and destroys the socket if the client does not close its own. */
  #close(): void {
    if (this.#state === 'over') return
    this.#state = 'over'
    this.#socket.end()
    const timer = setTimeout(() => this.#socket.destroy(), CLOSE_TIMEOUT).unref()
    this.#socket.once('close', () => clearTimeout(timer))
  }
}
