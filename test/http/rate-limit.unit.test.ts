/** What counts calls is bounded, whatever number of callers they come from. */
import type { Response } from 'express'
import { expect, test } from 'vitest'
import { createRateLimit } from '../../src/http/rate-limit.ts'

test('a flood of ever new callers starts the oldest counts anew', () => {
  const { countKey } = createRateLimit(1)
  // All that is asked of an answer here.
  const res = { setHeader: () => {} } as unknown as Response
  countKey(res, 0n, 1)
  expect(() => countKey(res, 0n, 1)).toThrow('more than 1 calls')
  for (let keyId = 1n; keyId <= 100_000n; keyId++) countKey(res, keyId, 1)
  expect(() => countKey(res, 0n, 1)).not.toThrow()
})
