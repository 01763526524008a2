/**
 * The queue of a database. A call waits in a line (line.ts) for a session; a session that becomes free takes along
 * what waits in a line. This is its way:
 *
 * `run` → `#wait` → `line.join`, `#gather` ⇢ (it waits for others) `#endGathering` → `decide` ⇢ (it waits for a
 * session) `#begin` → `line.take` → `#runGroups` → `#runTogether` → `statements.run` → `session.execute` ⇢ `#free`,
 * `group.answer`
 *
 * A plan whose inputs share a transaction has `plan.commitTogether` → `transact` (transaction.ts) there.
 *
 * | A call | begins |
 * |---|---|
 * | that reads the embedded database | at once, unless a transaction of this process or a lock of another one is in its way |
 * | while a session may be used | after two turns of the event loop, with the calls that arrive until then; of the embedded database at once, with the calls of the same moment |
 * | while a statement of its line ends | then |
 * | while all sessions that its line may have are in use | once one is free, in the order in which the lines became due |
 *
 * `decide` alone lets lines begin. A line of loans is due at once. No call joins what has begun, so each call
 * sees what was committed before it. A deadline rejects only its own call. A statement is ended once the
 * deadlines of all its calls have passed.
 */
import { type CompiledQuery, type QueryResult, SelectQueryNode } from 'kysely'
import { bisect } from './bisect.ts'
import { type Deadline, jointDeadline, within } from './deadline.ts'
import { BrokenDatabaseError, DatabaseUnavailableError, OverloadedError } from './errors.ts'
import { refuseInTransaction } from './guard.ts'
import { type Group, Line, type Usage } from './line.ts'
import type { AnyPlan, Plan, Statements, Use } from './plan.ts'
import { pauseOrThrow } from './retry.ts'
import type { Runner } from './runner.ts'
import type { Demand, Session, Sessions } from './session.ts'

/**
 * The part of the sessions that may write, six of ten: while all writes wait for a lock, reads continue. A larger part
 * leaves fewer sessions to these reads, a smaller one has fewer transactions side by side.
 */
const WRITERS = 0.6

