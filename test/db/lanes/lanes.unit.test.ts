/** The queue: when a call begins, what shares a statement, and which lanes may be in use. */
import { expect, onTestFinished, test, vi } from 'vitest'
import {
  BrokenDatabaseError,
  ConflictError,
  DatabaseUnavailableError,
  NoConsecutiveIdsError,
  OverloadedError,
  RejectedRowError,
} from '../../../db/errors.ts'
import { guarded } from '../../../db/guard.ts'
import type { Lanes } from '../../../db/lanes.ts'
import type { Plan } from '../../../db/plan.ts'
import { type SharedWork, shareTransaction } from '../../../db/transaction.ts'
import { ControlledSession, drain, forever, newLanes, planOf, turns } from './lanes.ts'

const twice = (input: number) => 2 * input
const isOfOne = (error: unknown) => error instanceof RejectedRowError
const lookUps = planOf('lookUps', twice, { maxSize: 4, nameOf: String })
const pages = planOf('pages', twice, { maxSize: 2 })
const early = planOf('early', twice, { maxSize: 9, isEarly: true })
const inserts = planOf('inserts', twice, {
  maxSize: 9,
  use: 'write',
  isOfOne: (error) => isOfOne(error) || error instanceof NoConsecutiveIdsError,
})

/** Lanes, with the inputs of what runs. */
function lanesOf(options: Parameters<typeof newLanes>[0]) {
  const made = newLanes(options)
  const { running } = made.sessions
  return {
    ...made,
    running,
    inputs: () => running.map(({ inputs }) => inputs),
    call: (plan: Plan<number, number>, ...inputs: number[]) =>
      inputs.map((input) => made.lanes.call(plan, input, forever())),
    async end(index = 0) {
      running[index]?.end()
      await drain()
    },
  }
}

/** Occupies this many lanes, and returns a function that frees one. */
async function occupy(lanes: Lanes, count: number) {
  const taken = Array.from({ length: count }, () => lanes.borrow('read', forever()))
  const sessions = await Promise.all(taken)
  return () => lanes.giveBack(sessions.pop() as ControlledSession, 'read')
}

/** Replaces the timers of the lanes, and returns a function that puts their clock forward. */
function fakeTimers() {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  return async (milliseconds: number) => {
    vi.advanceTimersByTime(milliseconds)
    await drain()
  }
}

test('what is alone begins in its turn, with the calls of the same moment', async () => {
  const { call, inputs, end } = lanesOf({ size: 9 })
  const [one] = call(lookUps, 1)
  await drain()
  expect(inputs()).toEqual([[1]])
  await end()
  expect(await one).toBe(2)
  await turns(1)
  const others = call(lookUps, 2, 3)
  await drain()
  expect(inputs()).toEqual([[2, 3]])
  await end()
  expect(await Promise.all(others)).toEqual([4, 6])
})

test('calls of one turn share a statement also where the database has answered the first one at once', async () => {
  const { call, inputs, end } = lanesOf({ size: 9, isInProcess: true })
  for (const input of [1, 2, 3]) {
    call(lookUps, input)
    await drain()
    if (input === 1) await end() // as SQLite does, in the same turn
  }
  expect(inputs()).toEqual([])
  await turns(2)
  expect(inputs()).toEqual([[2, 3]])
})

test.each([
  ['a plan', lookUps, false, 2],
  ['an early plan', early, false, 1],
  ['an early plan in this process', early, true, 2],
])('%s begins after its turns while something runs', async (_, plan, isInProcess, count) => {
  const { lanes, call, inputs } = lanesOf({ size: 9, isInProcess })
  await occupy(lanes, 1)
  call(plan, 1)
  await turns(count - 1)
  call(plan, 2)
  await drain()
  expect(inputs()).toEqual([])
  await turns(1)
  expect(inputs()).toEqual([[1, 2]])
})

