/** The listeners of a deadline, and what does not count. */
import { stat } from 'node:fs/promises'
import { setImmediate } from 'node:timers/promises'
import { expect, onTestFinished, test, vi } from 'vitest'
import { Deadline } from '../../db/deadline.ts'
import { outOfThree } from '../support/eventually.ts'

test('each listener is called once, except those that were removed, even twice', () => {
  const deadline = new Deadline(Number.POSITIVE_INFINITY)
  const called: string[] = []
  const listen = (name: string) =>
    deadline.onGiveUp(({ message }) => called.push(`${name}: ${message}`))
  const removeFirst = listen('first')
  listen('second')
  listen('third')
  removeFirst()
  removeFirst()
  deadline.giveUp(new Error('over'))
  deadline.giveUp(new Error('again'))
  removeFirst()
  listen('late')
  expect(called).toEqual(['second: over', 'third: over', 'late: over'])
  expect(deadline.reason?.message).toBe('over')
})

test('a listener that removes itself does not affect the next one', () => {
  const deadline = new Deadline(Number.POSITIVE_INFINITY)
  const called: string[] = []
  const removeFirst = deadline.onGiveUp(() => {
    removeFirst()
    called.push('first')
  })
  deadline.onGiveUp(() => called.push('second'))
  deadline.giveUp(new Error('over'))
  expect(called).toEqual(['first', 'second'])
})

test('a call that is over is not given up', () => {
  const deadline = new Deadline(Number.POSITIVE_INFINITY)
  const listener = vi.fn()
  deadline.onGiveUp(listener)
  deadline.clear()
  deadline.giveUp(new Error('late'))
  deadline.onGiveUp(listener)
  expect(deadline.reason).toBeUndefined()
  expect(listener).not.toHaveBeenCalled()
})

test('an answer that arrives while the process stands still is in time', outOfThree, async () => {
  using deadline = new Deadline(10)
  await setImmediate() // next come the timers, and then the answers
  const answer = deadline.race(stat(import.meta.filename).then(() => 'answered'))
  const end = performance.now() + 200
  while (performance.now() < end);
  expect(await answer).toBe('answered')
})

test('the time of suspended work does not count, whether it succeeds or fails', async () => {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  const deadline = new Deadline(100)
  const wait = async (time: number) => void (await vi.advanceTimersByTimeAsync(time))
  await wait(30)
  expect(await deadline.suspend(() => wait(1_000).then(() => 'done'))).toBe('done')
  await wait(30)
  const failed = deadline.suspend(() => wait(1_000).then(() => Promise.reject(new Error('no'))))
  await expect(failed).rejects.toThrow('no')
  await wait(39)
  expect(deadline.reason).toBeUndefined()
  await wait(2)
  expect(deadline.reason?.message).toBe('The database cannot be used right now')
})

test('after the end of a call nothing begins again', async () => {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  const deadline = new Deadline(100)
  const listener = vi.fn()
  deadline.onGiveUp(listener)
  await deadline.suspend(async () => deadline.clear())
  expect(vi.getTimerCount()).toBe(0)
  const unlimited = new Deadline(Number.POSITIVE_INFINITY)
  await unlimited.suspend(async () => {})
  expect(vi.getTimerCount()).toBe(0)
})