/**
 * The part of the sessions of its use that a line may have, and never all of several: many callers of a slow
 * statement, or of a row that is locked, would take all, and delay others. With this part they do not (bench/README.md);
 * a smaller one leaves sessions idle where all callers ask for the same.
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

export class Queue implements Runner, Demand {
  readonly statements: Statements
  readonly timeout: number
  readonly #size: number
  readonly #writers: number
  readonly #ofALine: Record<'read' | 'write', number>
  readonly #usage: Usage
  readonly #sessions: Sessions
  /** Only of a database that works in this process: there a read needs no session unless it must wait. */
  readonly #readNow: Sessions['readNow']
  /** The number of sessions in use that may write. */
  #writing = 0
  /** The lines of inputs, by their plan and kind. Nothing is removed. */
  readonly #linesByPlan = new Map<unknown, Map<string, Line>>()
  /** The lines of what has a session for itself. */
  readonly #loans: Record<Use, Line>
  /** All lines, which are few. */
  readonly #lines: Line[]
  /** The number of the line that became due last. */
  #lastDue = 0
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
    const loans = (use: Use) => new Line(use, undefined, 1, this.#usage)
    this.#loans = { read: loans('read'), write: loans('write'), readiness: loans('readiness') }
    this.#lines = Object.values(this.#loans)
    this.#sessions = createSessions(this)
    this.#readNow = this.#sessions.readNow
  }

  async run<Input, Output>(
    plan: Plan<Input, Output>,
    input: Input,
    deadline: Deadline,
  ): Promise<Output> {
    for (let attempt = 0; ; attempt++) {
      try {
        if (this.#readNow && plan.use === 'read') {
          this.#refuse(deadline)
          const read = this.#readNow(this.statements.statementOf(plan, [input]), plan.isList)
          if (read) return plan.output(plan.split(read, [input])[0]) // the result of the input
        }
        const kind = plan.kindOf?.(input) ?? ''
        const line = this.#linesByPlan.get(plan)?.get(kind) ?? this.#newLine(plan, kind)
        return plan.output(await this.#wait(line, deadline, input))
      } catch (error) {
        // A transaction is repeated by its caller, which looks for the key first (src/idempotency/keyed-writes.ts). An error
        // of which one input is to blame would come again: its caller must decide.
        if (plan.commitTogether || plan.blamesOne?.(error)) throw error
        await pauseOrThrow(attempt, error, { repeatable: plan.use === 'read', deadline })
      }
    }
  }

  async execute<Row>(
    statement: CompiledQuery<Row>,
    deadline?: Deadline,
    use = useOf(statement),
  ): Promise<QueryResult<Row>> {
    this.#refuse(deadline)
    const read = use === 'write' ? undefined : this.#readNow?.(statement)
    if (read) return read
    return await this.withSession(use, deadline, (session, deadline) =>
      session.execute<Row>(statement, deadline),
    )
  }

  /** Runs work with a session for itself; without a deadline, within the timeout of the database. Throws as `execute`. */
  async withSession<Result>(
    use: Use,
    deadline: Deadline | undefined,
    work: (session: Session, deadline: Deadline) => Promise<Result>,
  ): Promise<Result> {
    return await within(deadline, this.timeout, async (deadline) => {
      const session = await this.borrow(use, deadline)
      try {
        return await work(session, deadline)
      } finally {
        this.giveBack(session, use)
      }
    })
  }

  /** Resolves to a session for this use alone, until `giveBack`. Throws as `execute`. */
  async borrow(use: Use, deadline: Deadline): Promise<Session> {
    return (await this.#wait(this.#loans[use], deadline)) as Session
  }

  giveBack(session: Session, use: Use): void {
    this.#free(session, this.#loans[use])
  }

  #newLine(plan: AnyPlan, kind: string): Line {
    // In this process a read costs no round trip.
    const maxSize = this.#readNow && plan.use === 'read' ? 1 : plan.maxSize
    const line = new Line(plan.use, plan, maxSize, this.#usage)
    const kinds = this.#linesByPlan.get(plan) ?? new Map<string, Line>()
    this.#linesByPlan.set(plan, kinds.set(kind, line))
    this.#lines.push(line)
    return line
  }

  /** Lets a call wait in a line. Returns what settles with its answer. Throws OverloadedError if too many wait. */
  #wait(line: Line, deadline: Deadline, input?: unknown): Promise<unknown> {
    this.#refuse(deadline)
    // A line that gathers takes any number of calls: they are about to begin.
    if (line.dueAs !== undefined && line.isLong) throw OVERLOADED
    const answer = line.join(input, deadline)
    if (line.waiting === 1) this.#gather(line)
    // The call may be one more than the statement of those before it has room for: then its line needs another session.
    else if (line.dueAs !== undefined) this.decide()
    return answer
  }

  /** Throws in a transaction, after the deadline, and after the end. */
  #refuse(deadline?: Deadline): void {
    refuseInTransaction()
    const refusal = deadline?.reason ?? this.#ended
    if (refusal) throw refusal
  }

  /** Lets others join the first entry of a line before it is due. */
  #gather(line: Line): void {
    const { gathering } = line
    if (!line.plan) this.#endGathering(line, gathering)
    // Requests that arrive while this process executes a statement are then served in one moment, as the calls of a
    // batch are.
    else if (this.#readNow) queueMicrotask(() => this.#endGathering(line, gathering))
    // Beside the turn that a request waits in http/server.ts: clients that are answered in this turn send their next
    // requests in the following one. With one turn, pages and mixed calls were a twentieth slower.
    else setImmediate(() => setImmediate(this.#endGathering, line, gathering))
  }

  readonly #endGathering = (line: Line, gathering: number): void => {
    if (line.gathering !== gathering) return
    this.#becomeDue(line)
    this.decide()
  }

  /** Makes a line due if entries wait in it, behind the lines that are due. Readiness is always the first. */
  #becomeDue(line: Line): void {
    if (line.waiting > 0) line.dueAs ??= line.use === 'readiness' ? 0 : ++this.#lastDue
  }

  /** Lets the lines begin that are due and may have a session, in the order of `dueAs`. Nothing else decides. */
  decide(): void {
    let line = this.#next()
    while (line && this.#begin(line)) line = this.#next()
  }

  /** Returns the first of the due lines that may have a session. */
  #next(): Line | undefined {
    let next: Line | undefined
    let first = Number.POSITIVE_INFINITY
    for (const line of this.#lines) {
      if (line.dueAs === undefined || line.dueAs > first || this.#leftFor(line) <= 0) continue
      next = line
      first = line.dueAs
    }
    return next
  }

  /** The number of sessions that a line may have now, beside those that it has. */
  #leftFor({ running, use }: Line): number {
    if (use === 'readiness') return 1 - running
    const left = this.#size - this.#usage.used
    const free = use === 'read' ? left : Math.min(left, this.#writers - this.#writing)
    return Math.min(free, this.#ofALine[use] - running)
  }

  /** The number of sessions that the waiting lines could have now. */
  #wanted(): number {
    const wanted: Record<Use, number> = { read: 0, write: 0, readiness: 0 }
    for (const line of this.#lines) {
      if (line.dueAs === undefined) continue
      wanted[line.use] += Math.min(line.statementCount, Math.max(0, this.#leftFor(line)))
    }
    const writes = Math.min(wanted.write, this.#writers - this.#writing)
    const used = Math.min(wanted.read + writes, this.#size - this.#usage.used)
    return used + wanted.readiness
  }

  /** Lets a line begin, and returns true, if there is a session at once. Asks for sessions otherwise. */
  #begin(line: Line): boolean {
    const session = this.#sessions.take()
    if (!session) {
      this.#sessions.prepare(this.#wanted())
      return false
    }
    const { plan, use } = line
    // A session without consecutive ids would tell the id of the first of several rows alone.
    const isOne = plan?.needsConsecutiveIds && !session.hasConsecutiveIds
    const groups = line.take(isOne ? 1 : line.maxSize)
    this.#becomeDue(line) // what is left waits behind the lines that became due meanwhile
    line.running++
    if (use !== 'readiness') this.#usage.used++
    if (use === 'write') this.#writing++
    if (plan) void this.#runGroups(line, plan, session, groups)
    else groups[0]?.answer({ result: session })
    return true
  }

  /** Takes back the session of a statement of a line, or of a loan, and lets others begin. */
  #free(session: Session, line: Line): void {
    line.running--
    if (line.use !== 'readiness') this.#usage.used--
    if (line.use === 'write') this.#writing--
    this.#sessions.giveBack(session)
    if (this.#usage.used === 0 && this.#loans.readiness.running === 0) this.#onUnused?.()
    // What still gathers waits no longer than a statement took.
    this.#becomeDue(line)
    this.decide()
  }

  /** Runs groups on a session, and answers their calls. Never throws. */
  async #runGroups(line: Line, plan: AnyPlan, session: Session, groups: Group[]): Promise<void> {
    try {
      await this.#runTogether(plan, session, groups)
    } catch (error) {
      await this.#runApart(error, plan, session, groups)
    }
    // What waits begins first: the database works on it while these calls are answered.
    this.#free(session, line)
    for (const group of groups) group.answer()
  }

  /** Runs groups together, which have their outcomes then. Throws why they failed. */
  async #runTogether(plan: AnyPlan, session: Session, groups: Group[]): Promise<void> {
    const inputs = groups.map(({ input }) => input) as never[] // those of the line are of its plan
    const deadlines = new Set<Deadline>()
    for (const { entries } of groups) for (const { deadline } of entries) deadlines.add(deadline)
    const deadline = jointDeadline(deadlines)
    const results = await this.statements.run(plan, inputs, session, deadline)
    for (const [index, group] of groups.entries()) group.outcome = { result: results[index] }
  }

  /** Gives groups that have failed together this error, or runs them without those that are to blame. Never throws. */
  async #runApart(error: unknown, plan: AnyPlan, session: Session, groups: Group[]): Promise<void> {
    if (groups.length === 1 || !plan.blamesOne?.(error)) {
      for (const group of groups) group.outcome = { error }
      return
    }
    let sent: Group[] = []
    try {
      await bisect(groups, {
        attempt: async (some) => {
          sent = some
          const live = some.filter(({ isLive }) => isLive)
          if (live.length > 0) await this.#runTogether(plan, session, live)
        },
        blamesOne: (error) => plan.blamesOne?.(error) ?? false,
        fail(group, error) {
          group.outcome = { error }
        },
      })
    } catch (error) {
      for (const group of groups) {
        const own = sent.includes(group) ? error : new DatabaseUnavailableError(error, true)
        group.outcome ??= { error: own }
      }
    }
  }

  /** Rejects what waits for a session: none can be had now. */
  fail(error: unknown): void {
    for (const line of this.#lines) {
      if (line.dueAs !== undefined && this.#leftFor(line) > 0) line.rejectAll(error)
    }
  }

  /** Rejects what waits or comes, and resolves once no session is in use. Never throws. */
  async end(): Promise<void> {
    this.#ended = ENDED
    for (const line of this.#lines) line.rejectAll(ENDED)
    this.#sessions.close()
    if (this.#usage.used === 0 && this.#loans.readiness.running === 0) return
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#onUnused = resolve
    await promise
  }
}

/** A read does not wait behind writes. Raw SQL may write. */
const useOf = ({ query }: CompiledQuery): Use => (SelectQueryNode.is(query) ? 'read' : 'write')

const ENDED = new BrokenDatabaseError(new Error('The service has closed the database'), true)
const OVERLOADED = new OverloadedError('Too many calls wait for the database')