test('a line whose latest statement had several calls waits for its turns, too', async () => {
  const { call, inputs, end } = lanesOf({ size: 9 })
  call(lookUps, 1, 2)
  await drain()
  await end()
  call(lookUps, 3)
  await turns(1)
  call(lookUps, 4)
  expect(inputs()).toEqual([])
  await turns(1)
  expect(inputs()).toEqual([[3, 4]])
})

test('a call waits for turns of its own, also where those of earlier calls have not passed', async () => {
  const { call, inputs, end } = lanesOf({ size: 9 })
  call(lookUps, 1)
  await drain()
  call(lookUps, 2)
  await turns(1)
  await end() // the statement takes along what waits
  expect(inputs()).toEqual([[2]])
  call(lookUps, 3)
  await turns(1)
  expect(inputs()).toEqual([[2]])
  await turns(1)
  expect(inputs()).toEqual([[2], [3]])
})

test('a call is alone after one that was given up while it waited', async () => {
  const { lanes, sessions, call, inputs } = lanesOf({ size: 9, open: 0 })
  const left = forever()
  const leaving = expect(lanes.call(lookUps, 1, left)).rejects.toThrow('left')
  await drain()
  left.giveUp(new Error('The client has left'))
  await leaving
  sessions.idle.push(new ControlledSession(sessions))
  call(pages, 2)
  await drain()
  expect(inputs()).toEqual([[2]])
})

test('a line has two lanes, and a third one for a full statement', async () => {
  fakeTimers() // so that no wait ends by itself
  const { call, inputs, end } = lanesOf({ size: 9 })
  const calls = call(lookUps, 1, 2)
  await turns(2)
  calls.push(...call(lookUps, 3))
  await turns(2)
  calls.push(...call(lookUps, 5, 6, 6, 7)) // the two 6 are one input
  await turns(2)
  expect(inputs()).toEqual([[1, 2], [3]])
  calls.push(...call(lookUps, 8, 9))
  await turns(2)
  expect(inputs()).toEqual([[1, 2], [3], [5, 6, 7, 8]])
  await end()
  await turns(2)
  expect(inputs(), 'two still run').toHaveLength(2)
  await end()
  expect(inputs()).toEqual([[5, 6, 7, 8], [9]])
  await end()
  await end()
  expect(await Promise.all(calls)).toEqual([2, 4, 6, 10, 12, 12, 14, 16, 18])
})

test('calls that were given up do not fill a statement', async () => {
  fakeTimers() // so that no wait ends by itself
  const { lanes, call, inputs } = lanesOf({ size: 9 })
  for (const input of [1, 2]) {
    call(lookUps, input)
    await turns(2)
  }
  const left = forever()
  const leaving = [3, 4, 5].map((input) => lanes.call(lookUps, input, left))
  const answers = Promise.allSettled(leaving)
  left.giveUp(new Error('The client has left'))
  await answers
  call(lookUps, 6)
  await turns(3)
  expect(inputs()).toEqual([[1], [2]])
})

test('a call waits 50 ms for statements that hang, whatever an earlier call waited', async () => {
  const pass = fakeTimers()
  const { call, inputs, end } = lanesOf({ size: 9 })
  for (const input of [1, 2, 3]) {
    call(lookUps, input)
    await turns(2)
  }
  await pass(40)
  expect(inputs()).toEqual([[1], [2]])
  await end()
  call(lookUps, 4)
  await turns(2)
  await pass(49)
  expect(inputs()).toEqual([[2], [3]])
  await pass(1)
  expect(inputs()).toEqual([[2], [3], [4]])
})

test('what a full statement leaves waits 50 ms, whatever the others waited', async () => {
  const pass = fakeTimers()
  const { lanes, call, inputs, end } = lanesOf({ size: 3 })
  const free = await occupy(lanes, 1)
  for (const input of [1, 2, 3]) {
    call(pages, input)
    await turns(2)
  }
  await pass(40)
  call(pages, 4, 5)
  await end()
  free()
  await pass(49)
  expect(inputs()).toEqual([[2], [3, 4]])
  await pass(1)
  expect(inputs()).toEqual([[2], [3, 4], [5]])
})

