/**
 * A model of the queue: what waits in each line, what runs, and which lanes are in use, by what the calls and
 * the sessions show. It checks each step of the lanes against their promises.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { Deadline, type Waiter } from '../../../db/deadline.ts'
import {
  BrokenDatabaseError,
  ConflictError,
  DatabaseUnavailableError,
  NoConsecutiveIdsError,
  OverloadedError,
  RejectedRowError,
} from '../../../db/errors.ts'
import { PartialError, type Plan, type Use } from '../../../db/plan.ts'
import { type SharedWork, sharedTransactions } from '../../../db/transaction.ts'
import { type ControlledSession, drain, newLanes, planOf, type Running, turns } from './lanes.ts'

/** Milliseconds for which a statement holds back the calls of its line. */
const HOLD = 50

interface Input {
  id: string
  name: string
}

const isOfOne = (error: unknown) =>
  error instanceof RejectedRowError || error instanceof NoConsecutiveIdsError

const kindOf = ({ name }: Input) => (name < 'c' ? 'low' : 'high')
const nameOf = ({ name }: Input) => name
const ofName = ({ name }: Input) => `of ${name}`
const ofInput = ({ id }: Input) => `of ${id}`
const sizeOf = (count: number) => 2 ** Math.ceil(Math.log2(count))

export const PLANS = {
  lookUps: planOf('lookUps', ofName, { maxSize: 4, nameOf, sizeOf }),
  // As no plan of the service yet: inputs of one name, whose statement one input may fail.
  named: planOf('named', ofName, { maxSize: 3, nameOf, isOfOne, kindOf }),
  pages: planOf('pages', ofInput, { maxSize: 2, isEarly: true, kindOf }),
  inserts: planOf('inserts', ofInput, { maxSize: 3, use: 'write', isEarly: true, isOfOne }),
  crowd: planOf('crowd', ofInput, { maxSize: 600 }),
} satisfies Record<string, Plan<Input, string>>

const MAX_WORKS = 100
const MAX_WAITING = 1_000

/** How a test ends what a session executes. */
export type Outcome = 'success' | 'no effect' | 'unknown effect' | 'rejected row' | 'no ids'

/** A call to the lanes. */
export interface Call {
  id: string
  use: Use
  plan?: Plan<Input, string>
  input: Input
  deadline: Deadline
  /** `joining`: it is about to wait. */
  state: 'joining' | 'waiting' | 'running' | 'pausing' | 'settled'
  isGivenUp: boolean
  /** The group in which it waits or has begun. */
  group?: Group
  waitingSince: number
  /** The number of calls of its line that waited before it. */
  ahead: number
  /** How many of its attempts the database may have kept. */
  effects: number
  pauses: number
  /** The number of inputs of its latest statement, or of works in its transaction. */
  inputs: number
  expected: unknown
  session?: ControlledSession
}

/** The calls of one name, which are one input. */
interface Group {
  line: Line
  name: string | undefined
  calls: Call[]
}

interface Line {
  use: Use
  maxSize: number
  /** Whether at most two statements may run. */
  isHeld: boolean
  groups: Group[]
  /** The number of calls that wait. */
  count: number
}

/** What a lane does. */
interface Lane {
  use: Use
  line: Line
  groups: Group[]
  beganAt: number
  hasEnded: boolean
}

const current = new AsyncLocalStorage<Call>()

function check(condition: unknown, promise: string): asserts condition {
  if (!condition) throw new Error(`Not so: ${promise}`)
}

const waits = ({ state, isGivenUp }: Call) => state === 'waiting' && !isGivenUp
const isLive = ({ calls }: Group) => calls.some(waits)

/** Lets the model see when a call begins to wait: then the lanes listen to its deadline. */
class WatchedDeadline extends Deadline {
  readonly #onWaiter: () => void
  constructor(onWaiter: () => void) {
    super(Number.POSITIVE_INFINITY)
    this.#onWaiter = onWaiter
  }

