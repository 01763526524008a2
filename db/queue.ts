/**
 * The queue of a database. A call waits in a line for a session; a session that becomes free takes along what
 * waits in a line. This is its way:
 *
 * `run` → `#wait` → `line.join` ⇢ (it waits for others) `#onDue` → `decide` ⇢ (it waits for a session)
 * `#begin` → `#runGroups` → `#attempt` → `statements.runTogether` → `session.execute` ⇢ `group.resolve`
 *
 * A plan whose inputs share a transaction has `plan.commitTogether` → `transact` (transaction.ts) there.
 *
 * | A call | begins |
 * |---|---|
 * | that reads the embedded database | at once, unless a transaction of this process or a lock of another one is in its way |
 * | while no session is in use, nothing waits, and the latest statement of its line had one call | at once, with the calls of the same moment |
 * | while a session may be used | after two turns of the event loop, with the calls that arrive until then |
 * | while a statement of its line ends | then |
 * | while all sessions that its line may have are in use | once one is free, in the order in which the lines became due |
 *
 * `decide` alone lets lines begin. A line of loans is due at once. No call joins what has begun, so each call
 * sees what was committed before it. A deadline rejects only its own call. A statement is ended once the
 * deadlines of all its calls have passed.
 */
import { type QueryResult, SelectQueryNode } from 'kysely'
import { bisect } from './bisect.ts'
import { type Deadline, jointDeadline, within } from './deadline.ts'
import { BrokenDatabaseError, DatabaseUnavailableError, OverloadedError } from './errors.ts'
import { refuseInTransaction } from './guard.ts'
import { type Group, isLoan, Line, type Loan, type Usage } from './line.ts'
import type { Plan, Statements, Use } from './plan.ts'
import { pauseOrThrow } from './retry.ts'
import type { Runner } from './runner.ts'
import type { Demand, Session, Sessions, Statement } from './session.ts'

/** The part of the sessions that may write: while all writes wait for a lock, reads continue. */
const WRITERS = 0.6

/**
 * The part of the sessions of its use that a line may have, and never all of several: many callers of a slow
 * statement, or of a row that is locked, would take all, and delay others.
 */
const OF_A_LINE = 0.8
const mostOfALine = (sessions: number): number =>
  Math.max(1, Math.min(Math.ceil(sessions * OF_A_LINE), sessions - 1))

export interface QueueSettings {
  /** Maximum number of sessions in use. */
  size: number
  /** Milliseconds that a statement without a deadline may take; unlimited by default. */
  timeout?: number | undefined
  /** The queue keeps these numbers current. */
  usage?: Usage
}

const LOANS: Record<Use, Loan> = {
  read: { use: 'read', isLoan: true },
  write: { use: 'write', isLoan: true },
  readiness: { use: 'readiness', isLoan: true },
}

/** The result of a group, or why it failed. */
interface GroupOutcome {
  group: Group
  result?: unknown
  error?: unknown
}

export class Queue implements Runner, Demand {
  readonly statements: Statements
  readonly timeout: number
  readonly #size: number
  readonly #writers: number
  readonly #ofALine: Record<'read' | 'write', number>
  readonly #usage: Usage
  readonly #sessions: Sessions
  /** The number of sessions in use that may write, and of those of readiness, which `#usage` leaves out. */
  #writing = 0
  #ofReadiness = 0
  /** The lines, by their task and the kinds of their inputs. Nothing is removed. */
  readonly #lines = new Map<unknown, Map<string, Line>>()
  /** The lines that are due, in the order in which they became so, that of readiness first. */
  readonly #due: Line[] = []
  #ended: unknown
  #onUnused: (() => void) | undefined

  /** `createSessions` returns the sessions that the queue uses. */
  constructor(
    statements: Statements,
    { size, timeout, usage }: QueueSettings,
    createSessions: (demand: Demand) => Sessions,
  ) {
    this.statements = statements
    this.#size = size
    this.#writers = Math.max(1, Math.floor(size * WRITERS))
    this.#ofALine = { read: mostOfALine(size), write: mostOfALine(this.#writers) }
    this.timeout = timeout ?? Number.POSITIVE_INFINITY
    this.#usage = usage ?? { used: 0, waiting: 0 }
    this.#sessions = createSessions(this)
  }

