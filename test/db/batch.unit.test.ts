/** Batches: the number of calls that may wait for one, and the time. */
import { setTimeout } from 'node:timers/promises'
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

test('concurrent calls beyond the size of a batch do not wait for a batch that hangs', async () => {
  const sizes: number[] = []
  const { promise, resolve } = Promise.withResolvers<void>()
  const call = batch<number, number>({
    maxSize: most,
    async run(_db, inputs) {
      sizes.push(inputs.length)
      await promise
      return inputs
    },
  })
  const calls = Array.from({ length: 2 * most + 1 }, (_, index) => call(db, index, forever()))
  await eventually(() => expect(sizes).toEqual([most, most, 1]))
  resolve()
  expect(await Promise.all(calls)).toEqual(calls.map((_, index) => index))
})
