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

/** What the calls of a line wait for: see the table in lanes.ts. */
export type State = 'empty' | 'gathering' | 'held' | 'due'

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
  /** Waiting calls of one name are one input; a call without one is one by itself. */
  name: bigint | string | undefined
  /** The line in which it waits. */
  line: Line | undefined
  /** The first call of its name, whose input is that of all. */
  first: QueuedCall = this
  /** Of the first call: the later ones, which have its output, and the number of all that wait. */
  others: QueuedCall[] | undefined
  waiting = 0

  constructor(input: unknown, name: QueuedCall['name'], deadline: Deadline) {
    this.input = input
    this.name = name
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

  /** Resolves the call, and the others of its name. */
  answer(output: unknown): void {
    this.resolve(output)
    if (this.others) for (const other of this.others) other.resolve(output)
  }

  /** Makes the call one that may wait again, with an input of its own. */
  separate(): void {
    this.name = undefined
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
  /** The first call of each input, in the order of their arrival. Some have been given up. */
  #calls: QueuedCall[] = []
  /**
   * Those of several calls that wait, by their names. A new map for each statement: V8 links the tables of a map
   * that is emptied and filled again, so the garbage collector would keep the calls of the old ones.
   */
  #named: Map<QueuedCall['name'], QueuedCall> | undefined
  /** The number of calls that wait, and of their inputs. */
  count = 0
  #inputs = 0
  /** The statements of this round that still run: they hold the waiting calls back. `letGo` begins a new round. */
  #holding = 0
  #round = 0
  /** The number of calls of the latest statement. */
  lastCount = 0
  /** See the table in lanes.ts. */
  state: State = 'empty'
  /** How often it has begun to gather calls. */
  turn = 0
  /**
   * Whether a call has begun alone in this turn of the event loop, where the database answers within the turn:
   * otherwise each further call of the turn would seem alone.
   */
  wasAlone = false
  /** Lets the calls go that are held back for long. */
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
    return this.count >= MAX_WAITING && this.state !== 'gathering'
  }

  /** Whether the statements that run hold the waiting calls back. */
  get isHeld(): boolean {
    return this.#holding >= this.#maxLanes && this.#inputs < this.#maxSize
  }

  /** The number of lanes that the waiting calls could have. */
  get wanted(): number {
    const lanes = Math.ceil(this.#inputs / this.#maxSize)
    return Math.min(lanes, Math.max(1, this.#maxLanes - this.#holding))
  }

  add(call: QueuedCall): void {
    const { name } = call
    const first = name === undefined ? undefined : this.#firstOf(name)
    if (!first) {
      this.#calls.push(call)
      this.#named?.set(name, call)
    } else if (first.others) first.others.push(call)
    else first.others = [call]
    call.line = this
    call.first = first ?? call
    if (call.first.waiting++ === 0) this.#inputs++
    this.count++
    this.#usage.waiting++
  }

  /** Removes a call from those that wait. */
  remove(call: QueuedCall): void {
    this.#leave(call)
    const { first } = call
    if (first.waiting > 0) return
    this.#inputs--
    this.#named?.delete(first.name)
    if (this.count === 0 && this.state !== 'gathering') this.clear()
    // While no lane can be had, those that are given up must not add up.
    else if (this.#calls.length > 2 * MAX_WAITING) this.#calls = this.#calls.filter(waits)
  }

  /** Removes the calls of the next statement, and returns the first one of each input. */
  takeNext(): QueuedCall[] {
    const next = this.#nextCalls()
    for (const first of next) {
      // It may have been given up, while others of its name wait.
      if (first.line) this.#leave(first)
      if (first.others) for (const other of first.others) if (other.line) this.#leave(other)
    }
    this.#inputs -= next.length
    this.#stopTimer()
    if (this.count === 0) this.clear()
    else if (this.#named) for (const { name } of next) this.#named.delete(name)
    return next
  }

  /** Lets the calls wait for others. Returns the turn. */
  gather(): number {
    this.#stopTimer()
    this.state = 'gathering'
    return ++this.turn
  }

  /** Notes that no call waits. */
  clear(): void {
    this.#calls = []
    this.#named = undefined
    this.state = 'empty'
    this.#stopTimer()
  }

  #stopTimer(): void {
    clearTimeout(this.timer)
    this.timer = undefined
  }

  #leave(call: QueuedCall): void {
    call.line = undefined
    call.first.waiting--
    this.count--
    this.#usage.waiting--
  }

  /** Returns the call with this name whose input is that of all, if there is one. */
  #firstOf(name: QueuedCall['name']): QueuedCall | undefined {
    if (this.count === 0) return undefined
    this.#named ??= new Map(this.#calls.filter(waits).map((call) => [call.name, call]))
    return this.#named.get(name)
  }

  #nextCalls(): QueuedCall[] {
    const all = this.#calls
    if (this.#inputs === all.length && this.#inputs <= this.#maxSize) return all
    const next: QueuedCall[] = []
    let index = 0
    for (; index < all.length && next.length < this.#maxSize; index++) {
      const call = all[index] as QueuedCall // the index is within the list
      if (waits(call)) next.push(call)
    }
    all.splice(0, index)
    return next
  }

  /** Notes that a statement of so many calls has begun. Returns the round, for `noteEnd`. */
  noteBegin(count: number): number {
    this.lastCount = count
    this.#holding++
    return this.#round
  }

  /** Notes that a statement has ended: its calls are due, also those that gather. */
  noteEnd(round: number): void {
    if (round === this.#round) this.#holding--
    if (this.count === 0) return
    this.#stopTimer()
    this.state = 'due'
  }

  /** Lets the calls go that the statements hold back. The statements go on. */
  letGo(): void {
    this.timer = undefined
    this.#round++
    this.#holding = 0
    this.state = 'due'
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

/** Whether the first call of an input waits, or others of its name do. */
const waits = ({ waiting }: QueuedCall): boolean => waiting > 0

/** Returns the calls, and with each the others of its name. */
export const withOthers = (calls: QueuedCall[]): QueuedCall[] =>
  calls.some(({ others }) => others)
    ? calls.flatMap((call) => [call, ...(call.others ?? [])])
    : calls