  async run<Input, Output>(
    plan: Plan<Input, Output>,
    input: Input,
    deadline: Deadline,
  ): Promise<Output> {
    for (let attempt = 0; ; attempt++) {
      try {
        const now = this.#readNow(plan, input, deadline)
        if (now) return plan.output(now.shared)
        const line = this.#lineOf(plan, plan.kindOf?.(input) ?? '')
        return plan.output(await this.#wait(line, input, plan.identityOf?.(input), deadline))
      } catch (error) {
        // An error of which one input is to blame would come again: its caller must decide.
        if (plan.commitTogether || plan.blamesOne?.(error)) throw error
        await pauseOrThrow(attempt, error, plan.use === 'read', deadline)
      }
    }
  }

  async execute<Row>(statement: Statement<Row>): Promise<QueryResult<Row>> {
    return await within(statement.deadline, this.timeout, (deadline) =>
      this.#execute(statement, deadline),
    )
  }

  async #execute<Row>(statement: Statement<Row>, deadline: Deadline): Promise<QueryResult<Row>> {
    // A read does not wait behind writes. Raw SQL may write.
    const byQuery = SelectQueryNode.is(statement.query) ? 'read' : 'write'
    const use = statement.isForReadiness ? 'readiness' : byQuery
    this.#refuse(deadline)
    const now = use !== 'write' && this.#sessions.readNow?.(statement, false)
    if (now) return now
    const session = await this.borrow(use, deadline)
    try {
      return await session.execute<Row>(statement, deadline)
    } finally {
      this.giveBack(session, use)
    }
  }