test('a lane takes along the waiting calls of its line; the lines begin in order', async () => {
  fakeTimers() // so that no wait ends by itself
  const { lanes, call, inputs } = lanesOf({ size: 1 })
  const free = await occupy(lanes, 1)
  call(lookUps, 1)
  call(pages, 2, 3, 4)
  call(early, 5)
  await turns(2)
  call(lookUps, 6)
  free()
  expect(inputs()).toEqual([[1, 6]])
})

test('a lane is free for the next calls before those of its statement are answered', async () => {
  const { call, inputs, running } = lanesOf({ size: 1 })
  const [first] = call(lookUps, 1)
  await turns(2)
  call(pages, 2)
  await turns(2)
  const seen = first?.then(() => inputs())
  running[0]?.end()
  expect(await seen).toEqual([[2]])
})

test('the rest of a line waits behind the lines that came meanwhile', async () => {
  fakeTimers() // so that no wait ends by itself
  const { lanes, call, inputs, end } = lanesOf({ size: 1 })
  const free = await occupy(lanes, 1)
  call(pages, 1, 2, 3)
  call(lookUps, 4)
  await turns(2)
  free()
  for (const expected of [[1, 2], [4], [3]]) {
    expect(inputs()).toEqual([expected])
    await end()
  }
})

test('a call that is given up while it waits is not part of the next statement', async () => {
  fakeTimers() // so that no wait ends by itself
  const { lanes, call, inputs } = lanesOf({ size: 1 })
  const free = await occupy(lanes, 1)
  const left = forever()
  const leaving = [3, 4].map((input) =>
    expect(lanes.call(lookUps, input, left)).rejects.toThrow('left'),
  )
  call(lookUps, 3, 5) // the first one waits for the output of a call that leaves
  await turns(2)
  left.giveUp(new Error('The client has left'))
  await Promise.all(leaving)
  await expect(lanes.call(lookUps, 5, left), 'later').rejects.toThrow('left')
  free()
  expect(inputs()).toEqual([[3, 5]])
})

test('a statement ends with the last of its calls', async () => {
  const { lanes, running } = lanesOf({ size: 1 })
  const deadlines = [forever(), forever(), forever()]
  const [first, ...others] = deadlines
  const calls = deadlines.map((deadline, input) => lanes.call(lookUps, input % 2, deadline))
  const outcomes = Promise.allSettled(calls)
  await drain()
  for (const other of others) other.giveUp(new Error('The client has left'))
  await drain()
  expect(running).toHaveLength(1)
  first?.giveUp(new Error('The client has left'))
  await outcomes
  expect(running).toEqual([])
})

test('a thousand calls may wait in a line, and no more; those of one turn are not counted', async () => {
  const { lanes, call, usage } = lanesOf({ size: 1 })
  const free = await occupy(lanes, 1)
  const left = forever()
  const all = Array.from({ length: 1_001 }, (_, input) => lanes.call(early, input, left))
  const outcomes = Promise.allSettled(all)
  await turns(2)
  const [refused] = call(early, 1)
  await expect(refused).rejects.toThrow(OverloadedError)
  await expect(refused).rejects.toMatchObject({
    cause: { message: 'Too many calls wait for the database' },
  })
  call(lookUps, 1) // another line has room
  expect(usage.waiting).toBe(1_002)
  left.giveUp(new Error('The client has left'))
  await outcomes
  const waiting = Array.from({ length: 1_000 }, () => lanes.borrow('read', forever()))
  await expect(lanes.borrow('read', forever())).rejects.toThrow(OverloadedError)
  free()
  for (const one of waiting) lanes.giveBack(await one, 'read')
})

