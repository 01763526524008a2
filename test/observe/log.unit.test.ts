/** What happens many times a second is an entry a second. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { summed } from '../../src/observe/log.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

test('the first is told at once, those that follow once a second, with their number', () => {
  const told: number[] = []
  const happened = summed((count) => told.push(count))
  for (let index = 0; index < 1_000; index++) happened()
  expect(told).toEqual([1])
  vi.advanceTimersByTime(1_000)
  expect(told).toEqual([1, 999])
  vi.advanceTimersByTime(10_000)
  expect(told).toEqual([1, 999])
  happened()
  expect(told).toEqual([1, 999, 1])
})
