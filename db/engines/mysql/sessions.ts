/** The sessions of a MySQL server: when they are opened, checked, replaced and ended. */
import { setImmediate } from 'node:timers/promises'
import type { RowDataPacket } from 'mysql2'
import { Deadline } from '../../deadline.ts'
import { DatabaseUnavailableError } from '../../errors.ts'
import type { Demand, Sessions } from '../../session.ts'
import { Openings } from './openings.ts'
import { type Address, type MysqlSession, open } from './session.ts'
import { UnfitSessionError } from './set-up.ts'

/** Milliseconds after which an idle session is ended, before a router or load balancer drops it. */
const IDLE_TIMEOUT = 30_000

/**
 * Milliseconds after which an idle session, which may have been lost in silence, is pinged before its next use. After
 * fewer, calls of a busy service would wait for pings; after more, more calls would be sent to a lost session, and wait
 * for their deadline.
 */
const PING_AFTER = 500

/** Milliseconds that the ping may take: a call that waits for a lost session gets another one then. */
const PING_TIMEOUT = 500

/**
 * Milliseconds after which a session is replaced, and the part by which it may be less, so that those of one start are
 * not replaced together. By then the name of the server may lead to another one, and the tables and rights of the
 * same one may have changed.
 */
const MAX_AGE = 5 * 60_000
const AGE_SPREAD = 0.2

/** Milliseconds between two looks at the idle sessions and the old ones. */
const SWEEP_INTERVAL = 3_000

/** Milliseconds between two ends of all sessions because a server said that it may not write. */
const UNFIT_INTERVAL = 1_000

/** Milliseconds after which calls that wait look again, at the latest. */
const LOOK_AGAIN = 1_000

/** Sessions beyond those of the queue: for readiness, and to end statements of others. */
const SPARE = 2

export class MysqlSessions implements Sessions {
  readonly #demand: Demand
  readonly #address: Address
  /** Maximum number of sessions. */
  readonly #maxOpen: number
  /** The sessions, and those of them that are idle: the first one was idle for the longest time. */
  #open: MysqlSession[] = []
  readonly #idle: MysqlSession[] = []
  readonly #openings = new Openings()
  /** The number of idle sessions that are being pinged. */
  #checking = 0
  /** Sessions that were opened before are retired. */
  #validFrom = Number.NEGATIVE_INFINITY
  /** What waits for a session to kill another one. */
  #killers: ((session: MysqlSession | undefined) => void)[] = []
  #timer: NodeJS.Timeout | undefined
  readonly #closing = new AbortController()
  readonly #sweep = setInterval(() => this.#look(), SWEEP_INTERVAL).unref()

  constructor(address: Address, size: number, demand: Demand) {
    this.#demand = demand
    this.#address = address
    this.#maxOpen = size + SPARE
  }

  take(): MysqlSession | undefined {
    const last = this.#idle.at(-1)
    return last && performance.now() - last.workedAt < PING_AFTER ? this.#idle.pop() : undefined
  }