test('rows for which the server has no consecutive ids are inserted alone, on any number of lanes', async () => {
  const { call, inputs, running, end } = lanesOf({ size: 9 })
  const calls = call(inserts, 1, 2, 3, 4)
  await drain()
  running[0]?.fail(new NoConsecutiveIdsError())
  await turns(3)
  expect(inputs()).toEqual([[1], [2], [3], [4]])
  calls.push(...call(inserts, 5)) // the line knows
  await turns(3)
  expect(inputs()).toEqual([[1], [2], [3], [4], [5]])
  // Also those that wait again after a pause.
  const random = vi.spyOn(Math, 'random').mockReturnValue(0.5)
  onTestFinished(() => random.mockRestore())
  for (const { fail } of running.slice(0, 2)) fail(new DatabaseUnavailableError(undefined, true))
  await vi.waitFor(() => expect(inputs()).toEqual([[3], [4], [5], [1], [2]]))
  while (running.length > 0) await end()
  // After a minute, a statement of several shows whether the server still has none.
  const now = vi.spyOn(performance, 'now').mockReturnValue(performance.now() + 60_001)
  onTestFinished(() => now.mockRestore())
  calls.push(...call(inserts, 6, 7))
  await turns(3)
  expect(inputs()).toEqual([[6, 7]])
  while (running.length > 0) await end()
  expect(await Promise.all(calls)).toEqual([2, 4, 6, 8, 10, 12, 14])
})

test('a row that is rejected fails its own call; later ones share a statement', async () => {
  const { call, inputs, running, end } = lanesOf({ size: 9 })
  const [rejected, ...others] = call(inserts, 1, 2)
  await drain()
  running[0]?.fail(new RejectedRowError('twice'))
  await turns(3)
  running[0]?.fail(new RejectedRowError('twice'))
  await end()
  await expect(rejected).rejects.toThrow(RejectedRowError)
  expect(await Promise.all(others)).toEqual([4])
  call(inserts, 3, 4)
  await turns(3)
  expect(inputs()).toEqual([[3, 4]])
})

test('every call of a name is answered after the statement failed for another name', async () => {
  const named = planOf('named', twice, { maxSize: 9, nameOf: String, isOfOne })
  const { call, running, end } = lanesOf({ size: 9 })
  const calls = call(named, 1, 2, 2)
  await drain()
  running[0]?.fail(new RejectedRowError('twice'))
  await turns(3)
  while (running.length > 0) await end()
  expect(await Promise.all(calls)).toEqual([2, 4, 4])
})

test('a work beside one that failed runs again, also if a thousand wait in its line', async () => {
  const { db, running, end, usage } = lanesOf({ size: 1 })
  const share = (run: SharedWork<string>['run']) => shareTransaction(db, { run }, forever())
  const failed = share(() => Promise.reject(new Error('It failed')))
  const made = share(async () => 'made')
  await drain()
  const others = Array.from({ length: 1_201 }, () => share(async () => 'other'))
  await turns(3)
  expect([running.map(({ sql }) => sql), usage.waiting]).toEqual([['begin'], 1_201])
  while (running.length > 0) await end()
  await expect(failed).rejects.toThrow(ConflictError)
  expect([await made, ...new Set(await Promise.all(others))]).toEqual(['made', 'other'])
})

test('a lane that becomes free in the work of a transaction serves the calls of others', async () => {
  const { lanes, call, running, end } = lanesOf({ size: 1 })
  const free = await occupy(lanes, 1)
  const calls = call(inserts, 1, 2)
  await turns(2)
  // As the kill of a session after the deadline of its statement.
  await guarded(async () => free())
  running[0]?.fail(new RejectedRowError('twice'))
  await turns(3)
  await end()
  await turns(3)
  await end()
  expect(await Promise.all(calls)).toEqual([2, 4])
  await expect(guarded(() => lanes.call(lookUps, 1, forever()))).rejects.toThrow('in a transaction')
})

