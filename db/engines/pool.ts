/** Connections to a MySQL server: which callers get one, whether it still works, and how it ends. */
import type { Socket } from 'node:net'
import {
  type Connection,
  createPool,
  type Pool,
  type PoolConnection,
  type PoolOptions,
} from 'mysql2'
import type { Deadline } from '../deadline.ts'
import { DatabaseUnavailableError, OverloadedError } from '../errors.ts'
import { places } from './places.ts'

/** How many connections a pool has at most. */
const MAX_CONNECTIONS = 10

/** How many of them may write at the same time: while all writes wait for a lock, reads go on. */
const MAX_WRITING = 6

/** How many callers may wait for a connection, and how many for a place to write. */
const MAX_WAITING = 1_000

/**
 * Milliseconds of silence after which TCP asks whether the other side is still there; it is not when it
 * says nothing for ten seconds more: https://nodejs.org/api/net.html#socketsetkeepaliveenable-initialdelay
 */
const KEEP_ALIVE = 10_000

/** Milliseconds after which an idle connection is ended: routers and balancers forget it in the end. */
const MAX_IDLE = 30_000

/** Milliseconds that a connection has to answer a ping. */
const PING_TIMEOUT = 500

/** Milliseconds in use after which a connection casts doubt on those that have been idle for longer. */
const SUSPICIOUS = 500

export interface PoolUsage {
  used: number
  waiting: number
}

interface State {
  /** When it was connected, by performance.now(), as are the other times. */
  readonly since: number
  /** When it was last seen to work. */
  worked: number
  /** When it was taken, and what gives its place back; undefined while it is idle. */
  use: { since: number; leave: () => void } | undefined
  /** Whether it works, while it is being asked. */
  check: Promise<boolean> | undefined
  hasEnded: boolean
}

export class MysqlPool {
  /** It connects when it is asked for a connection. */
  readonly #pool: Pool
  readonly #usage: PoolUsage
  readonly #writing = places(MAX_WRITING, MAX_WAITING)
  /** All connections that were made and have not ended. */
  readonly #states = new Map<PoolConnection, State>()
  /** Called when no connection is left. */
  #onEmpty: (() => void) | undefined

