/** The lines in which the calls of a database wait for lanes: see lanes.ts, which decides when a line begins. */
import type { Deadline } from './deadline.ts'
import type { Compiled, Plan } from './plan.ts'

/** Maximum number of calls that wait in a line. */
const MAX_WAITING = 1_000

/** Milliseconds after which a statement no longer holds back the calls of its line: it may hang. */
const MAX_HOLD = 50

/** Milliseconds for which each call has a statement of its own, after one of several was impossible. */
const SPLIT_LIFETIME = 60_000

/** What a lane is used for. `ahead` is for readiness: before all others, and if need be one lane beyond all. */
export type Use = 'read' | 'write' | 'ahead'

/** A call in a line, or whose statement runs. */
export class QueuedCall {
  readonly input: unknown
  readonly name: bigint | string | undefined
  readonly deadline: Deadline
  readonly promise: Promise<unknown>
  readonly resolve: (output: unknown) => void
  readonly reject: (error: unknown) => void
  isWaiting = true
  /** The first call of its name that waits, whose input is that of all. */
  first: QueuedCall = this
  /** Of the first call: the later ones of its name, which have its output, and the number of all that wait. */
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

  /** Resolves the call, and the others of its name. */
  answer(output: unknown): void {
    this.resolve(output)
    for (const other of this.others ?? []) other.resolve(output)
  }

  /** Rejects the call, and the others of its name. */
  fail(error: unknown): void {
    this.reject(error)
    for (const other of this.others ?? []) other.reject(error)
  }
}

/** Calls that wait for lanes: of a plan and a kind, the works of shared transactions, or loans of sessions. */
export class Line {
  readonly use: Use
  readonly plan: Plan<never, unknown> | undefined
  readonly kind: string
  /** The statements of the plan for each number of inputs. */
  readonly compiled: Compiled
  /** Whether each call has a session for itself. */
  readonly isOfLoans: boolean
  readonly #next: () => void
  readonly #maxSize: number
  readonly #maxLanes: number
  /** The calls, in the order of their arrival. Some have been given up. */
  #calls: QueuedCall[] = []
  /** The number of calls that wait, and of their inputs. */
  count = 0
  #inputs = 0
  /**
   * The number of statements that hold the waiting calls back, and how often the 50 ms have passed: a statement of
   * an earlier round holds nothing back.
   */
  #holding = 0
  #round = 0
  /** The number of calls of the latest statement. */
  lastCount = 0
  isScheduled = false
  /**
   * Whether a call has begun alone in this turn of the event loop. SQLite answers within the turn, so without
   * this each further call of the turn would seem alone.
   */
  hasBegun = false
  /** Whether the waiting calls may begin. */
  isDue = false
  #splitUntil = 0
  #alone: Line | undefined
  #timer: NodeJS.Timeout | undefined

  constructor(
    next: () => void,
    use: Use,
    maxSize: number,
    maxLanes: number,
    of?: Pick<Line, 'plan' | 'kind' | 'compiled'>,
  ) {
    this.#next = next
    this.use = use
    this.#maxSize = maxSize
    this.#maxLanes = maxLanes
    this.plan = of?.plan
    this.kind = of?.kind ?? ''
    this.compiled = of?.compiled ?? new Map()
    this.isOfLoans = !of && maxSize === 1
  }

  /** Lets each call have a statement of its own for a minute: the database may serve several together by then. */
  split(): void {
    this.#splitUntil = performance.now() + SPLIT_LIFETIME
  }

  get isSplit(): boolean {
    return performance.now() < this.#splitUntil
  }

  /** The line of the calls each of which has a statement of its own. */
  get alone(): Line {
    this.#alone ??= new Line(this.#next, this.use, 1, Number.POSITIVE_INFINITY, this)
    return this.#alone
  }

  /** Whether no other call may wait. The calls of one turn are never too many: they are about to begin. */
  get isFull(): boolean {
    return this.count >= MAX_WAITING && !this.isScheduled
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

  /** Whether it has calls, perhaps none that waits. */
  get hasCalls(): boolean {
    return this.#calls.length > 0
  }

  /** Adds a call. Returns whether the line was empty. */
  add(call: QueuedCall): boolean {
    const wasEmpty = this.#calls.length === 0
    const same = call.name !== undefined && this.#calls.find(({ name }) => name === call.name)
    if (!same) this.#calls.push(call)
    else if (same.others) same.others.push(call)
    else same.others = [call]
    if (same) call.first = same
    this.count++
    if (call.first.waiting++ === 0) this.#inputs++
    return wasEmpty
  }

  /** Removes a call from those that wait. */
  leave(call: QueuedCall): void {
    call.isWaiting = false
    this.count--
    if (--call.first.waiting === 0) this.#inputs--
  }

  /** Takes the calls of the next statement out of the line, without those that were given up. */
  take(): QueuedCall[] {
    let calls: QueuedCall[] = []
    if (this.#inputs === this.#calls.length && this.#inputs <= this.#maxSize) {
      calls = this.#calls
      this.#calls = []
    }
    while (this.#calls.length > 0 && calls.length < this.#maxSize) {
      for (const call of this.#calls.splice(0, this.#maxSize - calls.length)) {
        if (call.waiting > 0) calls.push(call)
      }
    }
    if (this.#calls.length === 0) this.isDue = this.isOfLoans
    clearTimeout(this.#timer)
    this.#timer = undefined
    return calls
  }

  /** Notes that a statement of so many calls has begun. Returns the round, for `ended`. */
  began(count: number): number {
    this.lastCount = count
    this.#holding++
    if (this.count > 0 && this.isHeld) this.startTimer()
    return this.#round
  }

  ended(round: number): void {
    if (round === this.#round) this.#holding--
    if (this.count > 0) this.isDue = true
  }

  readonly passTurn = (): void => {
    this.hasBegun = false
  }

  /** Lets the waiting calls begin. */
  readonly begin = (): void => {
    this.isScheduled = false
    if (this.count === 0) return
    this.isDue = true
    this.#next()
  }

  startTimer(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      this.#round++ // the statements go on
      this.#holding = 0
      this.begin()
    }, MAX_HOLD)
  }
}
