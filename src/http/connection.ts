/** One connection: its requests are served one after another, and nothing runs behind a last answer. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { Backlog } from './backlog.ts'
import { hasBody } from './request.ts'
import { later } from './turns.ts'

/** Milliseconds that a client has to take a last answer and to close. */
const FAREWELL = 1_000

/** A request with its answer. */
interface Exchange {
  req: IncomingMessage
  res: ServerResponse
}

/** What the connections of one process share. */
export interface Shared {
  serve: (req: IncomingMessage, res: ServerResponse) => void
  /** Requests that wait behind one that is being answered. */
  readAhead: Backlog
  /** Bytes of answers that sockets have not taken. */
  unsent: Backlog
}

export function shared(serve: Shared['serve']): Shared {
  return { serve, readAhead: new Backlog(4_096), unsent: new Backlog(32 * 1024 * 1024) }
}

/**
 * The state of a connection.
 * - `open`: requests are accepted.
 * - `last`: what was accepted is answered, then the connection is closed; nothing more is accepted.
 * - `over`: nothing is accepted and nothing is answered any more.
 */
type State = 'open' | 'last' | 'over'

export class Connection {
  readonly #socket: Duplex
  readonly #shared: Shared
  #state: State = 'open'
  /** The request that is being answered, until the socket has taken its answer. */
  #current: Exchange | undefined
  /** What was parsed meanwhile: Node parses all requests of a packet at once. */
  readonly #waiting: Exchange[] = []
  /** Nothing more is read: the connection will be closed, and what still comes concerns nobody. */
  #isDeaf = false
  /** The address of the latest request, or of the one that is arriving, as far as it is known. */
  target: string | undefined
  /** The latest request that was accepted. */
  #latest: IncomingMessage | undefined
  /** Whether the current request was given to the app. */
  #isServed = false

  constructor(socket: Duplex, common: Shared, target: string | undefined) {
    this.target = target
    this.#socket = socket
    this.#shared = common
    // Node resumes the socket whenever a request has arrived whole or its body is read.
    socket.on('resume', () => this.#mayRead || socket.pause())
    // An error that nobody listens to would end the process, and Node lets go of some sockets.
    socket.once('close', () => this.destroy()).on('error', () => this.destroy())
    // Node closes with this after a last answer. A client that is still sending would be answered
    // by a reset, which takes the answer from it too (RFC 9112, section 9.6): so only this side is
    // closed, and the other one a moment later.
    Object.assign(socket, { destroySoon: () => this.#sayFarewell() })
  }

  /** A request has come. It is served when those before it have their answers. */
  accept(req: IncomingMessage, res: ServerResponse): void {
    if (this.#state !== 'open') {
      this.#stopReading()
      return
    }
    this.target = req.url
    this.#latest = req
    // RFC 9112, section 9.3; and what follows an offer to upgrade has lost bytes: Node drops what
    // came in the same packet.
    if (!res.shouldKeepAlive || req.httpVersion === '1.0' || req.headers.upgrade !== undefined) {
      this.#state = 'last'
      res.shouldKeepAlive = false
    }
    const exchange = { req, res }
    if (this.#current) {
      this.#waiting.push(exchange)
      this.#shared.readAhead.set(this, this.#waiting.length)
      this.#socket.pause()
    } else this.#begin(exchange)
  }

  /**
   * What comes next cannot be understood, or did not come in time: nothing more is accepted. Gives
   * true when an error may be written to the socket itself, the answer to a request that has not
   * arrived whole when the error is to be written to that, and false when an answer is due
   * that the error would be mistaken for.
   */
  refuse(): boolean | Exchange {
    this.#stopReading()
    if (this.#state === 'over') return false
    const wasOpen = this.#state === 'open'
    this.#state = 'last'
    if (!this.#current) return wasOpen
    const { req, res } = this.#waiting.at(-1) ?? this.#current
    if (!res.headersSent) {
      res.shouldKeepAlive = false
      if (!req.complete && req === this.#current.req) return !this.#isServed || this.#current
    }
    return false
  }

  /** Ends at once, whatever is due. */
  destroy(): void {
    this.#state = 'over'
    this.#waiting.length = 0
    this.#shared.readAhead.delete(this)
    this.#shared.unsent.delete(this)
    this.#socket.destroy()
  }

  /** Whether what cannot be understood is part of the request to `target`, not of one behind it. */
  get isArriving(): boolean {
    return !this.#latest?.complete
  }

  /** Whether a request has begun whose body has not arrived whole. */
  get isInBody(): boolean {
    return this.#latest !== undefined && !this.#latest.complete
  }

  get #mayRead(): boolean {
    return !this.#isDeaf && this.#waiting.length === 0
  }

  #stopReading(): void {
    this.#isDeaf = true
    this.#socket.pause()
  }

  #begin(exchange: Exchange): void {
    const { req, res } = exchange
    this.#current = exchange
    this.#isServed = false
    res.on('prefinish', () => this.#written(exchange)) // Node says so within end()
    res.on('finish', () => this.#taken())
    res.on('close', () => this.#current === exchange && this.destroy())
    if (!hasBody(req)) {
      this.#serve(exchange)
      return
    }
    // An answer that is given before the body has arrived is the last one: what is left of the body
    // is not read. So what has arrived in the same packet is parsed first.
    setImmediate(() => {
      if (!req.complete) this.#closeUnlessRead(exchange)
      this.#serve(exchange)
    })
  }

  #serve({ req, res }: Exchange): void {
    if (this.#state === 'over') return
    this.#isServed = true
    this.#shared.serve(req, res)
  }

  #closeUnlessRead({ req, res }: Exchange): void {
    const { shouldKeepAlive } = res
    res.shouldKeepAlive = false
    req.once('end', () => {
      if (this.#state === 'open') res.shouldKeepAlive = shouldKeepAlive
    })
  }

  /** The whole answer has been handed to the socket. */
  #written({ req, res }: Exchange): void {
    const isUnread = hasBody(req) && !req.complete
    if (isUnread || !res.shouldKeepAlive) {
      this.#state = 'last'
      this.#waiting.length = 0 // what was sent behind a last answer is not done
      this.#shared.readAhead.delete(this)
    }
    if (isUnread) this.#stopReading()
    this.#shared.unsent.set(this, this.#socket.writableLength)
  }

  /** The socket has taken the whole answer. */
  #taken(): void {
    this.#shared.unsent.delete(this)
    this.#current = this.#waiting.shift()
    if (this.#current) {
      const next = this.#current
      this.#shared.readAhead.set(this, this.#waiting.length)
      // A packet full of requests must not keep other connections waiting.
      later(() => this.#state !== 'over' && this.#begin(next))
      if (this.#mayRead) this.#socket.resume()
    } else if (this.#state === 'last') this.#sayFarewell()
  }

  #sayFarewell(): void {
    if (this.#state === 'over') return
    this.#state = 'over'
    this.#socket.end()
    const timer = setTimeout(() => this.#socket.destroy(), FAREWELL).unref()
    this.#socket.once('close', () => clearTimeout(timer))
  }

  /** Writes a last answer to the socket itself, where no request is there to be answered. */
  end(text: string): void {
    this.#socket.write(text)
    this.#sayFarewell()
  }
}