  prepare(count: number): void {
    const wanted = count + Math.min(this.#killers.length, SPARE)
    let coming = this.#checking + this.#openings.coming
    for (; coming < wanted && this.#idle.length > 0; coming++) {
      void this.#check(this.#idle.pop() as MysqlSession) // there is one
    }
    for (; coming < wanted && this.#mayOpen(); coming++) void this.#openOne()
    const { refusal } = this.#openings
    if (refusal && coming === 0 && this.#open.length === 0) this.#fail(refusal)
    else this.#lookAgain()
  }

  giveBack(session: MysqlSession): void {
    if (session.socket.destroyed) return
    const isOver = session.isRetired || this.#closing.signal.aborted
    if (isOver || this.#open.length > this.#maxOpen) this.#close(session)
    else if (this.#killers.length > 0) this.#killers.shift()?.(session)
    else this.#idle.push(session)
  }

  close(): void {
    this.#closing.abort(new Error('The service has closed the database'))
    clearInterval(this.#sweep)
    clearTimeout(this.#timer)
    for (const session of [...this.#idle]) this.#close(session)
    for (const killer of this.#killers.splice(0)) killer(undefined)
  }

  /**
   * Ends what the session of a closed connection still does, over another session of its server. Never
   * throws: an unreachable server ends the session by itself.
   */
  async kill({ connection: { threadId }, server, openedAt }: MysqlSession): Promise<void> {
    using deadline = new Deadline(this.#address.timeout)
    const age = performance.now() - openedAt
    const control = this.take() ?? (await this.#waitToKill(deadline))
    if (!control) return
    const query = async (sql: string) =>
      (await deadline.race(control.connection.promise().query<RowDataPacket[]>(sql)))[0]
    try {
      // A load balancer may have chosen another server.
      const isSame = control.server.name === server.name
      const [uptime] = isSame ? await query(`show global status like 'Uptime'`) : []
      // A server that was restarted may have given the number to another client.
      if (Number(uptime?.Value) * 1_000 > age) await query(`kill ${threadId}`)
      control.workedAt = performance.now()
    } catch (error) {
      // ER_NO_SUCH_THREAD: the session has ended meanwhile.
      if ((error as { errno?: number }).errno !== 1094) control.socket.destroy()
    }
    this.giveBack(control)
    this.#demand.decide()
  }

  /** Waits for a session before the queue does. Undefined if none can be had until the deadline. */
  async #waitToKill(deadline: Deadline): Promise<MysqlSession | undefined> {
    const { promise, resolve } = Promise.withResolvers<MysqlSession | undefined>()
    this.#killers.push(resolve)
    deadline.add({
      giveUp: () => {
        this.#killers = this.#killers.filter((other) => other !== resolve)
        resolve(undefined)
      },
    })
    this.prepare(0)
    return await promise
  }

  /** A server said that it may not write: the name may lead to another one now. */
  onUnfit(): void {
    if (performance.now() - this.#validFrom > UNFIT_INTERVAL) this.#retireAll()
  }

  /** Retires the sessions that are open, or those with this server. */
  #retireAll(server?: string): void {
    if (!server) this.#validFrom = performance.now()
    for (const session of [...this.#open]) {
      if (!server || session.server.name === server) this.#retire(session)
    }
  }

  /** Closes a session: now if it is idle, else after its use. */
  #retire(session: MysqlSession): void {
    session.isRetired = true
    if (this.#idle.includes(session)) this.#close(session)
  }

  /** Whether another session may be opened now. */
  #mayOpen(): boolean {
    if (this.#closing.signal.aborted || performance.now() < this.#openings.nextAt) return false
    return this.#open.length + this.#openings.count < this.#maxOpen
  }

  /** If calls wait then, looks again once another session may be opened, or one that is being opened is silent. */
  #lookAgain(): void {
    clearTimeout(this.#timer)
    if (this.#closing.signal.aborted) return
    const pause = this.#openings.nextAt - performance.now()
    const look = () => {
      this.#demand.decide()
      if (this.#killers.length > 0) this.prepare(0)
    }
    this.#timer = setTimeout(look, pause > 0 ? Math.ceil(pause) : LOOK_AGAIN).unref()
  }

  /** Opens a session. Never throws. */
  async #openOne(): Promise<MysqlSession | undefined> {
    const opening = this.#openings.begin()
    try {
      const session = await open(this.#address, this, this.#closing.signal, () => {
        this.#openings.answered(opening)
        this.#demand.decide() // others may be opened side by side
      })
      this.#openings.ended(opening)
      session.endsAt = performance.now() + MAX_AGE * (1 - AGE_SPREAD * Math.random())
      session.isRetired = session.openedAt < this.#validFrom
      const onClose = () => this.#forget(session)
      session.connection.on('end', onClose).on('error', onClose)
      session.socket.on('close', onClose)
      this.#open.push(session)
      this.giveBack(session)
      this.#demand.decide()
      return session
    } catch (error) {
      this.#openings.ended(opening)
      // What is wrong with the server now was right when the others were opened.
      if (error instanceof UnfitSessionError && error.server) this.#retireAll(error.server)
      const besideOthers = this.#open.length > 0 || this.#openings.coming > 0
      this.#openings.failed(error, besideOthers)
      if (besideOthers) this.#lookAgain()
      else this.#fail(error)
      return undefined
    }
  }

  /** No session can be had now. */
  #fail(error: unknown): void {
    for (const killer of this.#killers.splice(0)) killer(undefined)
    this.#demand.fail(new DatabaseUnavailableError(error, true))
  }

  /** Offers an idle session again if it answers. If not, closes all idle ones, which were lost with it. */
  async #check(session: MysqlSession): Promise<void> {
    this.#checking++
    // After a pause of the process, the end of an idle session may have arrived. It is read before this
    // turn; mysql2 writes a line to stderr if it arrives as the answer to another command.
    await setImmediate()
    if (!session.socket.destroyed) {
      using deadline = new Deadline(PING_TIMEOUT)
      await deadline.race(session.connection.promise().ping()).then(
        () => {
          session.workedAt = performance.now()
        },
        () => {
          for (const { socket } of [session, ...this.#idle.splice(0)]) socket.destroy()
        },
      )
    }
    this.#checking--
    this.giveBack(session)
    this.#demand.decide()
  }

  /** Closes what was idle for long, and replaces an old session, one at a time. */
  #look(): void {
    const now = performance.now()
    for (const session of [...this.#idle]) {
      if (now - session.workedAt > IDLE_TIMEOUT) this.#close(session)
    }
    const old = this.#open.find(({ endsAt, isRetired }) => !isRetired && endsAt < now)
    // One at a time: while a server is silent, the old session is the better one.
    if (!old || !this.#openings.isEmpty || !this.#mayOpen()) return
    void this.#openOne().then((opened) => opened && this.#retire(old))
  }

  /** Closes a session with a message to the server, and does not wait for a reply. */
  #close(session: MysqlSession): void {
    session.connection.end()
    session.socket.destroySoon()
    this.#forget(session)
  }

  #forget(session: MysqlSession): void {
    this.#open = this.#open.filter((other) => other !== session)
    const index = this.#idle.indexOf(session)
    if (index >= 0) this.#idle.splice(index, 1)
  }
}
