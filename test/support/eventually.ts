/** Waits and retries for a machine that may be busy. */
import { vi } from 'vitest'

/**
 * For a test of a maximum time. On a busy machine the time may be exceeded in one run; an error in
 * the service exceeds it in all three.
 */
export const outOfThree = { retry: 2 }

/** Waits until a check no longer throws. After 30 seconds it throws the error of the check. */
export const eventually = <Result>(check: () => Result | Promise<Result>): Promise<Result> =>
  vi.waitFor(check, { timeout: 30_000, interval: 20 })
