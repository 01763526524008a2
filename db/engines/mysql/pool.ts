/** The pool of connections to a MySQL server. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { RowDataPacket } from 'mysql2'
import { Deadline } from '../../deadline.ts'
import type { PoolUsage } from '../../engine.ts'
import { DatabaseUnavailableError } from '../../errors.ts'
import { type Address, type Opened, open } from './open.ts'
import { createSemaphore } from './semaphore.ts'

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

/** The query for the seconds since the start of the server. */
const UPTIME = `show global status like 'Uptime'`

const UNKNOWN_SESSION = 1094 // ER_NO_SUCH_THREAD

/** A connection of the pool. */
export interface Pooled extends Opened {
  /** When it was last known to work. */
  workedAt: number
  /** Whether it was lost, or is being closed: no statement can be sent. */
  hasEnded: boolean
  /** Closes it when it is idle for too long. */
  readonly idleTimer: NodeJS.Timeout
  /** Ends its use; undefined while it is idle. */
  release: (() => void) | undefined
}

interface Waiter {
  resolve(pooled: Pooled): void
  reject(error: Error): void
}

/** The settings of a pool, beside the server. */
export interface PoolOptions {
  /** Maximum number of connections. */
  size: number
  /** The pool keeps these numbers current. */
  usage: PoolUsage
}

export class MysqlPool {
  readonly #address: Address
  readonly #usage: PoolUsage
  readonly #waitToUse: ReturnType<typeof createSemaphore>
  readonly #waitToWrite: ReturnType<typeof createSemaphore>
  /** The idle connections, in the order of their last use. */
  readonly #idle: Pooled[] = []
  /** The callers that found no idle connection, in the order of their arrival. */
  readonly #waiters = new Set<Waiter>()
  /** Whether a connection is being opened: one at a time, so that a server that hangs has only one. */
  #isOpening = false
  readonly #end = new AbortController()
  /** Called when no connection is in use any more. */
  #onUnused: (() => void) | undefined

  constructor(address: Address, { size, usage }: PoolOptions) {
    this.#address = address
    this.#usage = usage
    this.#waitToUse = createSemaphore(size, MAX_WAITING)
    this.#waitToWrite = createSemaphore(Math.max(1, Math.floor(size * WRITERS)), MAX_WAITING)
  }

  /** Returns a connection that works. Throws DatabaseUnavailableError, or the reason of the deadline. */
  async take(deadline: Deadline, isWriting: boolean): Promise<Pooled> {
    this.#usage.waiting++
    const permits: (() => void)[] = []
    const release = () => {
      for (const permit of permits) permit()
    }
    try {
      if (isWriting) permits.push(await this.#waitToWrite(deadline))
      permits.push(await this.#waitToUse(deadline))
      const pooled = await this.#next(deadline)
      pooled.release = release
      this.#usage.used++
      return pooled
    } catch (error) {
      release()
      throw error
    } finally {
      this.#usage.waiting--
    }
  }

  giveBack(pooled: Pooled): void {
    pooled.workedAt = performance.now()
    if (pooled.hasEnded) pooled.socket.destroy()
    else this.#offer(pooled)
    this.#endUse(pooled)
  }

  /** Closes a connection at once. */
  drop(pooled: Pooled): void {
    pooled.hasEnded = true
    pooled.socket.destroy()
    this.#endUse(pooled)
  }

  /**
   * Ends what the session of a dropped connection still does, over another connection to its server. Never
   * throws: an unreachable server ends the session by itself.
   */
  async kill({ connection: { threadId }, server, openedAt }: Pooled): Promise<void> {
    using deadline = new Deadline(this.#address.timeout)
    const age = performance.now() - openedAt
    const control = await this.#next(deadline).catch(() => undefined)
    if (!control) return
    const query = async (sql: string) =>
      (await deadline.race(control.connection.promise().query<RowDataPacket[]>(sql)))[0]
    try {
      // A load balancer may have chosen another server.
      const isSame = control.server.name === server.name
      const [uptime] = isSame ? await query(UPTIME) : []
      // A server that was restarted may have given the number to another client.
      if (Number(uptime?.Value) * 1_000 > age) await query(`kill ${threadId}`)
      this.giveBack(control)
    } catch (error) {
      // The session may have ended meanwhile.
      if ((error as { errno?: number }).errno === UNKNOWN_SESSION) this.giveBack(control)
      else this.drop(control)
    }
  }

  /** Closes all connections, each after its statement. Never throws. */
  async end(): Promise<void> {
    this.#end.abort()
    this.#rejectWaiters(new Error('The pool has ended'))
    for (const pooled of this.#idle.splice(0)) close(pooled)
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#onUnused = resolve
    if (this.#usage.used > 0) await promise
  }

  /** Returns an idle connection that answers, or a new one. */
  async #next(deadline: Deadline): Promise<Pooled> {
    for (;;) {
      if (deadline.reason) throw deadline.reason
      const pooled = this.#idle.pop() ?? (await this.#wait(deadline))
      if (performance.now() - pooled.workedAt < PING_AFTER) return pooled
      await deadline.race(this.#check(pooled))
    }
  }

  /** Waits for a connection that is given back, or for a new one. */
  async #wait(deadline: Deadline): Promise<Pooled> {
    const { promise, resolve, reject } = Promise.withResolvers<Pooled>()
    const waiter = { resolve, reject }
    this.#waiters.add(waiter)
    const removeListener = deadline.onGiveUp((reason) => {
      this.#waiters.delete(waiter)
      reject(reason)
    })
    if (!this.#isOpening) void this.#openForWaiters()
    try {
      return await promise
    } finally {
      removeListener()
    }
  }

  /** Opens connections while callers wait. If one fails, all of them fail. Never throws. */
  async #openForWaiters(): Promise<void> {
    this.#isOpening = true
    while (this.#waiters.size > 0) {
      try {
        this.#end.signal.throwIfAborted()
        this.#offer(this.#add(await open(this.#address, this.#end.signal)))
      } catch (error) {
        this.#rejectWaiters(error)
      }
    }
    this.#isOpening = false
  }

  #rejectWaiters(cause: unknown): void {
    for (const { reject } of this.#waiters) reject(new DatabaseUnavailableError(cause, true))
    this.#waiters.clear()
  }

  #add(opened: Opened): Pooled {
    const remove = () => {
      const index = this.#idle.indexOf(pooled)
      if (index >= 0) this.#idle.splice(index, 1)
      return index >= 0
    }
    const idleTimer = setTimeout(() => remove() && close(pooled), IDLE_TIMEOUT).unref()
    const workedAt = performance.now()
    const pooled: Pooled = { ...opened, workedAt, hasEnded: false, idleTimer, release: undefined }
    const onEnd = () => {
      pooled.hasEnded = true
      if (remove()) pooled.socket.destroy()
    }
    pooled.connection.on('end', onEnd).on('error', onEnd)
    return pooled
  }

  /** Gives a connection to the caller that has waited longest, or keeps it for the next one. */
  #offer(pooled: Pooled): void {
    const [waiter] = this.#waiters
    if (this.#end.signal.aborted) close(pooled)
    else if (waiter) {
      this.#waiters.delete(waiter)
      waiter.resolve(pooled)
    } else {
      pooled.idleTimer.refresh()
      this.#idle.push(pooled)
    }
  }

  #endUse(pooled: Pooled): void {
    if (!pooled.release) return
    this.#usage.used--
    pooled.release()
    pooled.release = undefined
    if (this.#usage.used === 0) this.#onUnused?.()
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
