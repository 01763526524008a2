/** Waiting for what will be so in the end, on a machine that may be busy with other things. */
import { vi } from 'vitest'

/**
 * For a test that asks whether something is in time: where the machine does too much else at once, what
 * was in time is noticed late, now and then; what comes too late does so each time.
 */
export const outOfThree = { retry: 2 }

/** Waits until a check does not throw any more; after half a minute it throws what the check throws. */
export const eventually = <Result>(check: () => Result | Promise<Result>): Promise<Result> =>
  vi.waitFor(check, { timeout: 30_000, interval: 20 })
