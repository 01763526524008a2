/** The listeners of a deadline, and what does not count. */
import { expect, onTestFinished, test, vi } from 'vitest'
import { Deadline } from '../../db/deadline.ts'

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