  constructor(options: PoolOptions, usage: PoolUsage) {
    this.#usage = usage
    this.#pool = createPool({
      ...options,
      connectionLimit: MAX_CONNECTIONS,
      queueLimit: MAX_WAITING,
      enableKeepAlive: true,
      keepAliveInitialDelay: KEEP_ALIVE,
      // mysql2 ends idle connections only where not all may be idle.
      maxIdle: MAX_CONNECTIONS - 1,
      idleTimeout: MAX_IDLE,
      gracefulEnd: true,
    })
    this.#pool.on('connection', (connection) => this.#add(connection))
  }

  /**
   * Returns a connection that works, as far as is known without asking each time. One for writing
   * waits for a place among those that write. Throws DatabaseUnavailableError, or the reason of the deadline.
   */
  async take(deadline: Deadline | undefined, isWriting: boolean): Promise<PoolConnection> {
    this.#usage.waiting++
    try {
      const leave = isWriting ? await this.#writing.take(deadline) : () => {}
      for (;;) {
        const connection = await this.#next(deadline, leave)
        const state = this.#states.get(connection)
        if (!state) continue // it has ended on the way
        if (this.#isDoubtful(state)) this.checkIdle()
        if (state.check && !(await this.#checked(connection, state.check, deadline, leave)))
          continue
        state.use = { since: performance.now(), leave }
        this.#usage.used++
        return connection
      }
    } finally {
      this.#usage.waiting--
    }
  }

  giveBack(connection: PoolConnection): void {
    const state = this.#states.get(connection)
    if (state) this.#endUse(connection, state)
    connection.release()
  }

  /** Ends a connection at once, in use or idle, without a word to the server, which may be beyond reach. */
  drop(connection: PoolConnection): void {
    const state = this.#states.get(connection)
    if (state) {
      state.hasEnded = true
      this.#endUse(connection, state)
    }
    connection.destroy()
    socketOf(connection).destroy()
  }

  /** For how many milliseconds a connection has been open; 0 when it has ended. */
  ageOf(connection: PoolConnection): number {
    const state = this.#states.get(connection)
    return state ? performance.now() - state.since : 0
  }

  /** Asks all idle connections whether they work, since another one does not; ends those that do not. */
  checkIdle(): void {
    for (const [connection, state] of this.#states) {
      if (!state.use) state.check ??= this.#check(connection, state)
    }
  }

  /** Ends all connections. It never throws: one that is lost, or not connected yet, has ended as well. */
  async end(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    // mysql2 waits for each connection, and does not hear of one that is dropped meanwhile.
    this.#onEmpty = resolve
    this.#pool.end(() => resolve())
    await promise
    // A server that hangs does not close its side, and the process would wait for it.
    for (const connection of this.#states.keys()) socketOf(connection).destroySoon()
  }

  #add(connection: PoolConnection): void {
    const since = performance.now()
    const state: State = {
      since,
      worked: since,
      use: undefined,
      check: undefined,
      hasEnded: false,
    }
    this.#states.set(connection, state)
    const onEnd = () => {
      if (state.hasEnded) return
      state.hasEnded = true
      if (!state.use) this.#forget(connection)
      this.checkIdle()
    }
    connection.on('end', onEnd).on('error', onEnd)
  }

  #endUse(connection: PoolConnection, state: State): void {
    if (state.hasEnded) this.#forget(connection)
    if (!state.use) return
    this.#usage.used--
    state.use.leave()
    state.use = undefined
    state.worked = performance.now()
  }

  #forget(connection: PoolConnection): void {
    this.#states.delete(connection)
    if (this.#states.size === 0) this.#onEmpty?.()
  }

  /** The next connection of the pool. Gives the place back when there is none in time. */
  #next(deadline: Deadline | undefined, leave: () => void): Promise<PoolConnection> {
    const { promise, resolve, reject } = Promise.withResolvers<PoolConnection>()
    let isGivenUp = false
    const forget = deadline?.onGiveUp((reason) => {
      isGivenUp = true
      reject(reason)
    })
    this.#pool.getConnection((error, connection) => {
      forget?.()
      if (isGivenUp) connection?.release()
      if (isGivenUp || error) leave()
      if (error) reject(connectionError(error))
      else resolve(connection)
    })
    return promise
  }

  /** Whether another one was taken after this one was seen to work, and has not come back for long. */
  #isDoubtful({ worked }: State): boolean {
    const latest = performance.now() - SUSPICIOUS
    for (const { use } of this.#states.values()) {
      if (use && use.since < latest && worked < use.since) return true
    }
    return false
  }

  async #checked(
    connection: PoolConnection,
    check: Promise<boolean>,
    deadline: Deadline | undefined,
    leave: () => void,
  ): Promise<boolean> {
    try {
      return await (deadline ? deadline.race(check) : check)
    } catch (error) {
      connection.release()
      leave()
      throw error
    }
  }

  async #check(connection: PoolConnection, state: State): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<boolean>()
    const timer = setTimeout(resolve, PING_TIMEOUT, false)
    connection.ping((error) => resolve(!error))
    const works = await promise
    clearTimeout(timer)
    state.check = undefined
    state.worked = performance.now()
    if (!works) this.drop(connection)
    return works
  }
}

function connectionError(error: Error): DatabaseUnavailableError {
  return error.message === 'Queue limit reached.'
    ? new OverloadedError('Too many wait for a connection to the database')
    : new DatabaseUnavailableError(error, true)
}

/** The socket of a connection, which mysql2 has and does not declare; its `destroy` only ends our side. */
export function socketOf(connection: Connection): Socket {
  return (connection as unknown as { stream: Socket }).stream
}
