/** The pool of connections to a MySQL server. */
import { setImmediate } from 'node:timers/promises'
import type { RowDataPacket } from 'mysql2'
import { Deadline } from '../../deadline.ts'
import type { PoolUsage } from '../../engine.ts'
import { DatabaseUnavailableError, OverloadedError } from '../../errors.ts'
import { type Address, open, type Session, type Use } from './session.ts'

/** The part of the connections that may write: while all writes wait for a lock, reads continue. */
const WRITERS = 0.6

/** Maximum number of callers that wait for a connection. */
const MAX_WAITING = 1_000

/** Milliseconds after which an idle connection is closed, before a router or load balancer drops it. */
const IDLE_TIMEOUT = 30_000

/** Milliseconds after which an idle connection, which may have been lost in silence, is pinged before its next use. */
const PING_AFTER = 500
/** Milliseconds that the ping may take. */
const PING_TIMEOUT = 500

interface Waiter extends PromiseWithResolvers<Session> {
  use: Use
}

export class MysqlPool {
  readonly #address: Address
  readonly #usage: PoolUsage
  readonly #size: number
  /** The number of connections in use that may write. */
  #writing = 0
  /** The idle connections, in the order of their last use: the first one was idle for the longest time. */
  readonly #idle: Session[] = []
  /** The callers, in the order of their arrival. */
  readonly #waiters = new Set<Waiter>()
  /** Whether a connection is being opened: one at a time, so that a server that hangs has only one. */
  #isOpening = false
  readonly #end = new AbortController()
  /** Resolves after the end, when no connection is in use any more. */
  readonly #unused = Promise.withResolvers<void>()
  readonly #sweep = setInterval(() => this.#closeOld(), IDLE_TIMEOUT / 10).unref()

  /** Keeps the numbers of `usage` current. */
  constructor(address: Address, size: number, usage: PoolUsage) {
    this.#address = address
    this.#usage = usage
    this.#size = size
  }

