/** How many calls a caller may make. Each process counts for itself. */
import { createHash } from 'node:crypto'
import type { Response } from 'express'
import { ipKeyGenerator, MemoryStore, type Options } from 'express-rate-limit'
import { tooManyRequests } from '../errors.ts'
import { recordOf } from './record.ts'
import { addressOf } from './request.ts'

const WINDOW = 60_000 // milliseconds

/**
 * Counts calls per minute: per API key, and per address where there is no valid key (IPv6: per
 * subnet of 56 bits). What counts throws TOO_MANY_REQUESTS when there were too many, with
 * `Retry-After`, and tells how much is left in the headers of
 * draft-ietf-httpapi-ratelimit-headers-08.
 */
export interface RateLimit {
  /** Counts calls of an address, before its key is looked for. */
  countAddress(res: Response, calls: number): Promise<void>
  /** Gives the address its calls back: their key turned out to be valid. */
  giveBack(res: Response, calls: number): Promise<void>
  /** Counts calls of a valid key. */
  countKey(res: Response, keyId: bigint, calls: number): Promise<void>
}

export function createRateLimit(limit: number): RateLimit {
  const store = new MemoryStore()
  // The store looks at nothing else of the options.
  store.init({ windowMs: WINDOW } as Options)

  // The store counts in the same tick, and one by one.
  const count = async (res: Response, who: string, calls: number) => {
    const counts = Array.from({ length: calls }, () => store.increment(who))
    const { totalHits = 0, resetTime = new Date() } = (await Promise.all(counts)).at(-1) ?? {}
    const seconds = Math.max(0, Math.ceil((resetTime.getTime() - Date.now()) / 1000))
    const name = `"${limit}-in-1min"`
    const partition = createHash('sha256').update(who).digest('hex').slice(0, 12)
    const left = Math.max(0, limit - totalHits)
    recordOf(res).headers = [
      'RateLimit',
      `${name}; r=${left}; t=${seconds}`,
      'RateLimit-Policy',
      `${name}; q=${limit}; w=60; pk=:${btoa(partition)}:`,
    ]
    if (totalHits <= limit) return
    throw tooManyRequests(limit, seconds)
  }
  const address = ({ req }: Response) => `address ${ipKeyGenerator(addressOf(req) ?? '')}`
  return {
    countAddress: (res, calls) => count(res, address(res), calls),
    async giveBack(res, calls) {
      const who = address(res)
      for (let left = calls; left > 0; left--) await store.decrement(who)
    },
    countKey: (res, keyId, calls) => count(res, `key ${keyId}`, calls),
  }
}
