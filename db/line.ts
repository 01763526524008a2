/** The lines in which the calls of a database wait for lanes. lanes.ts alone decides when a line begins. */
import type { Kysely } from 'kysely'
import type { Deadline, Waiter } from './deadline.ts'
import { type Compiled, type LoanPlan, type Plan, statementOf, type WorkPlan } from './plan.ts'
import type { Session } from './session.ts'
import type { Tables } from './tables.ts'

/** Maximum number of calls that wait in a line. */
const MAX_WAITING = 1_000

/**
 * Number of lanes of a line whose calls share statements: while the database works on one statement, the
 * service answers the calls of the other. A second lane makes pages and creations with a key 3 to 7 % faster;
 * a third makes the statements so small that it costs more than it saves.
 */
const SHARED_LANES = 2

/** Milliseconds for which each call has a statement of its own, after one of several was impossible. */
const SPLIT_LIFETIME = 60_000

/** The current numbers of lanes in use, and of calls that wait for one. */
export interface Usage {
  used: number
  waiting: number
}

/** A call in a line, or whose statement runs. */
export class QueuedCall implements Waiter {
  readonly input: unknown
  readonly deadline: Deadline
  readonly promise: Promise<unknown>
  readonly resolve: (output: unknown) => void
  readonly reject: (error: unknown) => void
  /** What the waiting calls have in common that are one input: the name of a plan, or the call itself. */
  key: unknown
  /** The line in which it waits. */
  line: Line | undefined
  /** The first call of its key, whose input is that of all. */
  first: QueuedCall = this
  /** Of the first call: the later ones, which have its output, and the number of all that wait. */
  others: QueuedCall[] | undefined
  waiting = 0

  constructor(input: unknown, name: bigint | string | undefined, deadline: Deadline) {
    this.input = input
    this.key = name ?? this
    this.deadline = deadline
    const { promise, resolve, reject } = Promise.withResolvers<unknown>()
    this.promise = promise
    this.resolve = resolve
    this.reject = reject
  }

  /** Rejects the call with the reason of its deadline. */
  giveUp(reason: Error): void {
    this.line?.remove(this)
    this.reject(reason)
  }

  /** Resolves the call, and the others of its key. */
  answer(output: unknown): void {
    this.resolve(output)
    for (const other of this.others ?? []) other.resolve(output)
  }

  /** Makes the call one that may wait again, with an input of its own. */
  separate(): void {
    this.key = this
    this.first = this
    this.others = undefined
  }
}

/** Calls that wait for lanes: of a plan and a kind of its inputs. */
export class Line {
  readonly plan: Plan<never, unknown> | WorkPlan<never, unknown> | LoanPlan
  readonly kind: string
  readonly isLoan: boolean
  /** The compiled statements of the plan and the kind. */
  readonly compiled: Compiled
  readonly #usage: Usage
  readonly #maxSize: number
  readonly #maxLanes: number
  /** The first calls of each key, in the order of their arrival. */
  readonly #inputs = new Map<unknown, QueuedCall>()
  /** The number of calls that wait. */
  count = 0
  /**
   * The number of statements that hold the waiting calls back, and how often they were let go: a statement of an
   * earlier round holds nothing back.
   */
  #holding = 0
  #round = 0
  /** The number of calls of the latest statement. */
  lastCount = 0
  /** Whether it will be due in a turn or two. */
  isScheduled = false
  /**
   * Whether a call has begun alone in this turn of the event loop. SQLite answers within the turn, so without
   * this each further call of the turn would seem alone.
   */
  hasBegun = false
  /** Whether the waiting calls may begin. */
  isDue = false
  /** Lets the calls begin that have been held back for long. */
  timer: NodeJS.Timeout | undefined
  #splitUntil = 0
  #single: Line | undefined

