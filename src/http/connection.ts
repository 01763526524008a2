/** A connection of a client: one request at a time, and what it makes the process hold. */
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { type ClientMemory, headSize } from './memory.ts'
import type { RecordedResponse } from './record.ts'

/** Milliseconds that a client has to read the last answer of its connection, as RFC 9112, section 9.6, asks; it names no time. */
const CLOSE_TIMEOUT = 1_000

/** Bytes that Node holds for a pipelined request, beside its head, as measured. */
const PIPELINED_REQUEST = 6_000

/** Requests that a client may send before the answer to its first one. The service serves none of them, so any number near this will do. */
const MAX_PIPELINED = 100

const CONNECTION = Symbol('connection')

type Connected = Socket & { [CONNECTION]?: Connection }

/** Returns the connection of a request, or of the socket of a server. */
export const connectionOf = (socket: Connected): Connection => socket[CONNECTION] as Connection

export class Connection {
  readonly socket: Socket
  readonly #memory: ClientMemory
  #current: RecordedResponse | undefined
  /** Whether it takes no further request, and closes after the current answer. */
  #isEnding = false
  /** Bytes that it holds for its client, beside pipelined requests: a body that arrives, or an answer that is not read. */
  #heldBytes = 0
  /** Requests behind that of the current answer, and the bytes that they take. */
  #pipelined = 0
  #pipelinedBytes = 0
  /** Bytes that had been read when the last answer was sent. */
  #bytesBefore = 0
  /** Bytes of the request that waits, as far as they count. */
  #requestBytes = 0

  /** `memory` is that of all connections of the server. */
  constructor(socket: Connected, memory: ClientMemory) {
    this.socket = socket
    this.#memory = memory
    socket[CONNECTION] = this
    void socket.remoteAddress // kept for the log, which reads it after the socket has closed
    socket.on('error', () => {}) // Node removes its own listener after CONNECT
    // Node calls this after the last answer, and would destroy a socket whose client still sends.
    Object.assign(socket, { destroySoon: () => this.#close() })
    socket.once('close', () => {
      this.#pipelinedBytes = 0
      this.hold(0)
    })
  }

  /** Whether it waits for a request. */
  get isIdle(): boolean {
    return !this.#current && !this.#isEnding
  }

  /** The answer that the client has not taken in full. */
  get current(): RecordedResponse | undefined {
    return this.#current
  }

  /** Whether nothing has been read since the last answer. */
  get isQuiet(): boolean {
    return !this.#current && this.socket.bytesRead === this.#bytesBefore
  }

  /** Sets the bytes that it holds for its client, beside pipelined requests: see ClientMemory. */
  hold(bytes: number): void {
    this.#heldBytes = bytes
    this.#memory.hold(this.socket, this.#pipelinedBytes + bytes)
  }

  /**
   * Sets the bytes of the request that waits, until its answer is over, or `holdAnswer` holds that: see ClientMemory.
   * Returns false, and changes nothing, if all requests would hold too much.
   */
  countRequest(bytes: number): boolean {
    const counted = this.#current ? bytes : 0 // a client that has left waits no longer
    if (!this.#memory.countRequests(counted - this.#requestBytes)) return false
    this.#requestBytes = counted
    return true
  }

  /** Holds what is not sent of the answer to a request, and the head of that, until the answer is over. */
  holdAnswer(req: IncomingMessage): void {
    this.countRequest(0) // it waits no longer
    this.hold(this.socket.writableLength + headSize(req))
  }

  /** Begins the answer to a request. */
  begin(res: RecordedResponse, isLast: boolean): void {
    this.#current = res
    if (isLast) this.endAfterAnswer()
  }

  /**
   * Does not do a request that has arrived before the answer to the one before it was over: that answer closes the
   * connection (RFC 9112, section 9.3.2).
   */
  drop(req: IncomingMessage): void {
    this.endAfterAnswer()
    this.#pipelinedBytes += PIPELINED_REQUEST + headSize(req)
    if (++this.#pipelined > MAX_PIPELINED) this.socket.destroy()
    else this.hold(this.#heldBytes)
  }

  /** The answer was sent, or the connection is closed. */
  over({ complete }: IncomingMessage, isStopping: boolean): void {
    this.#current = undefined
    if (this.#heldBytes > 0) this.hold(0)
    if (this.#requestBytes > 0) this.countRequest(0)
    this.#bytesBefore = this.socket.bytesRead
    // No request can follow one that has not arrived in full.
    if (this.#isEnding || isStopping || !complete) this.#close()
  }

  /** Closes after the current answer, which tells the client if its head is not sent; without one, at once. */
  endAfterAnswer(): void {
    this.#isEnding = true
    if (!this.#current) this.#close()
    else if (!this.#current.headersSent) this.#current.shouldKeepAlive = false
  }

  /** Closes this side. The client's side has a moment: a reset could take the last answer from it. */
  #close(): void {
    const { socket } = this
    this.#isEnding = true
    if (socket.destroyed || socket.writableEnded) return
    socket.end()
    const timer = setTimeout(() => socket.destroy(), CLOSE_TIMEOUT).unref()
    socket.once('close', () => clearTimeout(timer))
  }
}
