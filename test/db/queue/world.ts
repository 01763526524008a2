/**
 * A model of the queue: what waits in each line, what runs, and which sessions are in use, by what the calls
 * and the sessions show. It checks each step of the queue against its promises.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { Deadline, type Waiter } from '../../../db/deadline.ts'
import {
  BrokenDatabaseError,
  DatabaseUnavailableError,
  OverloadedError,
  RejectedRowError,
} from '../../../db/errors.ts'
import type { StatementPlan, Use } from '../../../db/plan.ts'
import { type ControlledSession, drain, newQueue, planOf, type Running, turns } from './sessions.ts'

interface Input {
  id: string
  name: string
}

const blamesOne = (error: unknown) => error instanceof RejectedRowError

/** The names of calls: more than a statement has places for. */
export const NAMES = [...'abcdefgh']

const kindOf = ({ name }: Input) => (name < 'e' ? 'low' : 'high')
const identityOf = ({ name }: Input) => name
const ofName = ({ name }: Input) => `of ${name}`
const ofInput = ({ id }: Input) => `of ${id}`
export const PLANS = {
  lookUps: planOf('lookUps', ofName, { maxSize: 3, identityOf, isPadded: true }),
  named: planOf('named', ofName, { maxSize: 3, identityOf, blamesOne, kindOf }),
  pages: planOf('pages', ofInput, { maxSize: 2, kindOf }),
  inserts: planOf('inserts', ofInput, {
    ...{ maxSize: 3, use: 'write', needsConsecutiveIds: true, blamesOne },
  }),
  crowd: planOf('crowd', ofInput, { maxSize: 600 }),
} satisfies Record<string, StatementPlan<Input, string>>

/** How a test ends what a session executes. */
export type Outcome = 'success' | 'no effect' | 'unknown effect' | 'rejected row'

/** A call of the queue. */
export interface Call {
  id: string
  use: Use
  plan?: StatementPlan<Input, string>
  input: Input
  deadline: Deadline
  /** `joining`: it is about to wait. */
  state: 'joining' | 'waiting' | 'running' | 'pausing' | 'settled'
  isGivenUp: boolean
  /** The group in which it waits or has begun. */
  group?: Group
  /** The number of calls of its line that waited before it. */
  ahead: number
  /** How many of its attempts the database may have kept. */
  effects: number
  pauses: number
  /** The number of inputs of its latest statement. */
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
  needsConsecutiveIds: boolean
  groups: Group[]
  /** The number of calls that wait. */
  count: number
}

/** What a session in use does. */
interface Work {
  use: Use
  line: Line
  groups: Group[]
}

const current = new AsyncLocalStorage<Call>()

function check(condition: unknown, promise: string): asserts condition {
  if (!condition) throw new Error(`Not so: ${promise}`)
}

const waits = ({ state, isGivenUp }: Call) => state === 'waiting' && !isGivenUp
const isLive = ({ calls }: Group) => calls.some(waits)
const isLeft = ({ calls }: Group) => calls.some(({ isGivenUp }) => !isGivenUp)