  constructor(
    plan: Line['plan'],
    kind: string,
    compiled: Compiled,
    maxSize: number,
    usage: Usage,
    maxLanes = SHARED_LANES,
  ) {
    this.plan = plan
    this.kind = kind
    this.isLoan = 'isLoan' in plan
    this.compiled = compiled
    this.#maxSize = maxSize
    this.#maxLanes = this.isLoan ? Number.POSITIVE_INFINITY : maxLanes
    this.#usage = usage
  }

  /** The line of the calls of this one each of which has a statement of its own. */
  get single(): Line {
    const { plan, kind, compiled } = this
    this.#single ??= new Line(plan, kind, compiled, 1, this.#usage, Number.POSITIVE_INFINITY)
    return this.#single
  }

  /** Lets each call have a statement of its own for a minute: the database may serve several together by then. */
  split(): void {
    this.#splitUntil = performance.now() + SPLIT_LIFETIME
  }

  get isSplit(): boolean {
    return performance.now() < this.#splitUntil
  }

  /** Whether no other call may wait. The calls of one turn are never too many: they are about to begin. */
  get isFull(): boolean {
    return this.count >= MAX_WAITING && !this.isScheduled
  }

  /** Whether the statements that run hold the waiting calls back. */
  get isHeld(): boolean {
    return this.#holding >= this.#maxLanes && this.#inputs.size < this.#maxSize
  }

  /** The number of lanes that the waiting calls could have. */
  get wanted(): number {
    const lanes = Math.ceil(this.#inputs.size / this.#maxSize)
    return Math.min(lanes, Math.max(1, this.#maxLanes - this.#holding))
  }

  add(call: QueuedCall): void {
    const first = this.#inputs.get(call.key)
    if (!first) this.#inputs.set(call.key, call)
    else if (first.others) first.others.push(call)
    else first.others = [call]
    call.line = this
    call.first = first ?? call
    call.first.waiting++
    this.count++
    this.#usage.waiting++
  }

  /** Removes a call from those that wait. */
  remove(call: QueuedCall): void {
    call.line = undefined
    this.count--
    this.#usage.waiting--
    const { first } = call
    if (--first.waiting === 0) this.#inputs.delete(first.key)
  }

  /** Removes the calls of the next statement, and returns the first one of each key. */
  takeNext(): QueuedCall[] {
    const next: QueuedCall[] = []
    for (const first of this.#inputs.values()) {
      if (next.length === this.#maxSize) break
      next.push(first)
      if (first.line) this.remove(first)
      for (const other of first.others ?? []) if (other.line) this.remove(other)
    }
    if (this.count === 0) this.isDue = this.isLoan
    clearTimeout(this.timer)
    this.timer = undefined
    return next
  }

  /** Notes that a statement of so many calls has begun. Returns the round, for `ended`. */
  began(count: number): number {
    this.lastCount = count
    this.#holding++
    return this.#round
  }

  ended(round: number): void {
    if (round === this.#round) this.#holding--
    if (this.count > 0) this.isDue = true
  }

  /** Lets the calls go that the statements hold back. The statements go on. */
  letGo(): void {
    this.#round++
    this.#holding = 0
  }

  /** Runs inputs on a session, and returns their outputs in order. Throws the errors of db/errors.ts. */
  async run(
    db: Kysely<Tables>,
    session: Session,
    inputs: unknown[],
    deadline: Deadline,
  ): Promise<unknown[]> {
    const { plan, kind, compiled } = this
    if ('isLoan' in plan) throw new Error('A loan runs nothing')
    if ('run' in plan) return await plan.run(session, inputs as never[], deadline)
    const statement = statementOf(plan, kind, compiled, db, inputs as never[])
    return plan.split(await session.execute<never>(statement, deadline), inputs as never[])
  }
}

/** Returns the calls, and with each the others of its key. */
export const withOthers = (calls: QueuedCall[]): QueuedCall[] =>
  calls.some(({ others }) => others)
    ? calls.flatMap((call) => [call, ...(call.others ?? [])])
    : calls
