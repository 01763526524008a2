/** The pool of connections to a MySQL server. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { RowDataPacket } from 'mysql2'
import { Deadline } from '../../deadline.ts'
import type { PoolUsage } from '../../engine.ts'
import { DatabaseUnavailableError, OverloadedError } from '../../errors.ts'
import { type Address, type Opened, open } from './session.ts'

/** The part of the connections that may write: while all writes wait for a lock, reads continue. */
const WRITERS = 0.6

/** Maximum number of callers that wait for a connection. */
const MAX_WAITING = 1_000

/** Milliseconds after which an idle connection is closed, before a router or load balancer drops it. */
const IDLE_TIMEOUT = 30_000

/**
 * Milliseconds in which an idle connection may have been lost in silence, so it is pinged before its next
 * use, and those that the ping may take. A busy connection is never pinged.
 */
const PING_AFTER = 500
const PING_TIMEOUT = 500

const UNKNOWN_SESSION = 1094 // ER_NO_SUCH_THREAD

/** A connection of the pool. */
export interface Pooled extends Opened {
  /** When it was last known to work. */
  workedAt: number
  /** Whether it was lost, or is being closed: no statement can be sent. */
  hasEnded: boolean
  /** What it is used for; undefined while it is idle. */
  use: Use | undefined
}

/** A use for a statement that reads or that may write; or for the kill of a session, beyond the limits. */
type Use = 'read' | 'write' | 'kill'

interface Waiter {
  use: Use
  resolve(pooled: Pooled): void
  reject(error: Error): void
}

export class MysqlPool {
  readonly #address: Address
  readonly #usage: PoolUsage
  readonly #size: number
  #writing = 0
  /** The idle connections, in the order of their last use: the first one was idle for the longest time. */
  readonly #idle: Pooled[] = []
  /** The callers, in the order of their arrival. */
  readonly #waiters = new Set<Waiter>()
  /** Whether a connection is being opened: one at a time, so that a server that hangs has only one. */
  #isOpening = false
  readonly #end = new AbortController()
  /** Called when no connection is in use any more. */
  #onUnused: (() => void) | undefined
  readonly #sweep = setInterval(() => this.#closeOld(), IDLE_TIMEOUT / 10).unref()

  /** Keeps the numbers of `usage` current. */
  constructor(address: Address, size: number, usage: PoolUsage) {
    this.#address = address
    this.#usage = usage
    this.#size = size
  }

