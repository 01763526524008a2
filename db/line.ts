/** The lines in which calls wait for sessions. A line alone changes what waits in it; queue.ts decides when it begins. */
import type { Deadline, Waiter } from './deadline.ts'
import type { Plan, Use } from './plan.ts'

/** A line is full when as many entries wait as here, for as many statements: what few statements serve is soon over. */
const FULL = { entries: 1_000, statements: 100 }

/** The current numbers of sessions in use, and of entries that wait for one. */
export interface Usage {
  used: number
  waiting: number
}

/** What has a session for itself, until it gives the session back. */
export interface Loan {
  readonly use: Use
  readonly isLoan: true
}

/** What a call waits for: the output of an input of its plan, or a session. */
export class Entry implements Waiter {
  readonly group: Group
  readonly deadline: Deadline
  readonly promise: Promise<unknown>
  readonly resolve: (output: unknown) => void
  readonly reject: (error: unknown) => void

  constructor(group: Group, deadline: Deadline) {
    this.group = group
    this.deadline = deadline
    const { promise, resolve, reject } = Promise.withResolvers<unknown>()
    this.promise = promise
    this.resolve = resolve
    this.reject = reject
  }

  /** Leaves the line, or what runs, with the reason of the deadline. */
  giveUp(reason: Error): void {
    this.group.line.leave(this)
    this.reject(reason)
  }
}

/** The entries of one input. */
export class Group {
  readonly line: Line
  readonly input: unknown
  readonly identity: unknown
  /** In the order of their arrival. */
  readonly entries = new Set<Entry>()
  /** The place in the order of all groups of the line. */
  readonly serial: number

  constructor(line: Line, serial: number, input: unknown, identity: unknown) {
    this.line = line
    this.serial = serial
    this.input = input
    this.identity = identity
  }

  /** Whether one of its entries is not given up. */
  get isLive(): boolean {
    for (const { deadline } of this.entries) if (!deadline.reason) return true
    return false
  }

  resolve(output: unknown): void {
    for (const entry of this.entries) entry.resolve(output)
  }

  reject(error: unknown): void {
    for (const entry of this.entries) entry.reject(error)
  }
}

/** What waits for sessions: the inputs of a plan of one kind, or loans of one use. */
export class Line {
  readonly work: Plan<never, unknown> | Loan
  readonly #maxSize: number
  readonly #usage: Usage
  /** What waits, a group for each input, in order. A new list once all have begun or left: see `gathering`. */
  #groups: Group[] = []
  /**
   * Those of several groups, by their identities. A new map after each statement: V8 links the tables of a map
   * that is emptied and filled again, so the garbage collector would keep the entries of the old ones.
   */
  #known: Map<unknown, Group> | undefined
  /** The number of entries that wait. */
  #count = 0
  #serial = 0
  #isDue = false
  /** The number of entries of the latest statement. */
  #lastCount = 0

  /** `maxSize` is the maximum number of inputs of a statement. */
  constructor(work: Line['work'], maxSize: number, usage: Usage) {
    this.work = work
    this.#maxSize = maxSize
    this.#usage = usage
  }

  get isEmpty(): boolean {
    return this.#count === 0
  }

  /** Whether its entries wait for a session. Before, they gather: they wait for others of the moment or the turn. */
  get isDue(): boolean {
    return this.#isDue
  }

  /** Whether no other entry may wait. Those that gather are never too many: they are about to begin. */
  get isFull(): boolean {
    const isLong = this.#count >= FULL.entries && this.statements >= FULL.statements
    return this.#isDue && isLong
  }

  /** The number of statements, or loans, that would take along what waits. */
  get statements(): number {
    return Math.ceil(this.#groups.length / this.#maxSize)
  }

  /** Whether the latest statement had one entry at most. */
  get wasAlone(): boolean {
    return this.#lastCount <= 1
  }

  /** Adds an entry: to those of its identity, if there are any. */
  join(input: unknown, identity: unknown, deadline: Deadline): Entry {
    const group = this.#groupOf(identity) ?? this.#newGroup(input, identity)
    const entry = new Entry(group, deadline)
    group.entries.add(entry)
    this.#count++
    this.#usage.waiting++
    return entry
  }

  #groupOf(identity: unknown): Group | undefined {
    if (identity === undefined || this.#count === 0) return undefined
    this.#known ??= new Map(this.#groups.map((group) => [group.identity, group]))
    return this.#known.get(identity)
  }

  #newGroup(input: unknown, identity: unknown): Group {
    const group = new Group(this, this.#serial++, input, identity)
    this.#groups.push(group)
    this.#known?.set(identity, group)
    return group
  }

  /** Removes an entry that is given up, unless it has begun. */
  leave(entry: Entry): void {
    const { group } = entry
    const place = placeOf(this.#groups, group.serial)
    if (this.#groups[place] !== group) return
    group.entries.delete(entry)
    this.#count--
    this.#usage.waiting--
    if (group.entries.size > 0) return
    this.#groups.splice(place, 1)
    this.#known?.delete(group.identity)
    if (this.#count === 0) this.#clear()
  }

  /** Returns what stands for the entries that gather now, for `makeDue`: their list, which is another one once they have begun. */
  get gathering(): unknown {
    return this.#groups
  }

  /** Makes the entries due that gathered then, if they still do. Returns whether it has. */
  makeDue(gathering: unknown): boolean {
    if (this.#groups !== gathering || this.#isDue || this.#count === 0) return false
    this.#isDue = true
    return true
  }

  /** Makes the entries due that wait, also those that gather: a session has become free. */
  hurry(): void {
    this.#isDue = this.#count > 0
  }

  /** Removes the groups of the next statement, and returns them. */
  take(size = this.#maxSize): Group[] {
    const next = this.#groups.length <= size ? this.#groups : this.#groups.splice(0, size)
    const count = next.reduce((sum, { entries }) => sum + entries.size, 0)
    this.#lastCount = count
    this.#count -= count
    this.#usage.waiting -= count
    if (this.#count === 0) this.#clear()
    this.#known = undefined
    return next
  }

  /** Rejects all entries. */
  rejectAll(error: unknown): void {
    for (const group of this.take(this.#groups.length)) group.reject(error)
  }

  #clear(): void {
    this.#groups = []
    this.#known = undefined
    this.#isDue = false
  }
}

/** Returns the place of the group with this serial, by halves: a thousand that leave do not each search a thousand. */
function placeOf(groups: Group[], serial: number): number {
  let low = 0
  let high = groups.length
  while (low < high) {
    const middle = (low + high) >> 1
    if ((groups[middle] as Group).serial < serial) low = middle + 1
    else high = middle
  }
  return low
}
