/** The pool of connections to a MySQL server: limits, checks of idle connections, and their end. */
import type { Socket } from 'node:net'
import {
  type Connection,
  createPool,
  type Pool,
  type PoolConnection,
  type PoolOptions,
} from 'mysql2'
import type { Deadline } from '../../deadline.ts'
import type { PoolUsage } from '../../engine.ts'
import { DatabaseUnavailableError } from '../../errors.ts'
import { createSemaphore } from './semaphore.ts'
import type { Server } from './variables.ts'

/** Maximum number of connections. */
const MAX_CONNECTIONS = 10

/** Maximum number of connections that write: while all writes wait for a lock, reads continue. */
const MAX_WRITERS = 6

/** Maximum number of callers that wait for a connection. */
const MAX_WAITING = 1_000

/**
 * Milliseconds of silence after which TCP probes the server; after ten seconds more without a reply the
 * connection is lost: https://nodejs.org/api/net.html#socketsetkeepaliveenable-initialdelay
 */
const KEEP_ALIVE_DELAY = 10_000

/** Milliseconds after which an idle connection is closed, before a router or load balancer drops it. */
const IDLE_TIMEOUT = 30_000

/** Milliseconds that a connection has to answer a ping. */
const PING_TIMEOUT = 500

/** Milliseconds in use after which a connection may hang, and idle connections with it. */
const HANG_TIMEOUT = 500

/** A connection of the pool. All times are those of performance.now(). */
export interface Pooled {
  readonly connection: PoolConnection
  readonly openedAt: number
  /** When it was last known to work. */
  workedAt: number
  /** Its use: when it began, and the function that ends it; undefined while it is idle. */
  use: { since: number; release: () => void } | undefined
  /** Whether it works, while it is pinged. */
  check: Promise<boolean> | undefined
  hasEnded: boolean
  /** The server, once the session is set up. */
  server: Server | undefined
}

export class MysqlPool {
  readonly #pool: Pool
  readonly #usage: PoolUsage
  readonly #waitToUse = createSemaphore(MAX_CONNECTIONS, MAX_WAITING)
  readonly #waitToWrite = createSemaphore(MAX_WRITERS, MAX_WAITING)
  /** All connections that are open, or in use. */
  readonly #connections = new Map<PoolConnection, Pooled>()

  /** Called when no connection is left. */
  #onEmpty: (() => void) | undefined

  constructor(options: PoolOptions, usage: PoolUsage = { used: 0, waiting: 0 }) {
    this.#usage = usage
    this.#pool = createPool({
      ...options,
      connectionLimit: MAX_CONNECTIONS,
      enableKeepAlive: true,
      keepAliveInitialDelay: KEEP_ALIVE_DELAY,
      // mysql2 closes idle connections only if this is less than the limit.
      maxIdle: MAX_CONNECTIONS - 1,
      idleTimeout: IDLE_TIMEOUT,
      gracefulEnd: true,
    })
    this.#pool.on('connection', (connection) => this.#add(connection))
  }

  /**
   * Returns a connection that works, as far as is known without a ping for each use. Throws
   * DatabaseUnavailableError, or the reason of the deadline.
   */
  async take(deadline: Deadline, isWriting: boolean): Promise<Pooled> {
    this.#usage.waiting++
    const permits: (() => void)[] = []
    const release = () => {
      for (const permit of permits) permit()
    }
    try {
      if (isWriting) permits.push(await this.#waitToWrite(deadline))
      permits.push(await this.#waitToUse(deadline))
      for (;;) {
        const connection = await this.#next(deadline)
        const pooled = this.#connections.get(connection)
        if (!pooled) continue // it ended in the meantime
        if (this.#mayHang(pooled)) this.checkIdle()
        if (pooled.check) {
          const works = await deadline.race(pooled.check).catch((reason) => {
            connection.release()
            throw reason
          })
          if (!works) continue
        }
        pooled.use = { since: performance.now(), release }
        this.#usage.used++
        return pooled
      }
    } catch (error) {
      release()
      throw error
    } finally {
      this.#usage.waiting--
    }
  }

  giveBack(pooled: Pooled): void {
    pooled.connection.release()
    this.#endUse(pooled)
  }

  /** Closes a connection at once, without a message to the server, which may be unreachable. */
  drop(pooled: Pooled): void {
    pooled.hasEnded = true
    pooled.connection.destroy()
    socketOf(pooled.connection).destroy()
    this.#endUse(pooled)
  }

  /** Pings all idle connections, because another one hangs or was lost; closes those that fail. */
  checkIdle(): void {
    for (const pooled of this.#connections.values()) {
      if (!pooled.use) pooled.check ??= this.#ping(pooled)
    }
  }

  /** Closes all connections. Never throws, because a connection that is lost is closed as well. */
  async end(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    // mysql2 waits for each connection, also for one that is dropped in the meantime.
    this.#onEmpty = resolve
    this.#pool.end(() => resolve())
    await promise
    // A server that hangs does not close its side, and would keep this process alive.
    for (const connection of this.#connections.keys()) socketOf(connection).destroySoon()
  }

  #add(connection: PoolConnection): void {
    const now = performance.now()
    const pooled: Pooled = {
      connection,
      openedAt: now,
      workedAt: now,
      use: undefined,
      check: undefined,
      hasEnded: false,
      server: undefined,
    }
    this.#connections.set(connection, pooled)
    const onEnd = () => {
      if (pooled.hasEnded) return
      pooled.hasEnded = true
      if (!pooled.use) this.#forget(connection)
      this.checkIdle()
    }
    connection.on('end', onEnd).on('error', onEnd)
  }

  #endUse(pooled: Pooled): void {
    if (pooled.hasEnded) this.#forget(pooled.connection)
    if (!pooled.use) return
    this.#usage.used--
    pooled.use.release()
    pooled.use = undefined
    pooled.workedAt = performance.now()
  }

  #forget(connection: PoolConnection): void {
    this.#connections.delete(connection)
    if (this.#connections.size === 0) this.#onEmpty?.()
  }

  #next(deadline: Deadline): Promise<PoolConnection> {
    const { promise, resolve, reject } = Promise.withResolvers<PoolConnection>()
    const removeListener = deadline.onGiveUp(reject)
    this.#pool.getConnection((error, connection) => {
      removeListener()
      if (error) reject(new DatabaseUnavailableError(error, true))
      else if (deadline.reason) connection.release()
      else resolve(connection)
    })
    return promise
  }

  /** Whether another connection is in use for long, and began after this one was known to work. */
  #mayHang({ workedAt }: Pooled): boolean {
    const latest = performance.now() - HANG_TIMEOUT
    for (const { use } of this.#connections.values()) {
      if (use && use.since < latest && workedAt < use.since) return true
    }
    return false
  }

  async #ping(pooled: Pooled): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<boolean>()
    // After a pause of the process, the answer may have arrived: it is read before the immediate.
    const timer = setTimeout(() => setImmediate(resolve, false), PING_TIMEOUT)
    pooled.connection.ping((error) => resolve(!error))
    const works = await promise
    clearTimeout(timer)
    pooled.check = undefined
    pooled.workedAt = performance.now()
    if (!works) this.drop(pooled)
    return works
  }
}

/** Returns the socket of a connection, whose own `destroy` closes only one direction. */
export function socketOf(connection: Connection): Socket {
  // mysql2 does not declare it.
  return (connection as unknown as { stream: Socket }).stream
}
