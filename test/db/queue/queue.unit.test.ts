/** The queue: when a call begins, what shares a statement, and which sessions may be in use. */
import { expect, test, vi } from 'vitest'
import {
  BrokenDatabaseError,
  DatabaseUnavailableError,
  OverloadedError,
  RejectedRowError,
} from '../../../db/errors.ts'
import { guarded } from '../../../db/guard.ts'
import type { StatementPlan, Use } from '../../../db/plan.ts'
import type { Queue } from '../../../db/queue.ts'
import { ControlledSession, drain, forever, newQueue, planOf, turns } from './sessions.ts'

const twice = (input: number) => 2 * input
const blamesOne = (error: unknown) => error instanceof RejectedRowError
const lookUps = planOf('lookUps', twice, { maxSize: 4, identityOf: String })
const pages = planOf('pages', twice, { maxSize: 2 })
const inserts = planOf('inserts', twice, {
  maxSize: 9,
  use: 'write',
  needsConsecutiveIds: true,
  blamesOne,
})

/** A queue, with the inputs of what runs. */
function queueOf(options: Parameters<typeof newQueue>[0]) {
  const made = newQueue(options)
  const { running } = made.sessions
  return {
    ...made,
    running,
    inputs: () => running.map(({ inputs }) => inputs),
    call: (plan: StatementPlan<number, number>, ...inputs: number[]) =>
      inputs.map((input) => made.queue.run(plan, input, forever())),
    async end(index = 0) {
      running[index]?.end()
      await drain()
    },
  }
}

/** Occupies this many sessions by lines of two uses, and returns a function that frees one. */
async function occupy(queue: Queue, count: number) {
  const uses = Array.from({ length: count }, (_, index) => (index % 2 === 0 ? 'read' : 'write'))
  const sessions = await Promise.all(uses.map((use) => queue.borrow(use, forever())))
  return () => queue.giveBack(sessions.pop() as ControlledSession, uses.pop() as Use)
}

