/** The counters of the rate limit: bounded memory, waits and refunds. */
import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { expect, onTestFinished, test, vi } from 'vitest'
import { createRateLimit } from '../../src/http/rate-limit.ts'
import { trustOf } from '../../src/http/request.ts'

const req = new IncomingMessage(new Socket())
const res = new ServerResponse(req)

test('many new callers evict the oldest counters', () => {
  const { countKey } = createRateLimit(1, trustOf(0))
  countKey(res, 0n, 1)
  expect(() => countKey(res, 0n, 1)).toThrow('more than 1 calls')
  for (let keyId = 1n; keyId <= 100_000n; keyId++) countKey(res, keyId, 1)
  expect(() => countKey(res, 0n, 1)).not.toThrow()
})

test('a flood of new callers does not reset the counter of one that goes on calling', () => {
  const { countKey } = createRateLimit(1, trustOf(0))
  countKey(res, 0n, 1)
  for (let keyId = 1n; keyId <= 150_000n; keyId++) {
    countKey(res, keyId, 1)
    if (keyId % 50_000n === 0n) expect(() => countKey(res, 0n, 1)).toThrow('more than 1 calls')
  }
})

test('a caller that waits as long as the error says is served', () => {
  const { countKey } = createRateLimit(1, trustOf(0))
  const start = 6_980.21 // from here a minute has 60,000.00000000001 milliseconds
  let now = start
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => now)
  onTestFinished(() => clock.mockRestore())
  countKey(res, 0n, 1)
  for (const [time, seconds] of [
    [0, 60],
    [600, 60],
    [1_000, 59],
    [59_600, 1],
  ] as const) {
    now = start + time
    expect(() => countKey(res, 0n, 1)).toThrow(`again in ${seconds} seconds`)
  }
  now += 1_000
  expect(() => countKey(res, 0n, 1)).not.toThrow()
})

test('a refund after the end of the minute adds no credit', () => {
  const { countIpAddress, refundIpAddress } = createRateLimit(1, trustOf(0))
  countIpAddress(res, 1)
  const now = performance.now.bind(performance)
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => now() + 60_001)
  onTestFinished(() => clock.mockRestore())
  refundIpAddress(res, 1)
  countIpAddress(res, 1)
  expect(() => countIpAddress(res, 1)).toThrow('more than 1 calls')
})
