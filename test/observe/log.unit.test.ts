/** Frequent events are logged once a second. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { oncePerSecond } from '../../src/observe/log.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

test('the first event is reported at once, further events once a second with their count', () => {
  const reported: number[] = []
  const happened = oncePerSecond((count) => reported.push(count))
  for (let index = 0; index < 1_000; index++) happened()
  expect(reported).toEqual([1])
  vi.advanceTimersByTime(999)
  expect(reported).toEqual([1])
  vi.advanceTimersByTime(1)
  expect(reported).toEqual([1, 999])
  // An event soon after a sum waits for the next one.
  happened()
  happened()
  expect(reported).toEqual([1, 999])
  vi.advanceTimersByTime(1_000)
  expect(reported).toEqual([1, 999, 2])
  vi.advanceTimersByTime(10_000)
  expect(reported).toEqual([1, 999, 2])
  happened()
  expect(reported).toEqual([1, 999, 2, 1])
})