test('what is alone begins in its turn, with the calls of the same moment', async () => {
  const { call, inputs, end } = queueOf({ size: 9 })
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

test('a call begins after the next turn while something runs, with those that come until then', async () => {
  const { queue, call, inputs } = queueOf({ size: 9 })
  await occupy(queue, 1)
  call(lookUps, 1)
  await turns(1)
  call(lookUps, 2)
  await drain()
  expect(inputs()).toEqual([])
  await turns(1)
  expect(inputs()).toEqual([[1, 2]])
})

test('a line whose latest statement had several calls waits for its turns, too', async () => {
  const { call, inputs, end } = queueOf({ size: 9 })
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
  const { call, inputs, end } = queueOf({ size: 9 })
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
  const { queue, sessions, call, inputs } = queueOf({ size: 9, open: 0 })
  const left = forever()
  const leaving = expect(queue.run(lookUps, 1, left)).rejects.toThrow('left')
  await drain()
  left.giveUp(new Error('The client has left'))
  await leaving
  void queue.run(lookUps, 1, left).catch(() => {})
  const again = forever()
  const asking = queue.run(lookUps, 1, again).catch(() => {})
  await drain()
  expect(sessions.prepared.at(-1), 'one session for one call').toBe(1)
  again.giveUp(new Error('The client has left'))
  await asking
  sessions.idle.push(new ControlledSession(sessions))
  call(pages, 2)
  await drain()
  expect(inputs()).toEqual([[2]])
})

test('a session takes along the waiting calls of a line; the lines begin in order', async () => {
  const { queue, call, inputs } = queueOf({ size: 1 })
  const free = await occupy(queue, 1)
  call(lookUps, 1)
  call(pages, 2, 3, 4)
  call(inserts, 5)
  await turns(2)
  call(lookUps, 6)
  free()
  expect(inputs()).toEqual([[1, 6]])
})

test('a session is free for the next calls before those of its statement are answered', async () => {
  const { call, inputs, running } = queueOf({ size: 1 })
  const [first] = call(lookUps, 1)
  await turns(2)
  call(pages, 2)
  await turns(2)
  const seen = first?.then(() => inputs())
  running[0]?.end()
  expect(await seen).toEqual([[2]])
})

test('the rest of a line waits behind the lines that came meanwhile', async () => {
  const { queue, call, inputs, end } = queueOf({ size: 1 })
  const free = await occupy(queue, 1)
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
  const { queue, call, inputs } = queueOf({ size: 1 })
  const free = await occupy(queue, 1)
  const left = forever()
  const leaving = [3, 4].map((input) =>
    expect(queue.run(lookUps, input, left)).rejects.toThrow('left'),
  )
  call(lookUps, 3, 5) // the first one waits for the output of a call that leaves
  await turns(2)
  left.giveUp(new Error('The client has left'))
  await Promise.all(leaving)
  await expect(queue.run(lookUps, 5, left), 'later').rejects.toThrow('left')
  free()
  expect(inputs()).toEqual([[3, 5]])
})

test('a call of an input that has begun waits for another statement, also where others wait', async () => {
  const { queue, call, inputs, end } = queueOf({ size: 1 })
  const free = await occupy(queue, 1)
  const calls = call(lookUps, 1, 2, 3, 4, 5, 5)
  await turns(2)
  free()
  calls.push(...call(lookUps, 1))
  expect(inputs()).toEqual([[1, 2, 3, 4]])
  await end()
  expect(inputs()).toEqual([[5, 1]])
  await end()
  expect(await Promise.all(calls)).toEqual([2, 4, 6, 8, 10, 10, 2])
})

test('a statement ends with the last of its calls', async () => {
  const { queue, running } = queueOf({ size: 1 })
  const deadlines = [forever(), forever(), forever()]
  const [first, ...others] = deadlines
  const calls = deadlines.map((deadline, input) => queue.run(lookUps, input % 2, deadline))
  const outcomes = Promise.allSettled(calls)
  await drain()
  for (const other of others) other.giveUp(new Error('The client has left'))
  await drain()
  expect(running).toHaveLength(1)
  first?.giveUp(new Error('The client has left'))
  await outcomes
  expect(running).toEqual([])
})

test('a thousand calls may wait in a line, or those of a hundred statements; those of one turn are not counted', async () => {
  const { queue, usage } = queueOf({ size: 1 })
  const free = await occupy(queue, 1)
  const large = planOf('large', twice, { maxSize: 50 })
  const left = forever()
  const outcomes: Promise<unknown>[] = []
  const wait = (plan: typeof large, count: number) => {
    const calls = Array.from({ length: count }, (_, input) => queue.run(plan, input, left))
    outcomes.push(Promise.allSettled(calls))
    return calls.at(-1)
  }
  wait(pages, 1_001) // two in a statement
  wait(large, 1_001)
  await turns(2)
  const refused = wait(pages, 1)
  let isRefused = false
  refused?.catch(() => {
    isRefused = true
  })
  await drain()
  expect(isRefused, 'at once: it is not repeated').toBe(true)
  await expect(refused).rejects.toThrow(OverloadedError)
  await expect(refused).rejects.toMatchObject({
    cause: { message: 'Too many calls wait for the database' },
  })
  wait(large, 3_950) // the last one is of the hundredth statement
  await expect(wait(large, 1)).rejects.toThrow(OverloadedError)
  expect(usage.waiting).toBe(1_001 + 4_951)
  left.giveUp(new Error('The client has left'))
  await Promise.all(outcomes)
  const waiting = Array.from({ length: 1_000 }, () => queue.borrow('read', forever()))
  await expect(queue.borrow('read', forever())).rejects.toThrow(OverloadedError)
  free()
  for (const one of waiting) queue.giveBack(await one, 'read')
})

test('on a session without consecutive ids each row is a statement of its own', async () => {
  const { sessions, call, inputs, running, end } = queueOf({ size: 9 })
  for (const session of sessions.idle) session.hasConsecutiveIds = false
  const calls = call(inserts, 1, 2, 3, 4)
  await drain()
  expect(inputs()).toEqual([[1], [2], [3], [4]])
  while (running.length > 0) await end()
  expect(await Promise.all(calls)).toEqual([2, 4, 6, 8])
})

test('a row that is rejected fails its own call alone, and is searched by halves', async () => {
  const { call, inputs, running } = queueOf({ size: 9 })
  const calls = call(inserts, 1, 2, 3, 4, 5, 6, 7, 8, 9)
  const outcomes = Promise.allSettled(calls)
  await drain()
  const sent: number[][] = []
  while (running.length > 0) {
    const [some = []] = inputs() as number[][]
    sent.push(some)
    if (some.includes(6)) running[0]?.fail(new RejectedRowError('twice'))
    else running[0]?.end()
    await drain()
  }
  expect(sent).toEqual([[1, 2, 3, 4, 5, 6, 7, 8, 9], [1, 2, 3, 4, 5], [6, 7], [6], [7, 8, 9]])
  const answers = (await outcomes).map((one) => (one.status === 'fulfilled' ? one.value : 'no'))
  expect(answers).toEqual([2, 4, 6, 8, 10, 'no', 14, 16, 18])
})

test('rows that the search had not sent when its session was lost run again', async () => {
  const { call, inputs, running, end } = queueOf({ size: 9 })
  const calls = call(inserts, 1, 2, 3, 4)
  const outcomes = Promise.allSettled(calls)
  await drain()
  running[0]?.fail(new RejectedRowError('twice'))
  await drain()
  expect(inputs()).toEqual([[1, 2]])
  running[0]?.fail(new DatabaseUnavailableError(undefined, false))
  await vi.waitUntil(() => inputs().flat().length === 2)
  expect(new Set(inputs().flat()), 'each after a random pause').toEqual(new Set([3, 4]))
  while (running.length > 0) await end()
  expect((await outcomes).map(({ status }) => status)).toEqual([
    ...['rejected', 'rejected', 'fulfilled', 'fulfilled'],
  ])
})

test('a transaction of a plan is not repeated', async () => {
  const { queue } = queueOf({ size: 1 })
  let attempts = 0
  const failing = {
    ...({ use: 'write', maxSize: 9 } as const),
    async runTogether() {
      attempts++
      throw new DatabaseUnavailableError(undefined, true)
    },
    output: String,
  }
  await expect(queue.run(failing, 1, forever())).rejects.toThrow(DatabaseUnavailableError)
  expect(attempts).toBe(1)
})

test('a call that is given up during the search is left out, and one of its identity is answered', async () => {
  const named = planOf('named', twice, { maxSize: 9, identityOf: String, blamesOne })
  const { queue, call, inputs, running, end } = queueOf({ size: 9 })
  const left = forever()
  const leaving = [1, 2].map((input) => queue.run(named, input, left))
  const outcomes = Promise.allSettled(leaving)
  const calls = call(named, 2, 3)
  await drain()
  left.giveUp(new Error('The client has left'))
  running[0]?.fail(new RejectedRowError('twice'))
  await drain()
  expect(inputs()).toEqual([[2]])
  while (running.length > 0) await end()
  expect(await Promise.all(calls)).toEqual([4, 6])
  expect((await outcomes).map(({ status }) => status)).toEqual(['rejected', 'rejected'])
})

test('a session that becomes free in the work of a transaction serves the calls of others', async () => {
  const { queue, call, running, end } = queueOf({ size: 1 })
  const free = await occupy(queue, 1)
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
  await expect(guarded(() => queue.run(lookUps, 1, forever()))).rejects.toThrow('in a transaction')
})

test('readiness has the next session before all calls, or one beyond all', async () => {
  const { queue, sessions, call, inputs, usage } = queueOf({ size: 2, open: 2 })
  const free = await occupy(queue, 2)
  call(lookUps, 1)
  await turns(2)
  const order: string[] = []
  const asked = ['one', 'other'].map((name) =>
    queue.borrow('readiness', forever()).then((session) => {
      order.push(name)
      return session
    }),
  )
  free()
  queue.giveBack(await (asked[0] as Promise<ControlledSession>), 'readiness')
  const session = await asked[1]
  expect([order, inputs(), usage.used]).toEqual([['one', 'other'], [], 1])
  sessions.open(1)
  expect([inputs(), usage.used]).toEqual([[[1]], 2])
  expect(sessions.taken.size, 'one beyond').toBe(3)
  queue.giveBack(session as ControlledSession, 'readiness')
})

test.each([
  [1, 1, 1],
  [2, 1, 1],
  [4, 2, 1],
  [5, 3, 2],
  [10, 6, 5],
])('of %i sessions, %i may write, %i of them in one line', async (size, writers, ofALine) => {
  const { queue, call, sessions, usage } = queueOf({ size })
  const inputs = Array.from({ length: size + 1 }, (_, input) => input)
  const writes = inputs.map(() => queue.borrow('write', forever()))
  expect(usage.used).toBe(ofALine)
  call(planOf('changes', twice, { maxSize: 1, use: 'write' }), ...inputs)
  await turns(2)
  expect(usage.used).toBe(writers)
  const reads = inputs.map(() => queue.borrow('read', forever()))
  call(planOf('single', twice, { maxSize: 1 }), ...inputs)
  await turns(2)
  expect(usage.used).toBe(size)
  expect(sessions.taken.size).toBe(size)
  expect([...reads, ...writes]).toHaveLength(2 * size + 2)
})

test.each([
  [1, 1],
  [2, 1],
  [4, 3],
  [10, 8],
])('of %i sessions, a line that reads has at most %i', async (size, most) => {
  const { queue, call, inputs, usage } = queueOf({ size })
  for (let count = 0; count <= size; count++) void queue.borrow('read', forever())
  expect(usage.used).toBe(most)
  call(lookUps, 1)
  call(pages, 2)
  await turns(2)
  expect(inputs()).toEqual([[1], [2]].slice(0, size - most))
})

test('the queue asks for as many sessions as could be used', async () => {
  const { queue, sessions, call } = queueOf({ size: 10, open: 0 })
  const last = () => sessions.prepared.at(-1)
  for (let count = 0; count < 8; count++) void queue.borrow('write', forever())
  expect(last(), 'of a line that writes').toBe(5)
  call(inserts, 1, 2)
  await turns(2)
  expect(last(), 'writers').toBe(6)
  void queue.borrow('read', forever())
  expect(last()).toBe(7)
  call(lookUps, 1, 2, 3, 4, 5)
  await turns(2)
  expect(last(), 'two statements').toBe(9)
  for (let count = 0; count < 8; count++) void queue.borrow('read', forever())
  expect(last()).toBe(10)
  void queue.borrow('readiness', forever())
  expect(last(), 'one beyond').toBe(11)
  sessions.open(4)
  expect(last(), 'of those that still wait').toBe(7)
})

test('where no session can be had, the calls that wait for one are rejected', async () => {
  const { queue, call, usage } = queueOf({ size: 10, open: 0 })
  const failure = new DatabaseUnavailableError(new Error('refused'), false)
  const calls = [queue.borrow('read', forever()), ...call(inserts, 1, 2)]
  const outcomes = Promise.allSettled(calls)
  await turns(2)
  queue.fail(failure)
  const rejected = { status: 'rejected', reason: failure }
  expect(await outcomes).toEqual([rejected, rejected, rejected])
  expect(usage).toEqual({ used: 0, waiting: 0 })
})

test('the end rejects the calls that wait or come, and waits for those that run', async () => {
  const { queue, sessions, call, end, usage } = queueOf({ size: 2 })
  const free = await occupy(queue, 1)
  const [answered] = call(lookUps, 1)
  await turns(2)
  const [waiting] = call(pages, 2)
  let hasEnded = false
  const ended = queue.end().then(() => {
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
