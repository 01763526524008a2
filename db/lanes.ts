/**
 * The queue of a database. A call waits for a lane, which has a session; a lane that becomes free takes along
 * the waiting calls of a line. This is its way:
 *
 * `call` → `#join` → `#enter` → `#gather` ⇢ (it waits in a line for other calls) `#makeDue` → `decide` ⇢ (for a lane)
 * `#begin` → `#run` → `line.run` → `session.execute` ⇢ `call.answer`
 *
 * | A call | begins |
 * |---|---|
 * | while the database is idle, and the latest statement of its line had one call (in a database of this process, before this turn) | at once, with the calls of the same moment |
 * | while it may have a lane | after the next turn of the event loop (`isEarly`: after this one), with the calls that arrive until then |
 * | while its line has two lanes | once one of them is free, or the line has inputs for a whole statement, or 50 ms have passed |
 * | while all lanes are in use | once one is free, in the order in which the lines began to wait |
 *
 * So a line has one of these states:
 *
 * | State | Its calls | a call comes | the turns have passed | a statement of the line ends | the 50 ms have passed | the last call is given up |
 * |---|---|---|---|---|---|---|
 * | `empty` | | `gathering`, `held` | | | | |
 * | `gathering` | wait for others of the moment or the turn | `gathering` | `due`, or `empty` without calls | `due` | | `gathering` |
 * | `held` | wait for one of the two lanes of the line | `held`, or `gathering` for a whole statement | | `due` | `due` | `empty` |
 * | `due` | wait for a lane | `due` | | `due` | | `empty` |
 *
 * `decide` alone lets lines that are due begin, or holds them again. A line of loans is due at once.
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
import { Line, QueuedCall, type Usage, withOthers } from './line.ts'
import { type LoanPlan, PartialError, type Plan, type Use, type WorkPlan } from './plan.ts'
import { pauseAfter } from './retry.ts'
import type { Session, Sessions, Statement } from './session.ts'
import type { Tables } from './tables.ts'

/** The part of the lanes that may write: while all writes wait for a lock, reads continue. */
const WRITERS = 0.6

/** Milliseconds after which a statement no longer holds back the calls of its line: it may hang. */
const MAX_HOLD = 50

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

const loanOf = (use: Use): LoanPlan => ({
  use,
  maxSize: { inProcess: 1, server: 1 },
  isLoan: true,
})
const LOANS = { read: loanOf('read'), write: loanOf('write'), ahead: loanOf('ahead') }

export class Lanes {
  /** What builds the statements; set once, by the function that makes the database of the lanes. */
  db!: Kysely<Tables>
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
  /** The lines of plans, by the kinds of their inputs. */
  readonly #lines = new Map<unknown, Map<string, Line>>()
  /** The lines with waiting calls, in the order in which they began to wait; and some that are empty again. */
  readonly #waiting: Line[] = []
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
      const queued = new QueuedCall(input, name, deadline)
      try {
        return plan.output(await this.#join(line.isSplit ? line.single : line, queued))
      } catch (error) {
        if (this.#root) throw error // the transaction is repeated as a whole
        if (plan.isOfOne?.(error)) throw error // its statement had this input alone
        await pauseAfter(attempt, error, plan.use === 'read', deadline)
      }
    }
  }

  /** Runs work with others in a transaction, and resolves to its result: see `shareTransaction`. One attempt. */
  share<Work>(plan: WorkPlan<Work, unknown>, work: Work, deadline: Deadline): Promise<unknown> {
    return this.#join(this.#lineOf(plan, ''), new QueuedCall(work, undefined, deadline))
  }

  /** Executes one statement. Throws the errors of db/errors.ts, and the reason of the deadline. */
  async execute<Row>(statement: Statement<Row>): Promise<QueryResult<Row>> {
    using own = new Deadline(statement.deadline ? Number.POSITIVE_INFINITY : this.timeout)
    const deadline = statement.deadline ?? own
    const isRead = statement.isRead ?? SelectQueryNode.is(statement.query)
    const use = statement.isAhead ? 'ahead' : isRead ? 'read' : 'write'
    const session = await this.borrow(use, deadline)
    try {
      return await session.execute<Row>(statement, deadline)
    } finally {
      this.giveBack(session, use)
    }
  }

