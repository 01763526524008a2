/**
 * The queue of a database. A call waits for a lane, which has a session; a lane that becomes free takes along
 * the waiting calls of a line.
 *
 * | A call | begins |
 * |---|---|
 * | while the database is idle, the latest statement of its line had one call, and none has begun in this turn | at once, with the calls of the same moment |
 * | while it may have a lane | after the next turn of the event loop (`isEarly`: after this one), with the calls that arrive until then |
 * | while its line has two lanes | once one of them is free, or the line has inputs for a whole statement, or 50 ms have passed |
 * | while all lanes are in use | once one is free, in the order in which the lines began to wait |
 *
 * No call joins calls that have begun, so each call sees what was committed before it. A deadline rejects only
 * its own call. A statement is ended once the deadlines of all its calls have passed.
 */
import { type DatabaseConnection, type Kysely, type QueryResult, SelectQueryNode } from 'kysely'
import { Deadline, jointDeadline } from './deadline.ts'
import {
  BrokenDatabaseError,
  ConflictError,
  NoConsecutiveIdsError,
  OverloadedError,
} from './errors.ts'
import { refuseInTransaction } from './guard.ts'
import { Line, QueuedCall, type Use } from './line.ts'
import { type Plan, statementOf } from './plan.ts'
import { pauseAfter } from './retry.ts'
import type { Session, Sessions, Statement } from './session.ts'
import type { Tables } from './tables.ts'

/**
 * Number of lanes of a line whose calls share statements: while the database works on one statement, the
 * service answers the calls of the other. A second lane makes pages and creations with a key 3 to 7 % faster;
 * a third makes the statements so small that it costs more than it saves.
 */
const SHARED_LANES = 2

/** Maximum number of works that share a transaction. */
const MAX_WORKS = 100

/** The part of the lanes that may write: while all writes wait for a lock, reads continue. */
const WRITERS = 0.6

/** The current numbers of lanes in use, and of calls that wait for one. */
export interface Usage {
  used: number
  waiting: number
}

interface Settings {
  /** Maximum number of lanes in use. */
  size: number
  /** Maximum number of lanes in use that may write. */
  writers?: number
  /** Milliseconds that a statement without a deadline may take; unlimited by default. */
  timeout?: number | undefined
  /** The lanes keep these numbers current. */
  usage?: Usage
  /** Whether the database works in this process, which waits for it. */
  isInProcess: boolean
  /** For the lane of one session: the lanes that it is of. */
  root?: Lanes
}

/** Throws `PartialError` if the failures are those of some works, and the others can be repeated without them. */
type RunShared<Work = never> = (
  session: Session,
  works: Work[],
  deadline: Deadline,
) => Promise<unknown[]>

/** Some of several works failed, so that the transaction was rolled back with the effects of all. */
export class PartialError extends Error {
  /** The errors of the works, by their places. */
  readonly failures: Map<number, unknown>

  constructor(failures: Map<number, unknown>) {
    super('Some works of a shared transaction failed')
    this.failures = failures
  }
}

export class Lanes {
  /** What builds the statements; set once, by the function that makes the database of the lanes. */
  db!: Kysely<Tables>
  /** Runs works in one transaction, and returns their results in order; set there, too. */
  runShared: RunShared | undefined
  readonly isInProcess: boolean
  readonly timeout: number
  readonly #sessions: Sessions
  readonly #size: number
  readonly #writers: number
  readonly #usage: Usage
  readonly #root: Lanes | undefined
  /** The number of lanes in use that may write, and of those for readiness, which `#usage` leaves out. */
  #writing = 0
  #ahead = 0
  /** The lines of plans, by their kinds. */
  readonly #lines = new Map<unknown, Map<string, Line>>()
  readonly #loans: Record<Use, Line>
  readonly #works: Line
  /** The lines with waiting calls. */
  readonly #waiting: Line[] = []
  readonly #next = (): void => this.next()
  #ended: unknown
  #onUnused: (() => void) | undefined