test('readiness has the next lane before all calls, or one beyond all', async () => {
  const { lanes, sessions, call, inputs, usage } = lanesOf({ size: 2, open: 2 })
  const free = await occupy(lanes, 2)
  call(lookUps, 1)
  await turns(2)
  const order: string[] = []
  const asked = ['one', 'other'].map((name) =>
    lanes.borrow('ahead', forever()).then((session) => {
      order.push(name)
      return session
    }),
  )
  free()
  lanes.giveBack(await (asked[0] as Promise<ControlledSession>), 'ahead')
  const session = await asked[1]
  expect([order, inputs(), usage.used]).toEqual([['one', 'other'], [], 1])
  sessions.open(1)
  expect([inputs(), usage.used]).toEqual([[[1]], 2])
  expect(sessions.taken.size, 'one beyond').toBe(3)
  lanes.giveBack(session as ControlledSession, 'ahead')
})

test.each([
  [1, 1],
  [2, 1],
  [5, 3],
  [10, 6],
])('of %i lanes, %i may write', async (size, writers) => {
  const { lanes, sessions, usage } = lanesOf({ size })
  const writes = Array.from({ length: size + 1 }, () => lanes.borrow('write', forever()))
  expect(usage.used).toBe(writers)
  const reads = Array.from({ length: size + 1 }, () => lanes.borrow('read', forever()))
  expect(usage.used).toBe(size)
  expect(sessions.taken.size).toBe(size)
  expect([...reads, ...writes]).toHaveLength(2 * size + 2)
})

test('the lanes ask for as many sessions as could be used', async () => {
  const { lanes, sessions, call } = lanesOf({ size: 10, open: 0 })
  const last = () => sessions.prepared.at(-1)
  for (let count = 0; count < 8; count++) void lanes.borrow('write', forever())
  expect(last(), 'writers').toBe(6)
  void lanes.borrow('read', forever())
  expect(last()).toBe(7)
  call(lookUps, 1, 2, 3, 4, 5)
  await turns(2)
  expect(last(), 'two statements').toBe(9)
  for (let count = 0; count < 8; count++) void lanes.borrow('read', forever())
  expect(last()).toBe(10)
  void lanes.borrow('ahead', forever())
  expect(last(), 'one beyond').toBe(11)
  sessions.open(4)
  expect(last(), 'of those that still wait').toBe(7)
})

test('where no session can be had, the calls that wait for one are rejected', async () => {
  const { lanes, call, usage } = lanesOf({ size: 10, open: 0 })
  const failure = new DatabaseUnavailableError(new Error('refused'), false)
  const calls = [lanes.borrow('read', forever()), ...call(inserts, 1, 2)]
  const outcomes = Promise.allSettled(calls)
  await turns(2)
  lanes.fail(failure)
  const rejected = { status: 'rejected', reason: failure }
  expect(await outcomes).toEqual([rejected, rejected, rejected])
  expect(usage).toEqual({ used: 0, waiting: 0 })
})

test('the end rejects the calls that wait or come, and waits for those that run', async () => {
  const { lanes, sessions, call, end, usage } = lanesOf({ size: 2 })
  const free = await occupy(lanes, 1)
  const [answered] = call(lookUps, 1)
  await turns(2)
  const [waiting] = call(pages, 2)
  let hasEnded = false
  const ended = lanes.end().then(() => {
    hasEnded = true
  })
  expect(sessions.isEnded).toBe(true)
  await expect(waiting).rejects.toThrow(BrokenDatabaseError)
  await expect(call(pages, 3)[0]).rejects.toThrow(BrokenDatabaseError)
  await end()
  expect(await answered).toBe(2)
  await turns(1)
  expect(hasEnded).toBe(false)
  free()
  await ended
  expect(usage).toEqual({ used: 0, waiting: 0 })
})