  override add(waiter: Waiter): void {
    this.#onWaiter()
    super.add(waiter)
  }
}

export class World {
  readonly calls: Call[] = []
  readonly running: Running[]
  readonly frozen = new Set<Running>()
  readonly size: number
  readonly #writers: number
  readonly #made: ReturnType<typeof newLanes>
  readonly #shared: typeof sharedTransactions
  readonly #lines = new Map<string, Line>()
  readonly #split = new Set<string>()
  readonly #lanes = new Map<ControlledSession, Lane | undefined>()
  readonly #works = new Map<unknown, Call>()
  /** Calls that the lanes let wait again, in this order, each for a statement of its own. */
  #alone: Call[] = []
  /** The first promise that was broken. */
  #failure: unknown
  /** The pauses before other attempts that have not passed. */
  pauses = 0
  #stop: 'no' | 'ending' | 'ended' = 'no'

  constructor(size: number, isInProcess: boolean, open: number) {
    this.size = size
    this.#writers = Math.max(1, Math.floor(size * 0.6))
    const catching =
      <Parameters extends unknown[]>(observe: (...parameters: Parameters) => void) =>
      (...parameters: Parameters) => {
        try {
          observe(...parameters)
        } catch (error) {
          this.#failure ??= error
        }
      }
    this.#made = newLanes({
      size,
      isInProcess,
      open,
      observer: {
        onTake: (session) => void this.#lanes.set(session, undefined),
        onGiveBack: (session) => void this.#lanes.delete(session),
        onRun: catching((running) => this.#onRun(running)),
        onEnd: catching((running, error) => this.#onEnd(running, error)),
      },
    })
    this.#shared = {
      ...sharedTransactions,
      run: async (session, works, deadline) => {
        catching(() => this.#onWorks(session as ControlledSession, works))()
        return await sharedTransactions.run(session, works, deadline).catch((error) => {
          // The model leaves it to examples that the other works run again.
          throw error instanceof PartialError ? new ConflictError(error, false) : error
        })
      },
    }
    this.running = this.#made.sessions.running
  }

  /** Returns a deadline that a call has for itself, or several calls share. */
  newDeadline(): Deadline {
    return new WatchedDeadline(() => {
      const call = current.getStore()
      if (call?.state === 'joining') this.#join(call, false)
    })
  }

  get sessions() {
    return this.#made.sessions
  }

  /** Calls a plan. */
  call(planName: keyof typeof PLANS, name: string, deadline = this.newDeadline()): Call {
    const plan: Plan<Input, string> = PLANS[planName]
    const input = { id: `${this.calls.length}`, name }
    const expected = plan.nameOf ? ofName(input) : ofInput(input)
    const call = this.#newCall({ use: plan.use, plan, input, deadline, expected })
    const lanes = this.#made.lanes
    this.#start(call, () => lanes.call(plan, input, deadline))
    return call
  }

