/** A connection of a client: one request at a time, and what it makes the process hold. */
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { ClientMemory } from './memory.ts'
import type { RecordedResponse } from './record.ts'
import { headSize } from './request.ts'

/** Milliseconds that a client has to read the last answer of its connection, as RFC 9112, section 9.6, asks; it names no time. */
const CLOSE_TIMEOUT = 1_000

/** Bytes that Node holds for a pipelined request, beside its head, as measured. */
const PIPELINED_REQUEST = 6_000

/** Requests that a client may send before the answer to its first one. None of them is done: any number near this does. */
const MAX_PIPELINED = 100

type State = 'idle' | 'answering' | 'last' | 'closing'
type Event = 'request' | 'lastRequest' | 'refusal' | 'answered' | 'end'

/**
 * The state of a connection after an event, by the state before it:
 *
 * - `idle`: it waits for a request.
 * - `answering`: it has an answer that the client has not taken in full.
 * - `last`: it has one, and closes after it.
 * - `closing`: it waits for the client to end its side.
 */
const STATES: Readonly<Record<Event, Readonly<Record<State, State>>>> = {
  // The head of a request has arrived. Behind an answer that is not over, the request is not done, and the answer
  // closes the connection (RFC 9112, section 9.3.2).
  request: { idle: 'answering', answering: 'last', last: 'last', closing: 'closing' },
  // The head of a request after which the connection closes.
  lastRequest: { idle: 'last', answering: 'last', last: 'last', closing: 'closing' },
  // What has arrived is not HTTP, or has not arrived in time.
  refusal: { idle: 'closing', answering: 'last', last: 'last', closing: 'closing' },
  // The answer is over, and its request has arrived in full.
  answered: { idle: 'idle', answering: 'idle', last: 'closing', closing: 'closing' },
  // Node has sent the last answer, or an answer is over that no request can follow.
  end: { idle: 'closing', answering: 'closing', last: 'closing', closing: 'closing' },
}

const CONNECTION = Symbol('connection')

type Connected = Socket & { [CONNECTION]?: Connection }

/** Returns the connection of a request, or of the socket of a server. */
export const connectionOf = (socket: Connected): Connection => socket[CONNECTION] as Connection

export class Connection {
  readonly socket: Socket
  readonly #memory: ClientMemory
  #state: State = 'idle'
  #current: RecordedResponse | undefined
  /** Requests behind that of the current answer, and the bytes that they take. */
  #pipelined = 0
  #ofPipelined = 0
  /** Bytes that had been read when the last answer was sent. */
  #bytesBefore = 0
  /** Bytes that count of the request. */
  #ofRequest = 0

  /** `memory` is that of all connections of the server. */
  constructor(socket: Connected, memory: ClientMemory) {
    this.socket = socket
    this.#memory = memory
    socket[CONNECTION] = this
    void socket.remoteAddress // kept for the log, which reads it after the socket has closed
    socket.on('error', () => {}) // Node removes its own listener after CONNECT
    // Node calls this after the last answer, and would destroy a socket whose client still sends.
    Object.assign(socket, { destroySoon: () => this.next('end') })
    socket.once('close', () => memory.hold(socket, 0))
  }

  get state(): State {
    return this.#state
  }

  /** The answer that the client has not taken in full. */
  get current(): RecordedResponse | undefined {
    return this.#current
  }

  /** Whether nothing has been read since the last answer. */
  get isQuiet(): boolean {
    return !this.#current && this.socket.bytesRead === this.#bytesBefore
  }

  /** Sets the bytes that the connection holds for its client, beside pipelined requests: see ClientMemory. */
  hold(bytes: number): void {
    this.#memory.hold(this.socket, this.#ofPipelined + bytes)
  }

  /**
   * Sets the bytes of the request that waits, until its answer is made: see ClientMemory. Returns false, and changes
   * nothing, if all requests would hold too much.
   */
  countRequest(bytes: number): boolean {
    const counted = this.#current ? bytes : 0 // a client that has left waits no longer
    if (!this.#memory.countRequests(counted - this.#ofRequest)) return false
    this.#ofRequest = counted
    return true
  }

  /** Begins the answer to a request. */
  begin(res: RecordedResponse, isLast: boolean): void {
    this.#current = res
    this.next(isLast ? 'lastRequest' : 'request')
  }

  /** Does not do a request that has arrived before the answer to the one before it was over. */
  drop(req: IncomingMessage): void {
    this.next('request')
    this.#ofPipelined += PIPELINED_REQUEST + headSize(req)
    if (++this.#pipelined > MAX_PIPELINED) this.socket.destroy()
    else this.hold(this.socket.writableLength)
  }

  /** The answer was sent, or the connection is closed. */
  over({ complete }: IncomingMessage, isStopping: boolean): void {
    this.#current = undefined
    if (this.#ofRequest > 0) this.countRequest(0)
    this.#bytesBefore = this.socket.bytesRead
    this.next(isStopping || !complete ? 'end' : 'answered')
  }

  /**
   * Takes the connection to its next state. Entering `last` tells the client, if the head of its answer is not
   * sent; entering `closing` ends this side.
   */
  next(event: Event): void {
    this.#state = STATES[event][this.#state]
    const current = this.#current
    if (this.#state === 'last' && current && !current.headersSent) current.shouldKeepAlive = false
    if (this.#state === 'closing') this.#close()
  }

  /** Closes this side. The client's side has a moment: a reset could take the last answer from it. */
  #close(): void {
    const { socket } = this
    if (socket.destroyed || socket.writableEnded) return
    socket.end()
    const timer = setTimeout(() => socket.destroy(), CLOSE_TIMEOUT).unref()
    socket.once('close', () => clearTimeout(timer))
  }
}
