/** The lines in which calls wait: first for others, with which they share a statement, and then for a session. */
import type { Deadline, Waiter } from './deadline.ts'
import type { Plan, Use } from './plan.ts'

/** A line is full when as many entries wait as here, for as many statements: what few statements serve is soon over. A hundred of 10 ms on eight sessions take an eighth of a second. */
const FULL = { entries: 1_000, statements: 100 }

/** The current numbers of sessions in use, without that of readiness, and of entries that wait. */
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

interface LineSettings {
  /** Maximum number of inputs of a statement. */
  maxSize: number
  /** The line keeps these numbers current, as the queue does. */
  usage: Usage
  /** Is called when entries become due. */
  onDue(line: Line): void
  /** Is called when none of those is left. */
  onEmpty(line: Line): void
}

/**
 * What waits: the inputs of a plan of one kind, or loans of one use. Its entries gather for two turns of the event
 * loop at most, to share a statement; then they are due, and wait for a session.
 */
export class Line {
  readonly task: Plan<never, unknown> | Loan
  readonly #settings: LineSettings
  /** What waits, a group for each input, in order. A new list once all have begun, which have the old one. */
  #groups: Group[] = []
  /**
   * The groups by identity, once there are several. A new map after each statement: V8 links the tables of a map
   * that is emptied and filled again, so the garbage collector would keep the entries of the old ones.
   */
  #known: Map<unknown, Group> | undefined
  /** The number of entries that wait. */
  #count = 0
  #running = 0
  #serial = 0
  /** The number of the gathering. The next one begins once all entries have begun or left. */
  #gathering = 0
  #isDue = false
  /** The number of entries of the latest statement. */
  #lastCount = 0

  constructor(task: Line['task'], settings: LineSettings) {
    this.task = task
    this.#settings = settings
  }

  get isDue(): boolean {
    return this.#isDue
  }

  /** The number of statements, or loans, that have a session. */
  get running(): number {
    return this.#running
  }

  /** Whether no other entry may wait. Those that gather are never too many: they are about to begin. */
  get isFull(): boolean {
    const isLong = this.#count >= FULL.entries && this.statements >= FULL.statements
    return this.#isDue && isLong
  }

  /** The number of statements, or loans, that would take along what waits. */
  get statements(): number {
    return Math.ceil(this.#groups.length / this.#settings.maxSize)
  }

  /** Adds an entry, to those of its identity if there are any, until its deadline. */
  join(input: unknown, identity: unknown, deadline: Deadline): Entry {
    const { usage } = this.#settings
    const isFirst = this.#count === 0
    const isAlone = usage.used === 0 && usage.waiting === 0 && this.#lastCount <= 1
    const group = this.#groupOf(identity) ?? this.#newGroup(input, identity)
    const entry = new Entry(group, deadline)
    group.entries.add(entry)
    this.#count++
    usage.waiting++
    deadline.add(entry)
    if (isFirst) this.#gather(isAlone)
    return entry
  }

  /** Makes the entries due after the time in which others may join them. */
  #gather(isAlone: boolean): void {
    const gathering = this.#gathering
    if (isLoan(this.task)) this.#endGathering(gathering)
    // The calls of a batch come in one moment.
    else if (isAlone) queueMicrotask(() => this.#endGathering(gathering))
    // Clients that are answered in this turn send their next requests in the following one: with one turn, pages
    // and mixed calls were a twentieth slower.
    else setImmediate(() => setImmediate(this.#endGathering, gathering))
  }

  readonly #endGathering = (gathering: number): void => {
    if (this.#gathering === gathering) this.#becomeDue()
  }

  #becomeDue(): void {
    if (this.#isDue || this.#count === 0) return
    this.#isDue = true
    this.#settings.onDue(this)
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
    this.#settings.usage.waiting--
    if (group.entries.size > 0) return
    this.#groups.splice(place, 1)
    this.#known?.delete(group.identity)
    if (this.#count === 0) this.#clear()
  }

  /** Takes note of a statement that has begun. Returns its groups, which wait no longer. */
  begin(size: number = this.#settings.maxSize): Group[] {
    this.#running++
    return this.#take(size)
  }

  /** Takes note of a statement that has ended. What still gathers is due: it waits no longer than a statement took. */
  end(): void {
    this.#running--
    this.#becomeDue()
  }

  /** Removes the first groups, and returns them. */
  #take(size: number): Group[] {
    const next = this.#groups.length <= size ? this.#groups : this.#groups.splice(0, size)
    const count = next.reduce((sum, { entries }) => sum + entries.size, 0)
    this.#lastCount = count
    this.#count -= count
    this.#settings.usage.waiting -= count
    if (this.#count === 0) this.#clear()
    this.#known = undefined
    return next
  }

  /** Rejects all entries. */
  rejectAll(error: unknown): void {
    for (const group of this.#take(this.#groups.length)) group.reject(error)
  }

  #clear(): void {
    this.#groups = []
    this.#known = undefined
    this.#gathering++
    if (!this.#isDue) return
    this.#isDue = false
    this.#settings.onEmpty(this)
  }
}

export const isLoan = (task: Line['task']): task is Loan => 'isLoan' in task

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
