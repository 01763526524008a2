/** Batches: which calls share one, the number of calls that may wait for one, and the time. */
import { setImmediate } from 'node:timers/promises'
import { expect, onTestFinished, test, vi } from 'vitest'
import { coalesce } from '../../../db/coalesce/coalesce.ts'
import { connect } from '../../../db/connect.ts'
import { Deadline } from '../../../db/deadline.ts'
import { OverloadedError } from '../../../db/errors.ts'

const db = await connect('sqlite:nowhere') // no statement is sent
const MOST = 1_010
const forever = () => new Deadline(Number.POSITIVE_INFINITY)

/** The turns after which a batch has begun. */
async function turns(): Promise<void> {
  await setImmediate()
  await setImmediate()
}

/** Returns a function with batches of at most `maxSize` inputs, each of which runs until its `end`. */
function recordedBatches(maxSize: number) {
  const batches: { inputs: number[]; end: (error?: Error) => void }[] = []
  const coalesced = coalesce<number, number>({
    maxSize: () => maxSize,
    nameOf: String,
    async run(_db, inputs) {
      const { promise, resolve, reject } = Promise.withResolvers<void>()
      batches.push({ inputs, end: (error) => (error ? reject(error) : resolve()) })
      await promise
      return inputs
    },
  })
  const calls: Promise<number>[] = []
  return {
    calls,
    batches,
    inputs: () => batches.map(({ inputs }) => inputs),
    call: (input: number, deadline = forever()) => coalesced(db, input, deadline),
    /** Makes calls in one turn, after which their batches have begun. */
    async callAll(...inputs: number[]) {
      calls.push(...inputs.map((input) => coalesced(db, input, forever())))
      await turns()
    },
  }
}

/** Replaces the timers of batches, and returns a function that puts their clock forward. */
function fakeTimers() {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  return async (milliseconds: number) => {
    vi.advanceTimersByTime(milliseconds)
    await turns()
  }
}

test('two batches run concurrently, then only a full batch does not wait', async () => {
  const { calls, callAll, inputs, batches } = recordedBatches(4)
  await callAll(1, 2)
  await callAll(3)
  await callAll(5, 6)
  expect(inputs()).toEqual([[1, 2], [3]])
  await callAll(6, 7) // with the 6 that waits, no fourth input
  expect(batches).toHaveLength(2)
  await callAll(8, 9)
  expect(inputs().slice(2)).toEqual([[5, 6, 7, 8]])
  batches[0]?.end()
  batches[1]?.end()
  await turns()
  expect(inputs().slice(3), 'once fewer than two run').toEqual([[9]])
  for (const { end } of batches) end()
  expect(await Promise.all(calls)).toEqual([1, 2, 3, 5, 6, 6, 7, 8, 9])
})

test('a call whose request is the only one begins at once; later ones share a batch', async () => {
  const { calls, call, callAll, inputs, batches } = recordedBatches(4)
  calls.push(call(1, new Deadline(Number.POSITIVE_INFINITY, { isAlone: true })))
  expect(inputs()).toEqual([[1]])
  await callAll(2, 3)
  expect(inputs()).toEqual([[1], [2, 3]])
  for (const { end } of batches) end()
  expect(await Promise.all(calls)).toEqual([1, 2, 3])
})

test('a full batch does not wait for others', async () => {
  const { callAll, inputs } = recordedBatches(2)
  await callAll(1, 2, 3, 4, 5, 6, 7)
  expect(inputs()).toEqual([
    [1, 2],
    [3, 4],
    [5, 6],
  ])
})

test('a call waits 50 ms for batches that hang, whatever an earlier call waited', async () => {
  const pass = fakeTimers()
  const { calls, callAll, inputs, batches } = recordedBatches(9)
  for (const input of [1, 2, 3]) await callAll(input)
  await pass(40)
  expect(inputs()).toEqual([[1], [2]])
  batches[0]?.end()
  await turns()
  await callAll(4)
  await pass(49)
  expect(inputs()).toEqual([[1], [2], [3]])
  await pass(1)
  expect(inputs()).toEqual([[1], [2], [3], [4]])
  for (const { end } of batches) end()
  expect(await Promise.all(calls)).toEqual([1, 2, 3, 4])
})

test('a call that is given up while it waits is not part of the next batch', async () => {
  fakeTimers() // so that no wait ends by itself
  const { call, callAll, inputs, batches } = recordedBatches(9)
  const left = new Error('The client has left')
  const givenUp = forever()
  const leave = (input: number) => expect(call(input, givenUp)).rejects.toBe(left)
  await callAll(1)
  await callAll(2)
  const leaving = [leave(3), leave(4)] // another call waits for the output of 3
  await callAll(3, 5)
  givenUp.giveUp(left)
  await Promise.all(leaving)
  await leave(5) // it has left already
  batches[0]?.end()
  await turns()
  expect(inputs()).toEqual([[1], [2], [3, 5]])
})

test('calls beyond the limit are rejected while a batch runs, not in the turn of the first', async () => {
  const { call, callAll, calls, batches } = recordedBatches(2_000)
  await callAll(...Array(MOST + 1).keys())
  expect(batches).toHaveLength(1)
  await expect(call(6)).rejects.toMatchObject({
    name: 'OverloadedError',
    cause: { message: 'Too many calls wait for the database' },
  })
  // Calls that failed or were given up no longer count.
  const failed = Promise.allSettled(calls)
  batches[0]?.end(new Error('The database failed'))
  for (const { status } of await failed) expect(status).toBe('rejected')
  const givenUp = forever()
  const lost = Promise.allSettled(Array.from({ length: MOST }, (_, input) => call(input, givenUp)))
  await turns()
  await expect(call(6)).rejects.toThrow(OverloadedError)
  givenUp.giveUp(new Error('The client has left'))
  await lost
  const last = call(7)
  await turns()
  for (const { end } of batches) end()
  expect(await last).toBe(7)
})