  /** Takes a session. */
  borrow(use: Use): Call {
    const call = this.#newCall({ use, deadline: this.newDeadline() })
    this.#start(call, async () => {
      const session = (await this.#made.lanes.borrow(use, call.deadline)) as ControlledSession
      this.#begin(session, call.group?.line as Line, [call.group as Group])
      call.session = session
      return session
    })
    return call
  }

  /** Gives back a session. */
  release(call: Call): void {
    const { session } = call
    delete call.session
    if (session) this.#made.lanes.giveBack(session, call.use)
  }

  /** Runs work that inserts this many rows in a shared transaction. */
  share(rows: number, fails: boolean): Call {
    const call = this.#newCall({ use: 'write', deadline: this.newDeadline() })
    call.expected = call.id
    const run: SharedWork<string>['run'] = async (transaction, ofAll) => {
      const inputs = Array.from({ length: rows }, (_, row) => ({
        id: `${call.id}.${row}`,
        name: '',
      }))
      const writes = inputs.map((input) => transaction.lanes.call(PLANS.inserts, input, ofAll))
      await Promise.allSettled(writes)
      const outputs = await Promise.all(writes)
      const isOwn = `${outputs}` === `${inputs.map(ofInput)}`
      if (!isOwn) this.#failure ??= new Error('Not so: each row of a work has its own output')
      if (fails) throw new TypeError(`Work ${call.id} fails`)
      return call.id
    }
    const input = { db: this.#made.db, work: { run } }
    this.#works.set(input, call)
    this.#start(call, () => this.#made.lanes.share(this.#shared, input, call.deadline))
    return call
  }

  /** Gives up all calls with the deadline of this one. */
  giveUp({ deadline }: Call): void {
    for (const call of this.calls) {
      if (call.deadline !== deadline || call.state === 'settled') continue
      if (waits(call) && call.group) call.group.line.count--
      call.isGivenUp = true
    }
    deadline.giveUp(new Error('The client has left'))
  }

  /** Ends what a session executes. */
  end(running: Running, outcome: Outcome): void {
    const isStatement = running.sql !== 'begin' && running.sql !== 'commit'
    if (outcome === 'success') running.end()
    else if (outcome === 'rejected row' && isStatement) running.fail(new RejectedRowError('twice'))
    else if (outcome === 'no ids' && isStatement) running.fail(new NoConsecutiveIdsError())
    else {
      running.session.isLost = true
      running.fail(new DatabaseUnavailableError(undefined, outcome !== 'unknown effect'))
    }
  }

  open(count: number): void {
    this.sessions.open(Math.min(count, this.sessions.wanted))
  }

  failToOpen(): void {
    this.sessions.wanted = 0
    this.#made.lanes.fail(new DatabaseUnavailableError(undefined, true))
  }

  stop(): void {
    this.#stop = 'ending'
    void this.#made.lanes.end().then(() => {
      this.#stop = 'ended'
    })
  }

  /** What `node:timers/promises` calls between two attempts of a call. */
  pause(milliseconds: number): Promise<void> {
    const call = current.getStore()
    if (!call) throw new Error('Only calls pause')
    call.pauses++
    this.pauses++
    this.#leave(call, 'pausing')
    return new Promise((resolve) =>
      setTimeout(() => {
        this.pauses--
        if (call.state === 'pausing') call.state = 'joining'
        resolve()
      }, milliseconds),
    )
  }

  #newCall(call: Partial<Call> & Pick<Call, 'use' | 'deadline'>): Call {
    const id = `${this.calls.length}`
    const made: Call = {
      id,
      input: { id, name: '' },
      state: 'joining',
      isGivenUp: false,
      waitingSince: 0,
      ahead: 0,
      effects: 0,
      pauses: 0,
      inputs: 0,
      expected: undefined,
      ...call,
    }
    this.calls.push(made)
    return made
  }

  #start(call: Call, run: () => Promise<unknown>): void {
    if (call.deadline.reason) call.isGivenUp = true
    call.ahead = this.#lineOf(call, false).count
    current
      .run(call, run)
      .then(
        (value) => this.#onSuccess(call, value),
        (error: unknown) => this.#onError(call, error),
      )
      .catch((error: unknown) => {
        this.#failure ??= error
      })
  }

  #lineOf({ plan, use, input, expected }: Call, isAlone: boolean): Line {
    let key = plan
      ? nameOfStatement(plan, input)
      : expected === undefined
        ? `loans ${use}`
        : 'works'
    const base = key
    const isAloneLine = isAlone || this.#split.has(base)
    if (isAloneLine) key += ' alone'
    let line = this.#lines.get(key)
    if (!line) {
      const ofMany = plan ? plan.maxSize.server : key === 'works' ? MAX_WORKS : 1
      const isLoan = !plan && key !== 'works'
      line = {
        use,
        maxSize: isAloneLine ? 1 : ofMany,
        isHeld: !isAloneLine && !isLoan,
        groups: [],
        count: 0,
      }
      this.#lines.set(key, line)
    }
    return line
  }

  #join(call: Call, isAlone: boolean): void {
    const line = this.#lineOf(call, isAlone)
    const name = isAlone ? undefined : call.plan?.nameOf?.(call.input)?.toString()
    const known = line.groups.find((other) => name !== undefined && other.name === name)
    const group = known ?? { line, name, calls: [] }
    if (!known) line.groups.push(group)
    group.calls.push(call)
    call.group = group
    call.state = 'waiting'
    call.waitingSince = Date.now()
    call.ahead = line.count
    line.count++
  }

  /** Lets calls wait each for a statement of its own, until this one does. */
  #joinUntil(id: string): void {
    while (this.#alone.some((call) => call.id === id)) this.#joinNext()
  }

  #joinNext(): void {
    const call = this.#alone.shift()
    if (call && !call.isGivenUp) this.#join(call, true)
  }

  #leave(call: Call, state: Call['state']): void {
    if (waits(call) && call.group) {
      const { line } = call.group
      line.count--
      call.group.calls = call.group.calls.filter((other) => other !== call)
      line.groups = line.groups.filter(({ calls }) => calls.length > 0)
    }
    call.state = state
  }

  /** Lets groups of a line begin on a lane. */
  #begin(session: ControlledSession, line: Line, groups: Group[]): void {
    const beganAt = Date.now()
    if (line.isHeld) {
      const holding = [...this.#lanes.values()].filter(
        (lane) => lane?.line === line && !lane.hasEnded && beganAt - lane.beganAt < HOLD,
      )
      const isFull = groups.length === line.maxSize
      check(holding.length < 2 || isFull, 'a line has at most two lanes')
    }
    this.#lanes.set(session, { use: line.use, line, groups, beganAt, hasEnded: false })
    check(groups.length <= line.maxSize, 'a statement has at most so many inputs')
    check(groups.every(isLive), 'a call that was given up is not part of the next statement')
    const waiting = line.groups.filter(isLive)
    const isPlain = line.groups.every(({ calls }) => calls.every(waits))
    const isInOrder = groups.every((group, index) => waiting[index] === group)
    if (isPlain) check(isInOrder, 'the calls of a line begin in order')
    line.groups = line.groups.filter((group) => !groups.includes(group))
    for (const call of groups.flatMap(({ calls }) => calls)) {
      if (!waits(call)) continue
      line.count--
      call.state = 'running'
      call.inputs = groups.length
    }
    const isTakenAlong = groups.length === line.maxSize || line.count === 0
    check(isTakenAlong, 'a lane takes along the waiting calls of its line')
    const readiness = this.#lines.get('loans ahead')
    const lanes = [...this.#lanes.values()]
    const isBehind = (readiness?.count ?? 0) > 0 && !lanes.some((lane) => lane?.use === 'ahead')
    // The use of a lane that has only just begun is not known.
    if (!lanes.includes(undefined)) check(!isBehind, 'readiness begins before all others')
  }

  #onRun({ session, sql, inputs }: Running): void {
    if (sql === 'begin' || sql === 'commit' || session.isInTransaction) return
    const ids = [...new Set((inputs as Input[]).map(({ id }) => id))]
    for (const id of ids) this.#joinUntil(id)
    const groups = ids.map((id) => this.calls[Number(id)]?.group)
    const [line] = groups.map((group) => group?.line)
    check(line, 'a statement has calls')
    for (const group of groups) {
      check(group?.line === line, 'a statement has calls of one line')
      check(line.groups.includes(group), 'a statement has only calls that wait')
    }
    const [plan] = groups.map((group) => group?.calls[0]?.plan)
    const isPadded = plan === PLANS.lookUps
    check(inputs.length === (isPadded ? sizeOf(ids.length) : ids.length), 'no input comes twice')
    this.#begin(session, line, groups as Group[])
  }

  #onWorks(session: ControlledSession, works: unknown[]): void {
    const groups = works.map((work) => this.#works.get(work)?.group as Group)
    this.#begin(session, groups[0]?.line as Line, groups)
  }

  #onEnd({ session, sql, inputs, deadline }: Running, error: Error | undefined): void {
    const lane = this.#lanes.get(session)
    if (!lane) return
    const calls = lane.groups.flatMap((group) => group.calls)
    if (error && error === deadline.reason) {
      const areLeft = calls.every(({ isGivenUp }) => isGivenUp)
      check(areLeft, 'a deadline ends only its own call')
    }
    const isWithin = session.isInTransaction && sql !== 'commit'
    if (isWithin || (sql === 'begin' && !error)) return
    const isUnavailable = error instanceof DatabaseUnavailableError
    const hadNoEffect = isUnavailable ? error.hadNoEffect : error !== undefined
    if (sql !== 'begin' && !hadNoEffect) for (const call of calls) call.effects++
    lane.hasEnded = true
    for (const { effects } of calls) check(lane.use !== 'write' || effects <= 1, 'no write twice')
    const plan = calls[0]?.plan
    if (plan?.isOfOne?.(error) && lane.groups.length > 1) {
      const [first] = inputs as Input[]
      if (error instanceof NoConsecutiveIdsError && first) {
        this.#split.add(nameOfStatement(plan, first))
      }
      for (const call of calls) {
        if (call.isGivenUp) continue
        call.state = 'pausing'
        this.#alone.push(call)
      }
    }
  }

  #onSuccess(call: Call, value: unknown): void {
    check(!call.isGivenUp, 'no call succeeds after its deadline')
    const isLoan = call.session !== undefined
    check(isLoan || value === call.expected, `call ${call.id} has its own output, not ${value}`)
    check(call.state === 'running', 'a call is answered once it has begun')
    const isWrite = call.use === 'write' && !isLoan
    check(!isWrite || call.effects === 1, 'a write that succeeds was done once')
    call.state = 'settled'
  }

  #onError(call: Call, error: unknown): void {
    this.#joinUntil(call.id)
    const { state, isGivenUp } = call
    this.#leave(call, 'settled')
    if (isGivenUp) check(error === call.deadline.reason, 'the reason of the deadline')
    else if (error instanceof OverloadedError) {
      const ahead = Math.max(call.ahead, this.#lineOf(call, false).count)
      check(ahead >= MAX_WAITING, 'a thousand calls may wait in a line')
    } else if (error instanceof BrokenDatabaseError) {
      check(this.#stop !== 'no', 'only the end closes the database')
    } else this.#checkFailure(call, error, state)
  }

  #checkFailure({ plan, use, pauses, inputs }: Call, error: unknown, state: Call['state']): void {
    if (plan?.isOfOne?.(error)) {
      check(inputs === 1, 'a failure of one input is of one call')
      return
    }
    const isUnavailable = error instanceof DatabaseUnavailableError
    check(state === 'running' || isUnavailable, 'a call that has not begun knows no failure')
    const isOfSeveral = state === 'running' && !plan && inputs > 1
    check(error instanceof ConflictError === isOfSeveral, 'of several works, each may have failed')
    const mayRepeat = plan && isUnavailable && (use === 'read' || error.hadNoEffect)
    check(!mayRepeat || pauses === 2, 'there are three attempts')
  }

  /** Checks what must be so whenever nothing is about to happen in this turn. */
  async check(): Promise<void> {
    await drain()
    while (this.#alone.length > 0) this.#joinNext()
    if (this.#failure) throw this.#failure
    const { usage } = this.#made
    const { ahead, used, writing } = this.#uses()
    check(ahead <= 1 && used <= this.size, 'no more lanes than allowed, and one beyond')
    check(writing <= this.#writers, 'no more lanes that write than allowed')
    check(usage.used === used, `${used} lanes are used, not ${usage.used}`)
    const waiting = this.calls.filter(waits).length
    check(usage.waiting === waiting, `${waiting} calls wait, not ${usage.waiting}`)
    for (const { state, isGivenUp } of this.calls) {
      check(!isGivenUp || state === 'settled', 'a deadline ends its call')
    }
    for (const { session } of this.running) {
      const calls = this.#lanes.get(session)?.groups.flatMap((group) => group.calls)
      const isNeeded = !calls || calls.some(({ isGivenUp }) => !isGivenUp)
      check(isNeeded, 'a statement ends with the last of its calls')
    }
    if (this.#stop !== 'no') {
      check(waiting === 0, 'no call waits after the end')
      const isUnused = used === 0 && ahead === 0
      check((this.#stop === 'ended') === isUnused, 'the end comes with the last statement')
    }
  }

  #uses() {
    const lanes = [...this.#lanes.values()]
    for (const lane of lanes) check(lane, 'each session in use has a call')
    const uses = lanes.map((lane) => lane?.use)
    const ahead = uses.filter((use) => use === 'ahead').length
    const writing = uses.filter((use) => use === 'write').length
    return { ahead, writing, used: uses.length - ahead }
  }

  /** Checks that no call waits for a lane that it may have, once the turns have passed. */
  async checkIdle(): Promise<void> {
    await turns(3)
    await this.check()
    const { ahead, writing, used } = this.#uses()
    const { wanted } = this.sessions
    check(wanted <= this.size - used + 1, 'no session is opened that no lane could use')
    const reads = Math.min(this.#lines.get('loans read')?.count ?? 0, this.size - used)
    check(wanted >= reads, 'the sessions that calls wait for are opened side by side')
    for (const [key, line] of this.#lines) {
      const groups = line.groups.filter(isLive)
      if (groups.length === 0) continue
      const isAhead = line.use === 'ahead'
      if (isAhead ? ahead > 0 : used >= this.size) continue
      if (line.use === 'write' && writing >= this.#writers) continue
      const running = [...this.#lanes.values()].filter(
        (lane) => lane?.line === line && !lane.hasEnded,
      )
      const times = groups.flatMap(({ calls }) =>
        calls.filter(waits).map((call) => call.waitingSince),
      )
      const heldSince = Math.max(Math.min(...times), ...running.map((lane) => lane?.beganAt ?? 0))
      const isHeld = line.isHeld && running.length >= 2 && groups.length < line.maxSize
      if (isHeld && Date.now() - heldSince < HOLD) continue
      check(this.sessions.idle.length === 0, `${key} waits while a lane is idle`)
      check(wanted > 0, `${key} waits, and no session is opened`)
    }
  }

  /** Lets everything end, and checks that no call is lost. */
  async finish(pass: (milliseconds: number) => Promise<void>): Promise<void> {
    if (this.sessions.wanted > 0) this.open(this.sessions.wanted)
    await this.check()
    await pass(HOLD)
    await this.checkIdle()
    for (let round = 0; this.calls.some(({ state }) => state !== 'settled'); round++) {
      check(round < 500, 'no call is lost')
      for (const running of [...this.running]) {
        const calls = this.#lanes.get(running.session)?.groups.flatMap((group) => group.calls)
        if (!this.frozen.has(running)) this.end(running, 'success')
        else for (const call of calls ?? []) this.giveUp(call)
      }
      await this.#releaseAll()
      if (this.sessions.wanted > 0) this.open(this.sessions.wanted)
      await this.checkIdle()
      if (this.running.length === 0) await pass(30)
    }
    await this.#releaseAll()
    this.#made.lanes.decide() // forgets the lines whose calls were given up
  }

  async #releaseAll(): Promise<void> {
    for (const call of this.calls) if (call.session) this.release(call)
    await this.check()
  }
}

/** The name of the statement of an input, as its session sees it. */
function nameOfStatement(plan: Plan<Input, string>, input: Input): string {
  const name = Object.entries(PLANS).find(([, other]) => other === plan)?.[0]
  const kind = plan.kindOf?.(input)
  return kind ? `${name} ${kind}` : `${name}`
}