  /** Returns a connection that works. Throws DatabaseUnavailableError, or the reason of the deadline. */
  async take(use: Use, deadline: Deadline): Promise<Pooled> {
    for (;;) {
      if (deadline.reason) throw deadline.reason
      const pooled = this.#takeIdle(use) ?? (await this.#wait(use, deadline))
      if (performance.now() - pooled.workedAt < PING_AFTER) return pooled
      await deadline.race(this.#check(pooled))
    }
  }

  giveBack(pooled: Pooled): void {
    const { use } = pooled
    pooled.use = undefined
    pooled.workedAt = performance.now()
    if (pooled.hasEnded) pooled.socket.destroy()
    else this.#keep(pooled)
    if (use === 'read' || use === 'write') this.#usage.used--
    if (use === 'write') this.#writing--
    if (this.#usage.used === 0) this.#onUnused?.()
    this.#serve()
  }

  /** Closes a connection at once. */
  drop(pooled: Pooled): void {
    pooled.hasEnded = true
    this.giveBack(pooled)
  }

  /**
   * Ends what the session of a dropped connection still does, over another connection to its server. Never
   * throws: an unreachable server ends the session by itself.
   */
  async kill({ connection: { threadId }, server, openedAt }: Pooled): Promise<void> {
    using deadline = new Deadline(this.#address.timeout)
    const age = performance.now() - openedAt
    const control = await this.take('kill', deadline).catch(() => undefined)
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
      // The session may have ended meanwhile.
      control.hasEnded ||= (error as { errno?: number }).errno !== UNKNOWN_SESSION
    }
    this.giveBack(control)
  }

  /** Closes all connections, each after its statement. Never throws. */
  async end(): Promise<void> {
    this.#end.abort()
    clearInterval(this.#sweep)
    this.#reject([...this.#waiters], new Error('The pool has ended'))
    for (const pooled of this.#idle.splice(0)) close(pooled)
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#onUnused = resolve
    if (this.#usage.used > 0) await promise
  }

  /** Returns how many more connections may have this use. */
  #free(use: Use): number {
    if (use === 'kill') return Number.POSITIVE_INFINITY
    const free = this.#size - this.#usage.used
    if (use === 'read') return free
    return Math.min(free, Math.max(1, Math.floor(this.#size * WRITERS)) - this.#writing)
  }

  #takeIdle(use: Use): Pooled | undefined {
    const pooled = this.#free(use) > 0 ? this.#idle.pop() : undefined
    if (pooled) {
      pooled.use = use
      if (use !== 'kill') this.#usage.used++
      if (use === 'write') this.#writing++
    }
    return pooled
  }

  /** Waits for a connection that is given back, or for a new one. */
  async #wait(use: Use, deadline: Deadline): Promise<Pooled> {
    if (this.#waiters.size >= MAX_WAITING + this.#free(use)) {
      throw new OverloadedError('Too many calls wait for a connection to the database')
    }
    const { promise, resolve, reject } = Promise.withResolvers<Pooled>()
    const waiter = { use, resolve, reject }
    this.#waiters.add(waiter)
    if (use !== 'kill') this.#usage.waiting++
    deadline.onGiveUp((reason) => {
      this.#waiters.delete(waiter)
      reject(reason)
    })
    this.#serve()
    try {
      return await promise
    } finally {
      if (use !== 'kill') this.#usage.waiting--
    }
  }

  /** Gives idle connections to the callers that may have one, and opens another if there are too few. */
  #serve(): void {
    for (const waiter of this.#waiters) {
      if (this.#free(waiter.use) <= 0) continue
      const pooled = this.#takeIdle(waiter.use)
      if (!pooled) {
        if (!this.#isOpening) void this.#open()
        return
      }
      this.#waiters.delete(waiter)
      waiter.resolve(pooled)
    }
  }

  /** Opens a connection. If it fails, so do all callers that wait for one. Never throws. */
  async #open(): Promise<void> {
    this.#isOpening = true
    try {
      this.#end.signal.throwIfAborted()
      const opened = await open(this.#address, this.#end.signal)
      const workedAt = performance.now()
      const pooled: Pooled = { ...opened, workedAt, hasEnded: false, use: undefined }
      const onEnd = () => {
        pooled.hasEnded = true
        const index = this.#idle.indexOf(pooled)
        if (index >= 0) this.#idle.splice(index, 1)[0]?.socket.destroy()
      }
      pooled.connection.on('end', onEnd).on('error', onEnd)
      this.#keep(pooled)
    } catch (error) {
      const waiting = [...this.#waiters].filter(({ use }) => this.#free(use) > 0)
      this.#reject(waiting, error)
    }
    this.#isOpening = false
    this.#serve()
  }

  #reject(waiters: Waiter[], cause: unknown): void {
    for (const waiter of waiters) {
      this.#waiters.delete(waiter)
      waiter.reject(new DatabaseUnavailableError(cause, true))
    }
  }

  #closeOld(): void {
    const latest = performance.now() - IDLE_TIMEOUT
    const isOld = ({ workedAt }: Pooled) => workedAt < latest
    for (const pooled of this.#idle.splice(0, this.#idle.filter(isOld).length)) close(pooled)
  }

  #keep(pooled: Pooled): void {
    if (this.#end.signal.aborted) close(pooled)
    else this.#idle.push(pooled)
  }

  /** Offers a connection again if it answers. If not, closes all idle ones, which were lost with it. */
  async #check(pooled: Pooled): Promise<void> {
    // After a pause of the process, the end of an idle session may have arrived. It is read before this
    // turn; mysql2 writes a line to stderr if it arrives as the answer to another command.
    await nextTurn()
    if (pooled.hasEnded) return this.drop(pooled)
    const { promise, resolve } = Promise.withResolvers<boolean>()
    // After a pause of the process, the answer may have arrived: it is read before the immediate.
    const timer = setTimeout(() => setImmediate(resolve, false), PING_TIMEOUT)
    pooled.connection.ping((error) => resolve(!error))
    const answers = await promise
    clearTimeout(timer)
    if (!answers) for (const lost of [pooled, ...this.#idle.splice(0)]) this.drop(lost)
    else this.giveBack(pooled)
  }
}

/** Closes a connection with a message to the server, and does not wait for a reply. */
function close(pooled: Pooled): void {
  pooled.hasEnded = true
  pooled.connection.end()
  pooled.socket.destroySoon()
}
