/** One connection: it carries one request at a time, and nothing runs behind a last answer. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Backlog } from '../backlog.ts'
import { isUnread } from '../request.ts'

/** Milliseconds that a client has to take a last answer and to close. */
const FAREWELL = 1_000

/** Milliseconds between two interim answers to a client that has closed its side. */
const STILL_THERE = 500

/** Bytes that Node holds for a request that came before the answer to another one, as measured. */
const EARLY_REQUEST = 6_000

/** A request with its answer. */
interface Exchange {
  req: IncomingMessage
  res: ServerResponse
  /** Whether it was given to the app. */
  isServed: boolean
}

/** What the connections of one process share. */
export interface Shared {
  serve: (req: IncomingMessage, res: ServerResponse) => void
  /** Bytes that connections hold: answers that sockets have not taken, and requests too early. */
  held: Backlog
}

/**
 * The state of a connection.
 * - `open`: requests are accepted.
 * - `last`: the current request is answered, then the connection is closed.
 * - `over`: nothing is accepted and nothing is answered any more.
 */
type State = 'open' | 'last' | 'over'

export class Connection {
  readonly #socket: Socket
  readonly #shared: Shared
  #state: State = 'open'
  /** The request that is being answered, until the socket has taken its answer. */
  #current: Exchange | undefined
  /** The latest request that was accepted. */
  latest: IncomingMessage | undefined
  /** Requests that came too early. They are not done, but Node holds them. */
  #early = 0
  /** Bytes that had been read when the latest answer was taken. */
  #heard = 0
  /** Nothing more is read: the connection will be closed. */
  #isDeaf = false

  /** Must be made after Node's own listeners were added, whose last word it changes. */
  constructor(socket: Socket, shared: Shared) {
    this.#socket = socket
    this.#shared = shared
    // Node resumes the socket whenever a request has arrived whole or its body is read.
    socket.on('resume', () => this.#isDeaf && socket.pause())
    // An error without a listener would end the process, and Node lets go of some sockets.
    socket.once('close', () => this.destroy()).on('error', () => this.destroy())
    socket.once('end', () => this.#onHalfClosed())
    // Node closes with this after a last answer. A client that is still sending would be answered
    // by a reset, which takes the answer from it too (RFC 9112, section 9.6): so only this side is
    // closed, and the other one a moment later.
    Object.assign(socket, { destroySoon: () => this.#sayFarewell() })
  }

  /**
   * Accepts a request that has come. One that comes before the answer to another is not done, and
   * that answer is the last (RFC 9112, section 9.3.2).
   */
  accept(req: IncomingMessage, res: ServerResponse): void {
    if (this.#current || this.#state !== 'open') {
      this.#early++
      this.#endAfterCurrent()
      this.#stopReading()
      this.#hold()
      return
    }
    this.latest = req
    const exchange = { req, res, isServed: false }
    this.#current = exchange
    // RFC 9112, section 9.3; and what follows an offer to upgrade has lost bytes: Node drops what
    // came in the same packet.
    if (!res.shouldKeepAlive || req.httpVersion === '1.0' || req.headers.upgrade !== undefined) {
      this.#endAfterCurrent()
    }
    res.on('prefinish', () => this.#onWritten(exchange)) // Node says so within end()
    res.on('finish', () => this.#onTaken())
    res.on('close', () => this.#current === exchange && this.destroy())
    // What came in the same packet is parsed first: a body that is read, or a request too early.
    setImmediate(() => {
      if (this.#state === 'over') return
      exchange.isServed = true
      this.#shared.serve(req, res)
    })
  }

  /**
   * Accepts nothing more: what comes next cannot be understood, or did not come in time. Returns
   * where the error is to be written: to this connection, to the answer of a request that has not
   * arrived whole, or nowhere when it would be mistaken for the answer that is due.
   */
  refuse(): Connection | ServerResponse | undefined {
    this.#stopReading()
    if (this.#state === 'over') return undefined
    this.#endAfterCurrent()
    if (!this.#current) return this
    const { req, res, isServed } = this.#current
    if (req.complete || res.headersSent) return undefined
    return isServed ? res : this
  }

  /** Writes a last answer to the socket itself, where no answer is due. */
  end(text: string): void {
    this.#socket.write(text)
    this.#sayFarewell()
  }

  /** Ends at once, whatever is due. */
  destroy(): void {
    this.#state = 'over'
    this.#shared.held.delete(this)
    this.#socket.destroy()
  }

  /** Ends at once, unless an answer is due or being sent, or a request has begun. */
  closeIfIdle(): void {
    const hasBegun = this.#socket.bytesRead > this.#heard
    if (this.#state === 'open' && !this.#current && !hasBegun) this.destroy()
  }

  /** Whether a request has begun whose body has not arrived whole. */
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
    this.#isDeaf = true
    this.#socket.pause()
  }

  #hold(): void {
    if (this.#socket.destroyed) return
    this.#shared.held.set(this, this.#socket.writableLength + this.#early * EARLY_REQUEST)
  }

  /**
   * The client has closed its side, and may wait for the answer (RFC 9112, section 9.6). One that has
   * gone altogether sends nothing else, but resets the connection when something is sent to it: an
   * interim answer, which every client of HTTP/1.1 must be able to read (RFC 9110, section 15.2).
   */
  #onHalfClosed(): void {
    if (this.#state === 'over' || !this.#current) return
    this.#endAfterCurrent()
    const { req, res } = this.#current
    if (req.httpVersion !== '1.1') return
    // The first is answered by the reset, the next one fails by it.
    const timer = setInterval(() => res.headersSent || res.writeProcessing(), STILL_THERE).unref()
    res.once('close', () => clearInterval(timer))
  }

  /** The whole answer has been handed to the socket. */
  #onWritten({ req, res }: Exchange): void {
    if (isUnread(req)) this.#stopReading()
    if (isUnread(req) || !res.shouldKeepAlive) this.#endAfterCurrent()
    this.#hold()
  }

  /** The socket has taken the whole answer. */
  #onTaken(): void {
    this.#current = undefined
    this.#heard = this.#socket.bytesRead
    this.#hold()
    if (this.#state === 'last') this.#sayFarewell()
  }

  #sayFarewell(): void {
    if (this.#state === 'over') return
    this.#state = 'over'
    this.#socket.end()
    const timer = setTimeout(() => this.#socket.destroy(), FAREWELL).unref()
    this.#socket.once('close', () => clearTimeout(timer))
  }
}
