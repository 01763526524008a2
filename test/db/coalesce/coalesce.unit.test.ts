/** Batches: the number of calls that may wait for one, and the time. */
import { setImmediate, setTimeout } from 'node:timers/promises'
import { expect, onTestFinished, test, vi } from 'vitest'
import { coalesce } from '../../../db/coalesce/coalesce.ts'
import { connect } from '../../../db/connect.ts'
import { Deadline } from '../../../db/deadline.ts'
import { OverloadedError } from '../../../db/errors.ts'
import { eventually } from '../../support/eventually.ts'

const db = await connect('sqlite:nowhere') // no statement is sent
const most = 300
const callers = 1_010

/** Returns a batched function that returns its input, or throws, when `end` is called. */
function startBatches() {
  let held = Promise.withResolvers<void>()
  const call = coalesce<number, number>({
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

test('concurrent calls beyond the size of a batch do not wait for batches that hang', async () => {
  const size = 100
  const sizes: number[] = []
  const { promise, resolve } = Promise.withResolvers<void>()
  const call = coalesce<number, number>({
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

/** Replaces the timers of batches, and returns a function that puts their clock forward. */
function fakeTimers() {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  return async (milliseconds: number) => {
    vi.advanceTimersByTime(milliseconds)
    await setImmediate()
  }
}

test('a call waits 50 ms for batches that hang, whatever an earlier call waited', async () => {
  const pass = fakeTimers()
  const { call, batches } = recordedBatches(9)
  const calls: Promise<number>[] = []
  const begin = async (input: number) => {
    calls.push(call(db, input, forever()))
    await setImmediate()
  }
  for (const input of [1, 2, 3]) await begin(input)
  await pass(40)
  expect(inputsOf(batches)).toEqual([[1], [2]])
  batches[0]?.end()
  await setImmediate()
  await begin(4)
  await pass(49)
  expect(inputsOf(batches)).toEqual([[1], [2], [3]])
  await pass(1)
  expect(inputsOf(batches)).toEqual([[1], [2], [3], [4]])
  for (const { end } of batches) end()
  expect(await Promise.all(calls)).toEqual([1, 2, 3, 4])
})

test('a call that is given up while it waits is not part of the next batch', async () => {
  fakeTimers() // so that no wait ends by itself
  const { call, batches } = recordedBatches(9)
  const givenUp = forever()
  const calls: Promise<number>[] = []
  const begin = async (input: number, deadline = forever()) => {
    calls.push(call(db, input, deadline))
    await setImmediate()
  }
  await begin(1)
  await begin(2)
  await begin(3, givenUp) // another call waits for the same output
  for (const [input, deadline] of [[3], [4, givenUp], [5]] as [number, Deadline?][]) {
    void begin(input, deadline)
  }
  const outcomes = Promise.allSettled(calls)
  givenUp.giveUp(new Error('The client has left'))
  batches[0]?.end()
  await setImmediate()
  expect(inputsOf(batches)).toEqual([[1], [2], [3, 5]])
  // Nothing is left of the last batch.
  const last = forever()
  const lost = expect(call(db, 6, last)).rejects.toThrow('The client has left')
  last.giveUp(new Error('The client has left'))
  await lost
  for (const { end } of batches) end()
  await setImmediate()
  expect(batches).toHaveLength(3)
  const values = (await outcomes).map((outcome) =>
    outcome.status === 'fulfilled' ? outcome.value : outcome.reason.message,
  )
  expect(values).toEqual([1, 2, 'The client has left', 3, 'The client has left', 5])
})

test('calls beyond the limit are rejected while a batch runs, not in the turn of the first', async () => {
  const { promise, resolve } = Promise.withResolvers<void>()
  const call = coalesce<number, number>({
    maxSize: 2,
    async run(_db, inputs) {
      await promise
      return inputs
    },
  })
  const inputs = Array.from({ length: callers + 1 }, (_, index) => index)
  const calls = inputs.map((input) => call(db, input, forever()))
  await setImmediate()
  await expect(call(db, 6, forever())).rejects.toMatchObject({
    name: 'OverloadedError',
    cause: { message: 'Too many calls wait for the database' },
  })
  resolve()
  expect(await Promise.all(calls)).toEqual(inputs)
  expect(await call(db, 7, forever())).toBe(7)
})

/** Returns a function with batches of at most `maxSize` inputs, each of which runs until its `end`. */
function recordedBatches(maxSize: number) {
  const batches: { inputs: number[]; end: () => void }[] = []
  const call = coalesce<number, number>({
    maxSize,
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
