/** Batches: the number of calls that may wait for one, and the time. */
import { setImmediate, setTimeout } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { batch } from '../../db/batch.ts'
import { connect } from '../../db/connect.ts'
import { Deadline } from '../../db/deadline.ts'
import { OverloadedError } from '../../db/errors.ts'
import { eventually } from '../support/eventually.ts'

const db = await connect('sqlite:nowhere') // no statement is sent
const most = 300
const callers = 1_010

/** Returns a batched function that returns its input, or throws, when `end` is called. */
function startBatches() {
  let held = Promise.withResolvers<void>()
  const call = batch<number, number>({
    maxSize: most,
    async run(_db, inputs) {
      await held.promise
      return inputs
    },
  })
  return {
    call: (input: number, deadline: Deadline) => call(db, input, deadline),
    end: (error?: Error) => {
      if (error) held.reject(error)
      else held.resolve()
      held = Promise.withResolvers()
    },
  }
}

const forever = () => new Deadline(Number.POSITIVE_INFINITY)

test('calls that failed or were aborted no longer count as waiting', async () => {
  const { call, end } = startBatches()
  const deadline = forever()
  for (let round = 0; round < 3; round++) {
    // The first batch runs, and the other calls wait for it.
    const first = call(0, deadline)
    await setTimeout(5)
    const givenUp = forever()
    const lost = Array.from({ length: callers - 1 }, (_, index) =>
      call(index, index % 2 === 0 ? deadline : givenUp),
    )
    await expect(call(0, deadline), 'beyond the limit').rejects.toThrow(OverloadedError)
    givenUp.giveUp(new Error('The client has left'))
    const outcomes = Promise.allSettled([first, ...lost])
    while (await isPending(outcomes)) end(new Error('The database failed'))
    const reasons = (await outcomes).map((outcome) =>
      outcome.status === 'rejected' ? outcome.reason.message : 'answered',
    )
    expect(new Set(reasons)).toEqual(new Set(['The database failed', 'The client has left']))
  }
})

async function isPending(promise: Promise<unknown>): Promise<boolean> {
  const isOver = promise.then(
    () => false,
    () => false,
  )
  return await Promise.race([isOver, setTimeout(1, true)])
}

test('a call does not wait if no batch is running', async () => {
  const call = batch<number, number>({ maxSize: most, run: async (_db, inputs) => inputs })
  const begun = performance.now()
  for (let index = 0; index < 40; index++) expect(await call(db, index, forever())).toBe(index)
  expect(performance.now() - begun).toBeLessThan(1_500) // with 50 ms each it would be 2,000
})

test('concurrent calls beyond the size of a batch do not wait for batches that hang', async () => {
  const size = 100
  const sizes: number[] = []
  const { promise, resolve } = Promise.withResolvers<void>()
  const call = batch<number, number>({
    maxSize: size,
    async run(_db, inputs) {
      sizes.push(inputs.length)
      await promise
      return inputs
    },
  })
  const calls = Array.from({ length: 4 * size + 1 }, (_, index) => call(db, index, forever()))
  await eventually(() => expect(sizes).toEqual([size, size, size, size, 1]))
  const later = Array.from({ length: 2 * size }, (_, index) =>
    call(db, calls.length + index, forever()),
  )
  await eventually(() => expect(sizes.slice(5)).toEqual([size, size]))
  calls.push(...later, call(db, calls.length + later.length, forever()))
  await eventually(() => expect(sizes.slice(7)).toEqual([1]))
  resolve()
  expect(await Promise.all(calls)).toEqual(calls.map((_, index) => index))
})

test('two batches run concurrently, then only a full batch does not wait', async () => {
  const { call, batches } = recordedBatches(4)
  const calls: Promise<unknown>[] = []
  const callAll = async (...inputs: number[]) => {
    calls.push(...inputs.map((input) => call(db, input, forever())))
    await setImmediate()
  }
  await callAll(1, 2)
  await callAll(3)
  await callAll(5, 6)
  expect(inputsOf(batches)).toEqual([[1, 2], [3]])
  await callAll(6, 7) // with the 6 that waits, no fourth input
  expect(batches).toHaveLength(2)
  await callAll(8, 9)
  expect(inputsOf(batches).slice(2)).toEqual([[5, 6, 7, 8]])
  batches[0]?.end()
  batches[1]?.end()
  await setImmediate()
  expect(inputsOf(batches).slice(3), 'once fewer than two run').toEqual([[9]])
  for (const { end } of batches) end()
  expect(await Promise.all(calls)).toEqual([1, 2, 3, 5, 6, 6, 7, 8, 9])
})

test('a batch with a pause does not begin beside another, even if it is full', async () => {
  const { call, batches } = recordedBatches(2, 1)
  const calls = [1, 2, 3, 4, 5].map((input) => call(db, input, forever()))
  await setTimeout(100)
  calls.push(call(db, 6, forever()))
  await setImmediate()
  expect(inputsOf(batches)).toEqual([[1, 2]])
  while (inputsOf(batches).flat().length < calls.length) {
    batches.at(-1)?.end()
    await setTimeout(1)
  }
  batches.at(-1)?.end()
  expect(inputsOf(batches)).toEqual([
    [1, 2],
    [3, 4],
    [5, 6],
  ])
  expect(await Promise.all(calls)).toEqual([1, 2, 3, 4, 5, 6])
})

test('a batch with a pause begins only after the pause', async () => {
  const { call, batches } = recordedBatches(2, 100)
  const calls = [1, 2, 3].map((input) => call(db, input, forever()))
  await setImmediate()
  batches[0]?.end()
  const end = performance.now()
  await setTimeout(20)
  calls.push(call(db, 4, forever())) // the second batch is full now
  await eventually(() =>
    expect(inputsOf(batches)).toEqual([
      [1, 2],
      [3, 4],
    ]),
  )
  expect(performance.now() - end).toBeGreaterThan(95)
  batches[1]?.end()
  expect(await Promise.all(calls)).toEqual([1, 2, 3, 4])
})

test('a batch with a pause begins half a second after one that hangs', async () => {
  const { call, batches } = recordedBatches(2, 10)
  const calls = [1, 2, 3, 4, 5].map((input) => call(db, input, forever()))
  const begun = performance.now()
  await eventually(() => expect(inputsOf(batches)).toEqual([[1, 2], [3, 4], [5]]))
  expect(performance.now() - begun).toBeGreaterThan(990)
  for (const { end } of batches) end()
  expect(await Promise.all(calls)).toEqual([1, 2, 3, 4, 5])
})

/** Returns a function with batches of at most `maxSize` inputs, each of which runs until its `end`. */
function recordedBatches(maxSize: number, pause = 0) {
  const batches: { inputs: number[]; end: () => void }[] = []
  const call = batch<number, number>({
    maxSize,
    pause,
    nameOf: String,
    async run(_db, inputs) {
      const { promise, resolve } = Promise.withResolvers<void>()
      batches.push({ inputs, end: resolve })
      await promise
      return inputs
    },
  })
  return { call, batches }
}

const inputsOf = (batches: { inputs: number[] }[]) => batches.map(({ inputs }) => inputs)