  constructor(sessions: Sessions, settings: Settings) {
    const { size, writers, timeout, usage, isInProcess, root } = settings
    this.#sessions = sessions
    this.#size = size
    this.#writers = writers ?? Math.max(1, Math.floor(size * WRITERS))
    this.timeout = timeout ?? Number.POSITIVE_INFINITY
    this.#usage = usage ?? { used: 0, waiting: 0 }
    this.isInProcess = isInProcess
    this.#root = root
    const loans = (use: Use) => new Line(this.#next, use, 1, Number.POSITIVE_INFINITY)
    this.#loans = { read: loans('read'), write: loans('write'), ahead: loans('ahead') }
    this.#works = new Line(this.#next, 'write', MAX_WORKS, SHARED_LANES)
  }

  /**
   * Returns the output of a plan for an input. Outside a transaction there are more attempts: up to three of a
   * plan that reads, and of one that writes only after an attempt that certainly had no effect. Throws
   * DuplicateError, DatabaseUnavailableError, and the reason of the deadline.
   */
  async call<Input, Output>(
    plan: Plan<Input, Output>,
    input: Input,
    deadline: Deadline,
  ): Promise<Output> {
    const line = this.#lineOf(plan, plan.kindOf?.(input) ?? '')
    const name = plan.nameOf?.(input)
    for (let attempt = 0; ; attempt++) {
      const here = line.isSplit ? line.alone : line
      try {
        return plan.output(await this.#join(here, input, name, deadline))
      } catch (error) {
        if (this.#root) throw error // the transaction is repeated as a whole
        if (plan.isOfOne?.(error)) throw error // its statement had this input alone
        await pauseAfter(attempt, error, plan.use === 'read', deadline)
      }
    }
  }

  /** Waits for a transaction that works share, and resolves to the result of this one: see `shareTransaction`. */
  share(work: unknown, deadline: Deadline): Promise<unknown> {
    return this.#join(this.#works, work, undefined, deadline)
  }

  /** Executes one statement. Throws the errors of db/errors.ts, and the reason of the deadline. */
  async execute<Row>(statement: Statement<Row>): Promise<QueryResult<Row>> {
    using own = new Deadline(statement.deadline ? Number.POSITIVE_INFINITY : this.timeout)
    const deadline = statement.deadline ?? own
    const isRead = statement.isRead ?? SelectQueryNode.is(statement.query)
    const use = statement.isAhead ? 'ahead' : isRead ? 'read' : 'write'
    const session = await this.take(use, deadline)
    try {
      return await session.execute<Row>(statement, deadline)
    } finally {
      this.giveBack(session, use)
    }
  }

  /** Resolves to a session for this use alone, until `giveBack`. Throws as `execute`. */
  async take(use: Use, deadline: Deadline): Promise<Session> {
    return (await this.#join(this.#loans[use], undefined, undefined, deadline)) as Session
  }

  giveBack(session: Session, use: Use): void {
    this.#free(session, use)
    this.next()
  }

  /** Kysely's connection: each of its statements has a lane. */
  readonly connection: DatabaseConnection = {
    executeQuery: (query) => this.execute<never>(query as Statement<never>),
    streamQuery() {
      throw new Error('Not supported')
    },
  }

  /** Rejects the calls that wait or come, and resolves once none runs. Never throws. */
  async end(reason: unknown = ENDED): Promise<void> {
    this.#ended = reason
    for (const line of this.#waiting.splice(0)) this.#reject(line, reason)
    this.#sessions.end()
    if (this.#usage.used === 0 && this.#ahead === 0) return
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#onUnused = resolve
    await promise
  }

  #lineOf(plan: Plan<never, unknown>, kind: string): Line {
    const known = this.#lines.get(plan)?.get(kind)
    if (known) return known
    const size = this.isInProcess ? plan.maxSize.inProcess : plan.maxSize.server
    const compiled = this.#root ? this.#root.#lineOf(plan, kind).compiled : new Map()
    const line = new Line(this.#next, plan.use, size, SHARED_LANES, { plan, kind, compiled })
    const lines = this.#lines.get(plan) ?? new Map<string, Line>()
    this.#lines.set(plan, lines.set(kind, line))
    return line
  }

  /** Waits in a line, and resolves to what its calls share. Throws OverloadedError if the line is full. */
  #join(
    line: Line,
    input: unknown,
    name: QueuedCall['name'],
    deadline: Deadline,
  ): Promise<unknown> {
    if (!this.#root) refuseInTransaction()
    return this.#wait(line, input, name, deadline)
  }

  /** Waits as `#join`, also where a lane became free in the work of a transaction. */
  #wait(
    line: Line,
    input: unknown,
    name: QueuedCall['name'],
    deadline: Deadline,
  ): Promise<unknown> {
    const refusal = deadline.reason ?? this.#ended ?? (line.isFull && OVERLOADED)
    if (refusal) return Promise.reject(refusal)
    const call = new QueuedCall(input, name, deadline)
    const isAlone =
      this.#usage.used === 0 && this.#usage.waiting === 0 && line.lastCount <= 1 && !line.hasBegun
    if (line.add(call)) this.#enqueue(line)
    this.#usage.waiting++
    deadline.onGiveUp((reason) => {
      this.#leave(line, call)
      call.reject(reason)
    })
    // Otherwise `next` finds the line: after its turn, or as a statement ends (`#run`).
    if (line.isDue) this.next()
    else if (line.isHeld) line.startTimer()
    else if (!line.isScheduled) this.#schedule(line, isAlone)
    return call.promise
  }

  /** Makes a line due once the calls have come that will come soon. */
  #schedule(line: Line, isAlone: boolean): void {
    line.isScheduled = true
    if (line.isOfLoans) line.begin()
    // The works of a shared transaction run in one turn.
    else if (this.#root) queueMicrotask(() => process.nextTick(line.begin))
    // The calls of a batch come in one moment.
    else if (isAlone) {
      queueMicrotask(line.begin)
      line.hasBegun = true
      setImmediate(line.passTurn)
    } else if (line.plan?.isEarly && !this.isInProcess) setImmediate(line.begin)
    // The answers of this turn bring the next requests: after one turn, statements would be a tenth more.
    else setImmediate(() => setImmediate(line.begin))
  }

  /** Lets the lines begin that are due and may have a lane. Nothing else decides. */
  next(): void {
    for (let index = 0; index < this.#waiting.length; ) {
      const line = this.#waiting[index] as Line
      const isEmpty = line.count === 0
      if (!isEmpty && !(line.isDue && this.#mayBegin(line))) {
        index++
        continue
      }
      const session = isEmpty ? undefined : this.#sessions.take()
      if (!isEmpty && !session) {
        this.#sessions.prepare(this.#wanted())
        return
      }
      this.#waiting.splice(index, 1)
      index = 0
      const calls = line.take()
      for (const call of calls) this.#begun(line, call)
      // The rest waits behind the lines that came meanwhile.
      if (line.hasCalls) this.#enqueue(line)
      if (!session) continue
      this.#use(line.use)
      if (line.isOfLoans) calls[0]?.resolve(session)
      else void this.#run(line, session, calls)
    }
  }

  #enqueue(line: Line): void {
    if (line.use === 'ahead') this.#waiting.unshift(line)
    else this.#waiting.push(line)
  }

  #begun(line: Line, call: QueuedCall): void {
    this.#leave(line, call)
    for (const other of call.others ?? []) this.#leave(line, other)
  }

  #leave(line: Line, call: QueuedCall): void {
    if (!call.isWaiting) return
    line.leave(call)
    this.#usage.waiting--
  }

  #mayBegin(line: Line): boolean {
    const { used } = this.#usage
    if (line.use === 'ahead') return this.#ahead === 0
    if (used >= this.#size) return false
    if (line.isHeld) {
      line.startTimer()
      return false
    }
    return line.use === 'read' || this.#writing < this.#writers
  }

  /** The number of lanes that the waiting lines could have now. */
  #wanted(): number {
    const wanted = { read: 0, write: 0, ahead: 0 }
    for (const line of this.#waiting) {
      if (line.isDue && this.#mayBegin(line)) wanted[line.use] += line.wanted
    }
    const writes = Math.min(wanted.write, this.#writers - this.#writing)
    const used = Math.min(wanted.read + writes, this.#size - this.#usage.used)
    return used + Math.min(wanted.ahead, 1)
  }

  #use(use: Use): void {
    if (use === 'ahead') this.#ahead++
    else this.#usage.used++
    if (use === 'write') this.#writing++
  }

  #free(session: Session, use: Use): void {
    if (use === 'ahead') this.#ahead--
    else this.#usage.used--
    if (use === 'write') this.#writing--
    this.#sessions.giveBack(session)
    if (this.#usage.used === 0 && this.#ahead === 0) this.#onUnused?.()
  }

  /** Executes the statement of these calls, and answers them. Never throws. */
  async #run(line: Line, session: Session, calls: QueuedCall[]): Promise<void> {
    const all = calls.some(({ others }) => others)
      ? calls.flatMap((call) => [call, ...(call.others ?? [])])
      : calls
    const round = line.began(all.length)
    const inputs = calls.map(({ input }) => input)
    let outputs: unknown[] = []
    let failure: { error: unknown } | undefined
    try {
      outputs = await this.#execute(line, session, inputs, jointDeadline(all))
    } catch (error) {
      failure = { error }
    }
    // The next calls begin first: the database works on them while these ones are answered.
    line.ended(round)
    this.giveBack(session, line.use)
    if (failure) this.#refuse(line, calls, failure.error)
    else for (const [index, call] of calls.entries()) call.answer(outputs[index])
  }

  /** Returns the outputs of these inputs, in their order. */
  async #execute(
    line: Line,
    session: Session,
    inputs: unknown[],
    deadline: Deadline,
  ): Promise<unknown[]> {
    const { plan, kind, compiled } = line
    // Only the lines of plans and of works share lanes.
    if (!plan) return (await this.runShared?.(session, inputs as never[], deadline)) ?? []
    const statement = statementOf(plan, kind, compiled, this.db, inputs as never[])
    return plan.split(await session.execute<never>(statement, deadline), inputs as never[])
  }

  /** Rejects the calls of a statement or transaction that failed, or lets those run again that did not fail. */
  #refuse(line: Line, calls: QueuedCall[], error: unknown): void {
    const again = (line: Line, { input, deadline, resolve, reject }: QueuedCall) =>
      void this.#wait(line, input, undefined, deadline).then(resolve, reject)
    if (error instanceof PartialError) {
      for (const [index, call] of calls.entries()) {
        const { failures } = error
        if (failures.has(index)) call.reject(new ConflictError(failures.get(index), true))
        else again(line, call)
      }
    } else if (calls.length > 1 && line.plan?.isOfOne?.(error)) {
      if (error instanceof NoConsecutiveIdsError) line.split()
      for (const call of calls) {
        for (const one of [call, ...(call.others ?? [])]) again(line.alone, one)
      }
    } else {
      for (const call of calls) call.fail(error)
    }
  }

  /** Rejects the calls that wait for a session: none can be had now. */
  fail(error: unknown): void {
    for (const line of [...this.#waiting]) {
      if (line.isDue && this.#mayBegin(line)) this.#reject(line, error)
    }
    this.next() // removes the empty lines
  }

  #reject(line: Line, error: unknown): void {
    while (line.count > 0) {
      for (const call of line.take()) {
        this.#begun(line, call)
        call.fail(error)
      }
    }
  }
}

const ENDED = new BrokenDatabaseError(new Error('The service has closed the database'), true)
const OVERLOADED = new OverloadedError('Too many calls wait for the database')