  /** Returns a connection that works; if one just has, without a promise. Throws DatabaseUnavailableError, or the reason of the deadline. */
  take(use: Use, deadline: Deadline): Session | Promise<Session> {
    const last = this.#idle.at(-1)
    const isReady = last && !deadline.reason && isFresh(last)
    return (isReady && this.#takeIdle(use)) || this.#takeChecked(use, deadline)
  }

  async #takeChecked(use: Use, deadline: Deadline): Promise<Session> {
    for (;;) {
      if (deadline.reason) throw deadline.reason
      const session = this.#takeIdle(use) ?? (await this.#wait(use, deadline))
      if (isFresh(session)) return session
      await deadline.race(this.#check(session))
    }
  }

  /** Takes a connection back, which is closed if its socket is destroyed. */
  giveBack(session: Session): void {
    session.workedAt = performance.now()
    if (session.use === 'write') this.#writing--
    if (session.use !== 'kill') this.#usage.used--
    session.use = undefined
    if (!session.socket.destroyed) this.#keep(session)
    if (this.#end.signal.aborted && this.#usage.used === 0) this.#unused.resolve()
    this.#serve()
  }

  /**
   * Ends what the session of a closed connection still does, over another connection to its server. Never
   * throws: an unreachable server ends the session by itself.
   */
  async kill({ connection: { threadId }, server, openedAt }: Session): Promise<void> {
    using deadline = new Deadline(this.#address.timeout)
    const age = performance.now() - openedAt
    const control = await this.#takeChecked('kill', deadline).catch(() => undefined)
    if (!control) return
    const query = async (sql: string) =>
      (await deadline.race(control.connection.promise().query<RowDataPacket[]>(sql)))[0]
    try {
      // A load balancer may have chosen another server.
      const isSame = control.server.name === server.name
      const [uptime] = isSame ? await query(`show global status like 'Uptime'`) : []
      // A server that was restarted may have given the number to another client.
      if (Number(uptime?.Value) * 1_000 > age) await query(`kill ${threadId}`)
    } catch (error) {
      // ER_NO_SUCH_THREAD: the session has ended meanwhile.
      if ((error as { errno?: number }).errno !== 1094) control.socket.destroy()
    }
    this.giveBack(control)
  }

  /** Closes all connections, each after its statement. No caller gets one any more. Never throws. */
  async end(): Promise<void> {
    this.#end.abort(new Error('The pool has ended'))
    clearInterval(this.#sweep)
    for (const session of this.#idle.splice(0)) close(session)
    if (this.#usage.used > 0) await this.#unused.promise
  }

  #mayUse(use: Use): boolean {
    if (this.#usage.used >= this.#size) return use === 'kill'
    return use !== 'write' || this.#writing < Math.max(1, Math.floor(this.#size * WRITERS))
  }

  #takeIdle(use: Use): Session | undefined {
    const session = this.#mayUse(use) ? this.#idle.pop() : undefined
    if (!session) return undefined
    session.use = use
    if (use !== 'kill') this.#usage.used++
    if (use === 'write') this.#writing++
    return session
  }

  /** Waits for a connection that is given back, or for a new one. */
  async #wait(use: Use, deadline: Deadline): Promise<Session> {
    if (this.#usage.waiting >= MAX_WAITING && use !== 'kill') {
      throw new OverloadedError('Too many calls wait for a connection to the database')
    }
    const waiter: Waiter = { use, ...Promise.withResolvers() }
    this.#waiters.add(waiter)
    if (use !== 'kill') this.#usage.waiting++
    deadline.onGiveUp((reason) => {
      this.#waiters.delete(waiter)
      waiter.reject(reason)
    })
    this.#serve()
    try {
      return await waiter.promise
    } finally {
      if (use !== 'kill') this.#usage.waiting--
    }
  }

  /** Gives idle connections to the callers that may have one, and opens another if there are too few. */
  #serve(): void {
    for (const waiter of this.#waiters) {
      if (!this.#mayUse(waiter.use)) continue
      const session = this.#takeIdle(waiter.use)
      if (!session) {
        if (!this.#isOpening) void this.#open()
        return
      }
      this.#waiters.delete(waiter)
      waiter.resolve(session)
    }
  }

  /** Opens a connection. If it fails, so do all callers that wait for one. Never throws. */
  async #open(): Promise<void> {
    this.#isOpening = true
    try {
      this.#end.signal.throwIfAborted()
      const session = await open(this.#address, this.#end.signal)
      const onEnd = () => {
        session.socket.destroy()
        const index = this.#idle.indexOf(session)
        if (index >= 0) this.#idle.splice(index, 1)
      }
      session.connection.on('end', onEnd).on('error', onEnd)
      this.#keep(session)
    } catch (error) {
      for (const waiter of this.#waiters) {
        if (!this.#mayUse(waiter.use)) continue
        this.#waiters.delete(waiter)
        waiter.reject(new DatabaseUnavailableError(error, true))
      }
    }
    this.#isOpening = false
    this.#serve()
  }

  #closeOld(): void {
    const latest = performance.now() - IDLE_TIMEOUT
    const isOld = ({ workedAt }: Session) => workedAt < latest
    for (const session of this.#idle.splice(0, this.#idle.filter(isOld).length)) close(session)
  }

  #keep(session: Session): void {
    if (this.#end.signal.aborted) close(session)
    else this.#idle.push(session)
  }

  /** Offers a connection again if it answers. If not, closes all idle ones, which were lost with it. */
  async #check(session: Session): Promise<void> {
    // After a pause of the process, the end of an idle session may have arrived. It is read before this
    // turn; mysql2 writes a line to stderr if it arrives as the answer to another command.
    await setImmediate()
    if (!session.socket.destroyed) {
      using deadline = new Deadline(PING_TIMEOUT)
      await deadline.race(session.connection.promise().ping()).catch(() => {
        for (const { socket } of [session, ...this.#idle.splice(0)]) socket.destroy()
      })
    }
    this.giveBack(session)
  }
}

const isFresh = ({ workedAt }: Session) => performance.now() - workedAt < PING_AFTER

/** Closes a connection with a message to the server, and does not wait for a reply. */
function close({ connection, socket }: Session): void {
  connection.end()
  socket.destroySoon()
}