  /** Resolves to a session for this use alone, until `giveBack`. Throws as `execute`. */
  async borrow(use: Use, deadline: Deadline): Promise<Session> {
    const line = this.#lineOf(LOANS[use], '')
    return (await this.#join(line, new QueuedCall(undefined, undefined, deadline))) as Session
  }

  giveBack(session: Session, use: Use): void {
    this.#free(session, use)
    this.decide()
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
    for (const line of this.#waiting) this.#rejectAll(line, reason)
    this.#sessions.end()
    if (this.#usage.used === 0 && this.#ahead === 0) return
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#onUnused = resolve
    await promise
  }

  #lineOf(plan: Line['plan'], kind: string): Line {
    const known = this.#lines.get(plan)?.get(kind)
    if (known) return known
    const size = this.isInProcess ? plan.maxSize.inProcess : plan.maxSize.server
    const compiled = this.#root ? this.#root.#lineOf(plan, kind).compiled : new Map()
    const line = new Line(plan, kind, compiled, size, this.#usage)
    const lines = this.#lines.get(plan) ?? new Map<string, Line>()
    this.#lines.set(plan, lines.set(kind, line))
    return line
  }

  /** Lets a call wait in a line, and resolves to its output. Throws OverloadedError if the line is full. */
  #join(line: Line, call: QueuedCall): Promise<unknown> {
    if (!this.#root) refuseInTransaction()
    if (line.isFull) call.reject(OVERLOADED)
    else this.#enter(line, call)
    return call.promise
  }

  /** Lets a call wait in a line. Rejects it if its deadline is over, or the lanes have ended. */
  #enter(line: Line, call: QueuedCall): void {
    const refusal = call.deadline.reason ?? this.#ended
    if (refusal) {
      call.reject(refusal)
      return
    }
    const { used, waiting } = this.#usage
    const isAlone = used === 0 && waiting === 0 && line.lastCount <= 1 && !line.wasAlone
    const { state } = line
    line.add(call)
    call.deadline.add(call)
    if (state === 'empty') {
      this.#forget(line) // it may still be there: its calls have been given up
      this.#waiting.push(line)
      if (line.isHeld) this.#hold(line)
      else this.#gather(line, isAlone)
    } else if (state === 'held' && !line.isHeld) this.#gather(line, false)
    else if (state === 'due') this.decide()
  }

  /** Makes a line due once the calls have come that will come soon. */
  #gather(line: Line, isAlone: boolean): void {
    const turn = line.gather()
    const isEarly = 'build' in line.plan && line.plan.isEarly && !this.isInProcess
    if (line.isLoan) this.#makeDue(line, turn)
    // The works of a shared transaction run in one turn: the first of them waits for all that is ready now.
    else if (this.#root) queueMicrotask(() => process.nextTick(this.#makeDue, line, turn))
    // The calls of a batch come in one moment.
    else if (isAlone) {
      queueMicrotask(() => this.#makeDue(line, turn))
      if (this.isInProcess) {
        line.wasAlone = true
        setImmediate(passTurn, line)
      }
    } else if (isEarly) setImmediate(this.#makeDue, line, turn)
    // The answers of this turn bring the next requests: with one turn, there were a tenth more statements.
    else setImmediate(this.#makeDueInATurn, line, turn)
  }

  readonly #makeDueInATurn = (line: Line, turn: number): void =>
    void setImmediate(this.#makeDue, line, turn)

  /** Makes a line due, unless it has been so since it began to gather in this turn. */
  readonly #makeDue = (line: Line, turn: number): void => {
    if (line.state !== 'gathering' || line.turn !== turn) return
    line.state = 'due'
    if (line.count === 0) line.clear()
    else this.decide()
  }

  /** Holds the calls of a line back while its two statements run, for 50 ms at most. */
  #hold(line: Line): void {
    line.state = 'held'
    line.timer ??= setTimeout(this.#letGo, MAX_HOLD, line)
  }

  readonly #letGo = (line: Line): void => {
    line.letGo()
    this.decide()
  }

  /** Lets the lines begin that are due and may have a lane. Nothing else decides. */
  decide(): void {
    for (let line = this.#firstToBegin(); line; line = this.#firstToBegin()) {
      const session = this.#sessions.take()
      if (!session) {
        this.#sessions.prepare(this.#wanted())
        return
      }
      this.#begin(line, session)
    }
  }

  /** Returns the line that may have the next lane: that of readiness, or the one that waits for the longest time. */
  #firstToBegin(): Line | undefined {
    let first: Line | undefined
    for (const line of this.#waiting) {
      if (line.state === 'due' && line.isHeld) this.#hold(line)
      if (!this.#mayBegin(line)) continue
      if (line.plan.use === 'ahead') return line
      first ??= line
    }
    return first
  }

  #mayBegin({ state, isHeld, plan: { use } }: Line): boolean {
    if (state !== 'due' || isHeld) return false
    if (use === 'ahead') return this.#ahead === 0
    if (this.#usage.used >= this.#size) return false
    return use === 'read' || this.#writing < this.#writers
  }

  /** The number of lanes that the waiting lines could have now. */
  #wanted(): number {
    const wanted = { read: 0, write: 0, ahead: 0 }
    for (const line of this.#waiting) {
      if (this.#mayBegin(line)) wanted[line.plan.use] += line.wanted
    }
    const writes = Math.min(wanted.write, this.#writers - this.#writing)
    const used = Math.min(wanted.read + writes, this.#size - this.#usage.used)
    return used + Math.min(wanted.ahead, 1)
  }

  #begin(line: Line, session: Session): void {
    const calls = line.takeNext()
    // The rest waits behind the lines that came meanwhile.
    this.#forget(line)
    if (line.count > 0) this.#waiting.push(line)
    this.#use(line.plan.use)
    if (line.isLoan) calls[0]?.resolve(session)
    else void this.#run(line, session, calls)
  }

  #forget(line: Line): void {
    const index = this.#waiting.indexOf(line)
    if (index >= 0) this.#waiting.splice(index, 1)
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

  /** Runs the inputs of these calls, and answers the calls. Never throws. */
  async #run(line: Line, session: Session, calls: QueuedCall[]): Promise<void> {
    const all = withOthers(calls)
    const round = line.noteBegin(all.length)
    const inputs = calls.map(({ input }) => input)
    let outputs: unknown[] = []
    let failure: { error: unknown } | undefined
    try {
      outputs = await line.run(this.db, session, inputs, jointDeadline(all))
    } catch (error) {
      failure = { error }
    }
    // The next calls begin first: the database works on them while these ones are answered.
    line.noteEnd(round)
    this.giveBack(session, line.plan.use)
    if (failure) this.#settleFailed(line, calls, failure.error)
    else for (const [index, call] of calls.entries()) call.answer(outputs[index])
  }

  /** Rejects the calls of a statement or transaction that failed, or lets those run again that did not fail. */
  #settleFailed(line: Line, calls: QueuedCall[], error: unknown): void {
    const { plan } = line
    if (error instanceof PartialError) {
      for (const [index, call] of calls.entries()) {
        const { failures } = error
        if (failures.has(index)) call.reject(new ConflictError(failures.get(index), true))
        else this.#enter(line, call)
      }
    } else if (calls.length > 1 && 'build' in plan && plan.isOfOne?.(error)) {
      if (error instanceof NoConsecutiveIdsError) line.split()
      for (const call of withOthers(calls)) {
        call.separate()
        this.#enter(line.single, call)
      }
    } else for (const call of withOthers(calls)) call.reject(error)
  }

  /** Rejects the calls that wait for a session: none can be had now. */
  fail(error: unknown): void {
    for (const line of this.#waiting) if (this.#mayBegin(line)) this.#rejectAll(line, error)
  }

  #rejectAll(line: Line, error: unknown): void {
    while (line.count > 0) for (const call of withOthers(line.takeNext())) call.reject(error)
  }
}

const passTurn = (line: Line): void => {
  line.wasAlone = false
}

const ENDED = new BrokenDatabaseError(new Error('The service has closed the database'), true)
const OVERLOADED = new OverloadedError('Too many calls wait for the database')
