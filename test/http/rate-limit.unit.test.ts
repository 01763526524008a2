/** What counts calls is bounded, whatever number of callers they come from. */
import type { Response } from 'express'
import { expect, onTestFinished, test, vi } from 'vitest'
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

test('who waits for as long as a refusal says is served', () => {
  const { countKey } = createRateLimit(1)
  const res = { setHeader: () => {} } as unknown as Response
  let now = 0
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => now)
  onTestFinished(() => clock.mockRestore())
  countKey(res, 0n, 1)
  for (const [time, seconds] of [
    [0, 60],
    [600, 60],
    [1_000, 59],
    [59_600, 1],
  ] as const) {
    now = time
    expect(() => countKey(res, 0n, 1)).toThrow(`again in ${seconds} seconds`)
  }
  now += 1_000
  expect(() => countKey(res, 0n, 1)).not.toThrow()
})

test('what is given back after the minute is over is no credit', () => {
  const { countIpAddress, refundIpAddress } = createRateLimit(1)
  const req = { ip: '127.0.0.1', socket: {} }
  const res = { req, setHeader: () => {} } as unknown as Response
  countIpAddress(res, 1)
  const now = performance.now.bind(performance)
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => now() + 60_001)
  onTestFinished(() => clock.mockRestore())
  refundIpAddress(res, 1)
  countIpAddress(res, 1)
  expect(() => countIpAddress(res, 1)).toThrow('more than 1 calls')
})
