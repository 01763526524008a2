/** The lines in which calls wait: for the output of an input of a plan, or for a session. */
import type { Deadline, Waiter } from './deadline.ts'
import type { AnyPlan, Use } from './plan.ts'

/**
 * A line is long when at least so many entries wait, which need at least so many statements. A crowd of fewer is soon
 * served: a hundred statements of 10 ms take an eighth of a second on the eight sessions of ten that a line may have, and
 * a thousand transactions two seconds on the five that it may have to write. More would wait longer than their callers do.
 */
const LONG = { entries: 1_000, statements: 100 }

/** The current numbers of sessions in use, without that of readiness, and of entries that wait. */
export interface Usage {
  used: number
  waiting: number
}

/** A call that waits in a line for its answer: the result of its input, or a session. */
class Entry implements Waiter {
  readonly group: Group
  readonly deadline: Deadline
  readonly deferred = Promise.withResolvers<unknown>()

  constructor(group: Group, deadline: Deadline) {
    this.group = group
    this.deadline = deadline
  }

  /** Leaves the line, or what runs, with the reason of the deadline. */
  giveUp(reason: Error): void {
    this.group.line.leave(this)
    this.deferred.reject(reason)
  }
}

/** How the input of a group ended, or its loan began. */
type GroupOutcome = { result: unknown } | { error: unknown }

/** The entries of one input. */
export class Group {
  readonly line: Line
  readonly input: unknown
  readonly identity: unknown
  /** In the order of their arrival. */
  readonly entries = new Set<Entry>()
  /** Undefined until it is known; for good if all entries are given up before. */
  outcome: GroupOutcome | undefined

  constructor(line: Line, input: unknown, identity: unknown) {
    this.line = line
    this.input = input
    this.identity = identity
  }

  /** Whether one of its entries is not given up. */
  get isLive(): boolean {
    for (const { deadline } of this.entries) if (!deadline.reason) return true
    return false
  }

  /** Answers its entries with the outcome, if there is one. */
  answer(outcome = this.outcome): void {
    if (!outcome) return
    for (const { deferred } of this.entries) {
      if ('error' in outcome) deferred.reject(outcome.error)
      else deferred.resolve(outcome.result)
    }
  }
}

/** What waits: the inputs of a plan of one kind, or loans of one use. The queue says when they begin. */
export class Line {
  readonly use: Use
  /** The plan of the inputs; undefined for loans, each of which has a session for itself. */
  readonly plan: AnyPlan | undefined
  /** Maximum number of inputs that begin together. */
  readonly maxSize: number
  // What waits gathers first; then the line is due, until a session takes it along.
  /** The number of its statements, or loans, that have a session. The queue sets it. */
  running = 0
  /** The number of entries that wait. The line sets it. */
  waiting = 0
  /** Its number among the lines that are due, of which the least is first: the queue sets it, and the line makes it undefined. */
  dueAs: number | undefined
  /** The number of the gathering: the line sets another one once what waits has begun or left. */
  gathering = 0
  readonly #usage: Usage
  /** What waits, a group for each input, in order. */
  readonly #groups: Group[] = []
  /**
   * The groups by identity, once there are several. A new map after each statement: V8 links the tables of a map
   * that is emptied and filled again, so the garbage collector would keep the entries of the old ones.
   */
  #known: Map<unknown, Group> | undefined

  /** `usage.waiting` counts the entries of all lines. */
  constructor(use: Use, plan: AnyPlan | undefined, maxSize: number, usage: Usage) {
    this.use = use
    this.plan = plan
    this.maxSize = maxSize
    this.#usage = usage
  }

  get isLong(): boolean {
    return this.waiting >= LONG.entries && this.statementCount >= LONG.statements
  }

  /** The number of statements, or loans, that would take along what waits. */
  get statementCount(): number {
    return Math.ceil(this.#groups.length / this.maxSize)
  }

  /** Adds an entry, to those of its identity if there are any, until its deadline. Returns what settles with its answer. */
  join(input: unknown, deadline: Deadline): Promise<unknown> {
    const group = this.#groupOf(input)
    const entry = new Entry(group, deadline)
    group.entries.add(entry)
    this.waiting++
    this.#usage.waiting++
    deadline.add(entry) // until the call ends: to give it up has no effect once it is answered
    return entry.deferred.promise
  }

  /** Returns the group that has the identity of an input, or a new one. */
  #groupOf(input: unknown): Group {
    const identity = this.plan?.identityOf?.(input as never) // it is of the plan
    if (identity !== undefined && this.waiting > 0) {
      this.#known ??= new Map(this.#groups.map((group) => [group.identity, group]))
      const known = this.#known.get(identity)
      if (known) return known
    }
    const group = new Group(this, input, identity)
    this.#groups.push(group)
    this.#known?.set(identity, group)
    return group
  }

  /** Removes an entry that is given up, unless it has begun. */
  leave(entry: Entry): void {
    const { group } = entry
    const place = this.#groups.indexOf(group)
    if (place < 0) return
    group.entries.delete(entry)
    this.waiting--
    this.#usage.waiting--
    if (group.entries.size > 0) return
    this.#groups.splice(place, 1)
    this.#known?.delete(group.identity)
    if (this.waiting === 0) this.#startAnew()
  }

  /** Removes the first groups, up to `size` of them, and returns them. The rest is not due. */
  take(size: number): Group[] {
    const taken = this.#groups.splice(0, size)
    for (const { entries } of taken) {
      this.waiting -= entries.size
      this.#usage.waiting -= entries.size
    }
    this.#startAnew()
    return taken
  }

  /** Rejects all entries. */
  rejectAll(error: unknown): void {
    for (const group of this.take(this.#groups.length)) group.answer({ error })
  }

  #startAnew(): void {
    this.#known = undefined
    this.dueAs = undefined
    this.gathering++
  }
}
