/** The failures after which the work is repeated, and the number of attempts. */
import { expect, onTestFinished, test, vi } from 'vitest'
import { Deadline } from '../../db/deadline.ts'
import {
  ConflictError,
  DatabaseTimeoutError,
  DatabaseUnavailableError,
  DuplicateError,
  LockedError,
  OverloadedError,
} from '../../db/errors.ts'
import { retry } from '../../db/retry.ts'

const cause = new Error('The database says no')

test.each<[what: string, error: Error, repeatable: number, others: number]>([
  ['no effect', new DatabaseUnavailableError(cause, true), 3, 3],
  ['an unknown effect', new DatabaseUnavailableError(cause, false), 3, 1],
  ['a lock', new LockedError(cause, true), 3, 3],
  ['a conflict', new ConflictError(cause, true), 6, 6],
  ['no time left', new DatabaseTimeoutError(1), 1, 1],
  ['an overload, which another attempt would increase', new OverloadedError('Too many'), 1, 1],
  ['a duplicate', new DuplicateError('Taken'), 1, 1],
  ['a bug', new TypeError('A bug'), 1, 1],
])('after %s', async (_, error, expected, expectedOfOthers) => {
  const attemptsOf = async (repeatable: boolean) => {
    let attempts = 0
    const work = async () => {
      attempts++
      throw error
    }
    await expect(retry(work, { repeatable })).rejects.toBe(error)
    return attempts
  }
  expect(await attemptsOf(true)).toBe(expected)
  expect(await attemptsOf(false)).toBe(expectedOfOthers)
})

// A fixed pause would let calls in conflict meet again and again.
test.each([
  ['a failure', new DatabaseUnavailableError(cause, true), [20, 100]],
  ['a conflict', new ConflictError(cause, true), [20, 50, 100, 200, 400]],
])('the pauses after %s are random, up to half as long again', async (_, error, averages) => {
  const random = vi.spyOn(Math, 'random').mockReturnValue(1)
  onTestFinished(() => random.mockRestore())
  const times: number[] = []
  const work = async () => {
    times.push(performance.now())
    throw error
  }
  await expect(retry(work, { repeatable: true })).rejects.toBe(error)
  const pauses = times.slice(1).map((time, index) => time - (times[index] as number))
  expect(pauses).toHaveLength(averages.length)
  for (const [index, average] of averages.entries()) {
    expect(pauses[index]).toBeGreaterThan(average * 1.5 - 3)
    expect(pauses[index], 'not seconds').toBeLessThan(average * 150)
  }
})

test('after the deadline there is no further attempt, and its reason is thrown', async () => {
  const deadline = new Deadline(Number.POSITIVE_INFINITY)
  const reason = new Error('The client has gone')
  let attempts = 0
  const work = async () => {
    attempts++
    deadline.giveUp(reason)
    throw new DatabaseUnavailableError(cause, true)
  }
  await expect(retry(work, { repeatable: true, deadline })).rejects.toBe(reason)
  expect(attempts).toBe(1)
})

test('a pause ends at the deadline', async () => {
  const random = vi.spyOn(Math, 'random').mockReturnValue(1e6) // a pause of hours
  onTestFinished(() => random.mockRestore())
  using deadline = new Deadline(30)
  const work = () => Promise.reject(new ConflictError(cause, true))
  const repeating = retry(work, { repeatable: true, deadline })
  await expect(repeating).rejects.toThrow(DatabaseTimeoutError)
})
