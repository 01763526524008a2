/** The clock of this process, for tests that do not wait. */
import { onTestFinished, vi } from 'vitest'

const now = performance.now.bind(performance)

/** Stops `performance.now` until the test ends; timers are not affected. */
export function stopClock(): void {
  vi.spyOn(performance, 'now').mockReturnValue(now())
  onTestFinished(() => void vi.restoreAllMocks())
}

/** Puts `performance.now` ahead by these milliseconds, until the test ends; timers are not affected. */
export function pass(ahead: number): void {
  vi.spyOn(performance, 'now').mockImplementation(() => now() + ahead)
  onTestFinished(() => void vi.restoreAllMocks())
}
