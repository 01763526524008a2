/** When a call begins, by the table at the head of db/queue.ts, and what the model does not have. Reads that begin at once are in `reads.sqlite.test.ts`. */
import { expect, test } from 'vitest'
import { DatabaseUnavailableError, OverloadedError, RejectedRowError } from '../../../db/errors.ts'
import { guarded } from '../../../db/guard.ts'
import type { StatementPlan } from '../../../db/plan.ts'
import { drain, forever, newQueue, planOf, turns } from './sessions.ts'

const twice = (input: number) => 2 * input
const blamesOne = (error: unknown) => error instanceof RejectedRowError
const lookUps = planOf('lookUps', twice, { maxSize: 4, identityOf: String })
const pages = planOf('pages', twice, { maxSize: 2 })
const inserts = planOf('inserts', twice, { maxSize: 9, use: 'write', blamesOne })

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
    /** Takes a session, and returns a function that gives it back. */
    async occupy() {
      const session = await made.queue.borrow('read', forever())
      return () => made.queue.giveBack(session, 'read')
    },
  }
}

// What was before the calls.
test.each<[string, (all: ReturnType<typeof queueOf>) => unknown]>([
  ['nothing', () => {}],
  [
    'a statement of one call, which has ended',
    async ({ call, end }) => {
      call(lookUps, 1)
      await turns(2)
      await end()
    },
  ],
  [
    'a call that was given up while it waited for a session',
    async ({ queue, sessions }) => {
      const idle = sessions.idle.splice(0)
      const left = forever()
      const leaving = expect(queue.run(lookUps, 1, left)).rejects.toThrow('left')
      await turns(2)
      left.giveUp(new Error('The client has left'))
      await leaving
      sessions.idle.push(...idle)
    },
  ],
  ['a session that is in use', ({ occupy }) => occupy()],
  [
    'a call of another line, which waits for a session',
    async ({ call, sessions }) => {
      const idle = sessions.idle.splice(0)
      call(pages, 1)
      await turns(2)
      sessions.idle.push(...idle)
    },
  ],
  [
    'a statement that took along what waited, whose turns have not passed',
    async ({ call, end }) => {
      call(lookUps, 1)
      await turns(2)
      call(lookUps, 2)
      await turns(1)
      await end()
    },
  ],
])(
  'a call begins after two turns, with those that come until then: before it, there was %s',
  async (_, before) => {
    const all = queueOf({ size: 9 })
    await before(all)
    const begun = () => all.inputs().filter(([first]) => first === 11)
    all.call(lookUps, 11)
    await turns(1)
    expect(begun()).toEqual([])
    all.call(lookUps, 12)
    await turns(1)
    expect(begun()).toEqual([[11, 12]])
  },
)

test('a call of sessions of this process begins at once, with those of the same moment', async () => {
  const { call, inputs } = queueOf({ size: 1, isInProcess: true })
  call(inserts, 1)
  call(inserts, 2, 3)
  expect(inputs()).toEqual([])
  await drain()
  expect(inputs()).toEqual([[1, 2, 3]])
})

test('a call begins when a statement of its line ends', async () => {
  const { call, inputs, end } = queueOf({ size: 9 })
  call(lookUps, 1)
  await turns(2)
  call(lookUps, 2, 3)
  await end()
  expect(inputs()).toEqual([[2, 3]])
})

test('a call begins once a session is free, in the order in which the lines became due, with all that wait in its line', async () => {
  const { call, occupy, inputs, end } = queueOf({ size: 1 })
  const free = await occupy()
  call(pages, 1, 2, 3)
  call(lookUps, 4)
  await turns(2)
  call(lookUps, 5)
  free()
  // The rest of a line comes behind the others.
  for (const expected of [[1, 2], [4, 5], [3]]) {
    expect(inputs()).toEqual([expected])
    await end()
  }
})

test('a line whose calls have all left has no place any more, and gathers again', async () => {
  const { queue, call, occupy, inputs, end } = queueOf({ size: 1 })
  const free = await occupy()
  const left = forever()
  const leaving = expect(queue.run(pages, 1, left)).rejects.toThrow('left')
  await turns(2)
  call(lookUps, 2)
  await turns(2)
  left.giveUp(new Error('The client has left'))
  await leaving
  call(pages, 3)
  free()
  expect(inputs()).toEqual([[2]])
  call(pages, 4)
  await end()
  await turns(2)
  expect(inputs()).toEqual([[3, 4]])
})

test('a line that becomes due while it gathers has one place', async () => {
  const { call, inputs, end } = queueOf({ size: 1 })
  call(pages, 1)
  await turns(2)
  call(lookUps, 2)
  await turns(2)
  call(pages, 3, 4, 5)
  await end()
  expect(inputs()).toEqual([[2]])
  await turns(2)
  call(lookUps, 6)
  await turns(2)
  for (const expected of [[3, 4], [6], [5]]) {
    await end()
    expect(inputs()).toEqual([expected])
  }
})

test('sessions are asked for as the calls come, one for each of their statements', async () => {
  const { call, sessions } = queueOf({ size: 9, open: 0 })
  for (const count of [1, 2, 3]) {
    call(pages, 1, 2)
    await turns(2)
    expect(sessions.prepared.at(-1)).toBe(count)
  }
})

test.each([
  ['read', lookUps],
  ['write', inserts],
] as const)(
  'many calls of one line that may %s leave a session to another line',
  async (use, plan) => {
    const { queue, call, inputs } = queueOf({ size: 10 })
    for (let count = 0; count < 10; count++) void queue.borrow(use, forever())
    call(plan, 1)
    await turns(2)
    expect(inputs()).toEqual([[1]])
  },
)

test('a thousand calls may wait in a line, or those of a hundred statements; those of one turn are not counted', async () => {
  const { queue, occupy, usage } = queueOf({ size: 1 })
  await occupy()
  const large = planOf('large', twice, { maxSize: 50 })
  const wait = (plan: typeof large, count: number) => {
    const calls = Array.from({ length: count }, (_, input) => queue.run(plan, input, forever()))
    for (const call of calls) call.catch(() => {})
    return calls.at(-1)
  }
  wait(pages, 1_001) // two in a statement
  wait(large, 1_001)
  await turns(2)
  const refused = { cause: { message: 'Too many calls wait for the database' } }
  await expect(wait(pages, 1)).rejects.toMatchObject(refused)
  await expect(wait(pages, 1)).rejects.toThrow(OverloadedError)
  wait(large, 3_950) // the last one is of the hundredth statement
  await expect(wait(large, 1)).rejects.toMatchObject(refused)
  expect(usage.waiting).toBe(1_001 + 4_951)
})

test('a transaction of a plan is not repeated', async () => {
  const { queue } = queueOf({ size: 1 })
  let attempts = 0
  const failing = {
    ...({ use: 'write', maxSize: 9 } as const),
    async commitTogether() {
      attempts++
      throw new DatabaseUnavailableError(undefined, true)
    },
    output: String,
  }
  await expect(queue.run(failing, 1, forever())).rejects.toThrow(DatabaseUnavailableError)
  expect(attempts).toBe(1)
})

test('a session that becomes free in the work of a transaction serves the calls of others', async () => {
  const { queue, call, occupy, running, end } = queueOf({ size: 1 })
  const free = await occupy()
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