/** Lets the model see when a call begins to wait: then the queue listens to its deadline. */
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
  readonly #made: ReturnType<typeof newQueue>
  readonly #lines = new Map<string, Line>()
  readonly #inUse = new Map<ControlledSession, Work | undefined>()
  #taken = 0
  /** The first promise that was broken. */
  #failure: unknown
  /** The pauses before other attempts that have not passed. */
  pauses = 0
  #stop: 'no' | 'ending' | 'ended' = 'no'

  constructor(size: number, open: number) {
    this.size = size
    const catching =
      <Parameters extends unknown[]>(observe: (...parameters: Parameters) => void) =>
      (...parameters: Parameters) => {
        try {
          observe(...parameters)
        } catch (error) {
          this.fail(error)
        }
      }
    this.#made = newQueue({
      size,
      open,
      observer: {
        onTake: (session) => {
          session.hasConsecutiveIds = this.#taken++ % 3 > 0
          this.#inUse.set(session, undefined)
        },
        onGiveBack: (session) => void this.#inUse.delete(session),
        onRun: catching((running) => this.#onRun(running)),
        onEnd: catching((running, error) => this.#onEnd(running, error)),
      },
    })
    this.running = this.#made.sessions.running
  }

  /** Returns a deadline that a call has for itself, or several calls share. */
  newDeadline(): Deadline {
    return new WatchedDeadline(() => {
      const call = current.getStore()
      if (call?.state === 'joining') this.#join(call)
    })
  }

  get sessions() {
    return this.#made.sessions
  }

  /** Calls a plan. */
  call(planName: keyof typeof PLANS, name: string, deadline = this.newDeadline()): Call {
    const plan: StatementPlan<Input, string> = PLANS[planName]
    const input = { id: `${this.calls.length}`, name }
    const expected = plan.identityOf ? ofName(input) : ofInput(input)
    const call = this.#newCall({ use: plan.use, plan, input, deadline, expected })
    this.#start(call, () => this.#made.queue.run(plan, input, deadline))
    return call
  }

  /** Takes a session. */
  borrow(use: Use): Call {
    const call = this.#newCall({ use, deadline: this.newDeadline() })
    this.#start(call, async () => {
      const session = (await this.#made.queue.borrow(use, call.deadline)) as ControlledSession
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
    if (session) this.#made.queue.giveBack(session, call.use)
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

  /** The statements that have a part of the inputs of one that was rejected. */
  get searches(): Running[] {
    return this.running.filter(({ session, inputs }) => {
      const work = this.#inUse.get(session)
      return work && new Set(inputs).size < work.groups.length
    })
  }

  /** Gives up the calls of one of the inputs of a search. */
  leaveSearch({ session }: Running, index: number): void {
    const groups = this.#inUse.get(session)?.groups ?? []
    for (const call of groups[index % groups.length]?.calls ?? []) this.giveUp(call)
  }

  /** Ends what a session executes. */
  end(running: Running, outcome: Outcome): void {
    if (outcome === 'success') running.end()
    else if (outcome === 'rejected row') running.fail(new RejectedRowError('twice'))
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
    this.#made.queue.fail(new DatabaseUnavailableError(undefined, true))
  }

  stop(): void {
    this.#stop = 'ending'
    void this.#made.queue.end().then(() => {
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
    call.ahead = this.#lineOf(call).count
    current
      .run(call, run)
      .then(
        (value) => this.#onSuccess(call, value),
        (error: unknown) => this.#onError(call, error),
      )
      .catch((error: unknown) => this.fail(error))
  }

  #lineOf({ plan, use, input }: Call): Line {
    const key = plan ? nameOfStatement(plan, input) : `loans ${use}`
    const known = this.#lines.get(key)
    if (known) return known
    const { maxSize = 1, needsConsecutiveIds = false } = plan ?? {}
    const line = { use, maxSize, needsConsecutiveIds, groups: [], count: 0 }
    this.#lines.set(key, line)
    return line
  }

  #join(call: Call): void {
    const line = this.#lineOf(call)
    const name = call.plan?.identityOf?.(call.input)?.toString()
    const known = line.groups.find((other) => name !== undefined && other.name === name)
    const group = known ?? { line, name, calls: [] }
    if (!known) line.groups.push(group)
    group.calls.push(call)
    call.group = group
    call.state = 'waiting'
    call.ahead = line.count
    line.count++
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

  /** Lets groups of a line begin on a session. */
  #begin(session: ControlledSession, line: Line, groups: Group[]): void {
    this.#inUse.set(session, { use: line.use, line, groups })
    const isOne = line.needsConsecutiveIds && !session.hasConsecutiveIds
    const most = isOne ? 1 : line.maxSize
    check(groups.length <= most, 'a statement has at most so many inputs')
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
    const isTakenAlong = groups.length === most || line.count === 0
    check(isTakenAlong, 'a session takes along the waiting calls of a line')
    const readiness = this.#lines.get('loans readiness')
    const works = [...this.#inUse.values()]
    const isBehind = (readiness?.count ?? 0) > 0 && !works.some((work) => work?.use === 'readiness')
    // The use of a session that has only just been taken is not known.
    if (!works.includes(undefined)) check(!isBehind, 'readiness begins before all others')
  }

  #onRun({ session, inputs }: Running): void {
    const ids = [...new Set((inputs as Input[]).map(({ id }) => id))]
    const groups = ids.map((id) => this.calls[Number(id)]?.group) as Group[]
    const [line] = groups.map((group) => group?.line)
    const [plan] = groups.map((group) => group?.calls[0]?.plan)
    const places = plan?.isPadded
      ? Math.min(2 ** Math.ceil(Math.log2(ids.length)), plan.maxSize)
      : ids.length
    check(inputs.length === places, 'no input comes twice')
    const work = this.#inUse.get(session)
    if (work) this.#onPart(work, groups)
    else {
      check(line, 'a statement has calls')
      for (const group of groups) {
        check(group?.line === line, 'a statement has calls of one line')
        check(line.groups.includes(group), 'a statement has only calls that wait')
      }
      this.#begin(session, line, groups)
    }
  }

  /** A statement with a part of the inputs follows one of which one input may be to blame. */
  #onPart(work: Work, groups: Group[]): void {
    for (const group of groups) {
      check(work.groups.includes(group), 'a search has the inputs of its statement')
      check(isLeft(group), 'a call that was given up is not part of the next statement')
      for (const call of group.calls) call.inputs = groups.length
    }
  }

  #onEnd({ session, inputs, deadline }: Running, error: Error | undefined): void {
    const work = this.#inUse.get(session)
    if (!work) return
    const ids = (inputs as Input[]).map(({ id }) => id)
    const groups = work.groups.filter(({ calls }) => calls.some(({ id }) => ids.includes(id)))
    const calls = groups.flatMap((group) => group.calls)
    if (error && error === deadline.reason) {
      const areLeft = calls.every(({ isGivenUp }) => isGivenUp)
      check(areLeft, 'a deadline ends only its own call')
    }
    const isUnavailable = error instanceof DatabaseUnavailableError
    const hadNoEffect = isUnavailable ? error.hadNoEffect : error !== undefined
    if (!hadNoEffect) for (const call of calls) call.effects++
    for (const { effects } of calls) check(work.use !== 'write' || effects <= 1, 'no write twice')
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
    const { state, isGivenUp } = call
    this.#leave(call, 'settled')
    if (isGivenUp) check(error === call.deadline.reason, 'the reason of the deadline')
    else if (error instanceof OverloadedError) {
      const line = this.#lineOf(call)
      const ahead = Math.max(call.ahead, line.count)
      check(ahead > 500 && ahead > 50 * line.maxSize, 'hundreds may wait, for tens of statements')
    } else if (error instanceof BrokenDatabaseError) {
      check(this.#stop !== 'no', 'only the end closes the database')
    } else this.#checkFailure(call, error, state)
  }

  #checkFailure(call: Call, error: unknown, state: Call['state']): void {
    const { plan, use, pauses, inputs, effects } = call
    if (plan?.blamesOne?.(error)) {
      check(inputs === 1, 'a failure of one input is of one call')
      return
    }
    const isUnavailable = error instanceof DatabaseUnavailableError
    check(isUnavailable || error instanceof RejectedRowError, `no call fails by ${error}`)
    check(state === 'running' || isUnavailable, 'a call that has not begun knows no failure')
    const mayRepeat = plan && isUnavailable && (use === 'read' || effects === 0)
    check(!mayRepeat || pauses > 0, 'what had no effect has another attempt')
  }

  /** Takes note of a promise that was broken, if it is the first one. */
  fail(error: unknown): void {
    this.#failure ??= error
  }

  /** Checks what must be so whenever nothing is about to happen in this turn. */
  async check(): Promise<void> {
    await drain()
    if (this.#failure) throw this.#failure
    const { usage } = this.#made
    const { ahead, used, writing } = this.#uses()
    check(ahead <= 1 && used <= this.size, 'no more sessions than allowed, and one beyond')
    check(writing <= mostOf(this.size), 'writes leave a session to reads')
    check(usage.used === used, `${used} sessions are used, not ${usage.used}`)
    for (const [key, line] of this.#lines) {
      const all = { read: this.size, write: mostOf(this.size), readiness: 1 }[line.use]
      check(this.#running(line) <= mostOf(all), `${key} leaves a session to others`)
    }
    const waiting = this.calls.filter(waits).length
    check(usage.waiting === waiting, `${waiting} calls wait, not ${usage.waiting}`)
    for (const { state, isGivenUp } of this.calls) {
      check(!isGivenUp || state === 'settled', 'a deadline ends its call')
    }
    for (const { session, inputs } of this.running) {
      const ids = (inputs as Input[]).map(({ id }) => id)
      const calls = this.#inUse
        .get(session)
        ?.groups.filter(({ calls }) => calls.some(({ id }) => ids.includes(id)))
        .flatMap((group) => group.calls)
      const isNeeded = !calls || calls.some(({ isGivenUp }) => !isGivenUp)
      check(isNeeded, 'a statement ends with the last of its calls')
    }
    if (this.#stop !== 'no') {
      check(waiting === 0, 'no call waits after the end')
      const isUnused = used === 0 && ahead === 0
      check((this.#stop === 'ended') === isUnused, 'the end comes with the last statement')
    }
  }

  /** The number of sessions that a line is sure of, beside those that it has. */
  #leftFor(line: Line): number {
    const { writing, used } = this.#uses()
    const running = this.#running(line)
    if (line.use === 'readiness') return 1 - running
    const left = Math.min(this.size - used, leastOf(this.size) - running)
    if (line.use === 'read') return left
    const writers = leastOf(this.size)
    return Math.min(left, writers - writing, leastOf(writers) - running)
  }

  /** The number of sessions that a line has. */
  #running = (line: Line): number =>
    [...this.#inUse.values()].filter((work) => work?.line === line).length

  #uses() {
    const works = [...this.#inUse.values()]
    for (const work of works) check(work, 'each session in use has a call')
    const uses = works.map((work) => work?.use)
    const ahead = uses.filter((use) => use === 'readiness').length
    const writing = uses.filter((use) => use === 'write').length
    return { ahead, writing, used: uses.length - ahead }
  }

  /** Checks that no call waits for a session that it may have, once the turns have passed. */
  async checkIdle(): Promise<void> {
    await turns(3)
    await this.check()
    const { writing, used } = this.#uses()
    const { wanted } = this.sessions
    check(wanted <= this.size - used + 1, 'no session is opened that nothing could use')
    const lines = [...this.#lines]
    for (const [key, line] of lines) {
      const groups = line.groups.filter(isLive)
      const statements = Math.ceil(groups.length / line.maxSize)
      const could = Math.min(statements, this.#leftFor(line))
      check(could <= 0 || this.sessions.idle.length === 0, `${key} waits while a session is idle`)
      check(could <= wanted, `${key} waits, and no session is opened for each of its statements`)
      const hasNone = statements > 0 && this.#running(line) === 0 && used < this.size
      const hasAll = (other: Line) => other.use === 'write' && this.#running(other) === writing
      const isBehind =
        line.use === 'write' && writing > 1 && lines.some(([, other]) => hasAll(other))
      check(!(hasNone && wanted === 0 && isBehind), `another line leaves a session to ${key}`)
    }
  }

  /** Lets everything end, and checks that no call is lost. */
  async finish(pass: (milliseconds: number) => Promise<void>): Promise<void> {
    await this.checkIdle()
    if (this.sessions.wanted > 0) this.open(this.sessions.wanted)
    await this.checkIdle()
    for (let round = 0; this.calls.some(({ state }) => state !== 'settled'); round++) {
      check(round < 500, 'no call is lost')
      for (const running of [...this.running]) {
        const calls = this.#inUse.get(running.session)?.groups.flatMap((group) => group.calls)
        if (!this.frozen.has(running)) this.end(running, 'success')
        else for (const call of calls ?? []) this.giveUp(call)
      }
      await this.#releaseAll()
      if (this.sessions.wanted > 0) this.open(this.sessions.wanted)
      await this.checkIdle()
      if (this.running.length === 0) await pass(30)
    }
    await this.#releaseAll()
  }

  async #releaseAll(): Promise<void> {
    for (const call of this.calls) if (call.session) this.release(call)
    await this.check()
  }
}

/** The most of several sessions: one is left to others. */
const mostOf = (sessions: number) => Math.max(1, sessions - 1)

/** The least of several sessions: half of them. */
const leastOf = (sessions: number) => Math.max(1, Math.floor(sessions / 2))

/** The name of the statement of an input, as its session sees it. */
function nameOfStatement(plan: StatementPlan<Input, string>, input: Input): string {
  const name = Object.entries(PLANS).find(([, other]) => other === plan)?.[0]
  const kind = plan.kindOf?.(input)
  return kind ? `${name} ${kind}` : `${name}`
}