  /** Returns the result of an input, if the database works in this process, and the input need not wait. */
  #readNow<Input, Shared>(
    plan: Plan<Input, unknown, Shared>,
    input: Input,
    deadline: Deadline,
  ): { shared: Shared } | undefined {
    if (plan.use !== 'read' || !this.#sessions.readNow) return undefined
    this.#refuse(deadline)
    const result = this.#sessions.readNow(this.statements.statementOf(plan, [input]), true)
    return result && { shared: plan.split(result, [input])[0] as Shared } // the one of the input
  }

  /** Resolves to a session for this use alone, until `giveBack`. Throws as `execute`. */
  async borrow(use: Use, deadline: Deadline): Promise<Session> {
    const line = this.#lineOf(LOANS[use], '')
    return (await this.#wait(line, undefined, undefined, deadline)) as Session
  }

  giveBack(session: Session, use: Use): void {
    this.#free(session, this.#lineOf(LOANS[use], ''))
  }

  /** Rejects what waits or comes, and resolves once no session is in use. Never throws. */
  async end(): Promise<void> {
    this.#ended = ENDED
    for (const kinds of this.#lines.values())
      for (const line of kinds.values()) line.rejectAll(ENDED)
    this.#sessions.close()
    if (this.#usage.used === 0 && this.#ofReadiness === 0) return
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#onUnused = resolve
    await promise
  }

  #lineOf(task: Line['task'], kind: string): Line {
    const known = this.#lines.get(task)?.get(kind)
    if (known) return known
    // In this process a statement costs no round trip.
    const isSingle = isLoan(task) || (task.use === 'read' && this.#sessions.readNow)
    const line = new Line(task, {
      maxSize: isSingle ? 1 : task.maxSize,
      usage: this.#usage,
      onDue: this.#onDue,
      onEmpty: this.#forget,
    })
    const lines = this.#lines.get(task) ?? new Map<string, Line>()
    this.#lines.set(task, lines.set(kind, line))
    return line
  }

  /** Lets an input wait in a line, and resolves to its result. Throws OverloadedError if the line is full. */
  async #wait(line: Line, input: unknown, identity: unknown, deadline: Deadline): Promise<unknown> {
    this.#refuse(deadline)
    if (line.isFull) throw OVERLOADED
    const { promise } = line.join(input, identity, deadline)
    if (line.isDue) this.decide() // it may need another session now
    return await promise
  }

  /** Throws in a transaction, after the deadline, and after the end. */
  #refuse(deadline: Deadline): void {
    refuseInTransaction()
    const refusal = deadline.reason ?? this.#ended
    if (refusal) throw refusal
  }

  readonly #onDue = (line: Line): void => {
    this.#enqueue(line)
    this.decide()
  }

  #enqueue(line: Line): void {
    if (line.task.use === 'readiness') this.#due.unshift(line)
    else this.#due.push(line)
  }

  readonly #forget = (line: Line): void => {
    this.#due.splice(this.#due.indexOf(line), 1)
  }

  /** Lets the lines begin that may have a session, in their order. Nothing else decides. */
  decide(): void {
    const mayBegin = (line: Line) => this.#leftFor(line) > 0
    for (let line = this.#due.find(mayBegin); line; line = this.#due.find(mayBegin)) {
      const session = this.#sessions.take()
      if (!session) {
        this.#sessions.prepare(this.#wanted())
        return
      }
      this.#begin(line, session)
    }
  }

  /** The number of sessions that a line may have now, beside those that it has. */
  #leftFor({ running, task: { use } }: Line): number {
    if (use === 'readiness') return 1 - this.#ofReadiness
    const left = this.#size - this.#usage.used
    const free = use === 'read' ? left : Math.min(left, this.#writers - this.#writing)
    return Math.min(free, this.#ofALine[use] - running)
  }

  /** The number of sessions that the waiting lines could have now. */
  #wanted(): number {
    const wanted: Record<Use, number> = { read: 0, write: 0, readiness: 0 }
    for (const line of this.#due) {
      wanted[line.task.use] += Math.min(line.statements, Math.max(0, this.#leftFor(line)))
    }
    const writes = Math.min(wanted.write, this.#writers - this.#writing)
    const used = Math.min(wanted.read + writes, this.#size - this.#usage.used)
    return used + wanted.readiness
  }

  #begin(line: Line, session: Session): void {
    const { task } = line
    const isOne = !isLoan(task) && task.needsConsecutiveIds && !session.hasConsecutiveIds
    const groups = line.begin(isOne ? 1 : undefined)
    if (line.isDue) {
      // The rest waits behind the lines that came meanwhile.
      this.#forget(line)
      this.#enqueue(line)
    }
    this.#use(task.use)
    if (isLoan(task)) groups[0]?.resolve(session)
    else void this.#runGroups(line, task, session, groups)
  }

  #use(use: Use): void {
    if (use === 'readiness') this.#ofReadiness++
    else this.#usage.used++
    if (use === 'write') this.#writing++
  }

  /** Takes back the session of a statement of a line, or of a loan, and lets others begin. */
  #free(session: Session, line: Line): void {
    const { use } = line.task
    if (use === 'readiness') this.#ofReadiness--
    else this.#usage.used--
    if (use === 'write') this.#writing--
    this.#sessions.giveBack(session)
    if (this.#usage.used === 0 && this.#ofReadiness === 0) this.#onUnused?.()
    line.end()
    this.decide()
  }

  /** Runs groups on a session, and answers their calls. Never throws. */
  async #runGroups(
    line: Line,
    plan: Plan<never, unknown>,
    session: Session,
    groups: Group[],
  ): Promise<void> {
    let outcomes: GroupOutcome[]
    try {
      outcomes = await this.#attempt(plan, session, groups)
    } catch (error) {
      outcomes = await this.#outcomesAfter(error, plan, session, groups)
    }
    // What waits begins first: the database works on it while these calls are answered.
    this.#free(session, line)
    for (const { group, result, error } of outcomes) {
      if (error === undefined) group.resolve(result)
      else group.reject(error)
    }
  }

  /** Runs groups together, and returns their results. Throws why they failed. */
  async #attempt(
    plan: Plan<never, unknown>,
    session: Session,
    groups: Group[],
  ): Promise<GroupOutcome[]> {
    const inputs = groups.map(({ input }) => input) as never[] // those of the line are of its plan
    const deadlines = new Set<Deadline>()
    for (const { entries } of groups) for (const { deadline } of entries) deadlines.add(deadline)
    const deadline = jointDeadline(deadlines)
    const results = await this.statements.runTogether(plan, inputs, session, deadline)
    return groups.map((group, index) => ({ group, result: results[index] }))
  }

  /** Returns why groups have failed together, or runs them without those that are to blame. Never throws. */
  async #outcomesAfter(
    error: unknown,
    plan: Plan<never, unknown>,
    session: Session,
    groups: Group[],
  ): Promise<GroupOutcome[]> {
    if (groups.length === 1 || !plan.blamesOne?.(error)) {
      return groups.map((group) => ({ group, error }))
    }
    const outcomes: GroupOutcome[] = []
    let sent: Group[] = []
    try {
      await bisect(groups, {
        attempt: async (some) => {
          sent = some
          const live = some.filter(({ isLive }) => isLive)
          if (live.length > 0) outcomes.push(...(await this.#attempt(plan, session, live)))
        },
        blamesOne: (error) => plan.blamesOne?.(error) ?? false,
        fail: (group, error) => outcomes.push({ group, error }),
      })
    } catch (error) {
      const isLeft = (group: Group) => outcomes.every((outcome) => outcome.group !== group)
      for (const group of groups.filter(isLeft)) {
        const own = sent.includes(group) ? error : new DatabaseUnavailableError(error, true)
        outcomes.push({ group, error: own })
      }
    }
    return outcomes
  }

  /** Rejects what waits for a session: none can be had now. */
  fail(error: unknown): void {
    for (const line of this.#due.filter((line) => this.#leftFor(line) > 0)) line.rejectAll(error)
  }
}

const ENDED = new BrokenDatabaseError(new Error('The service has closed the database'), true)
const OVERLOADED = new OverloadedError('Too many calls wait for the database')
