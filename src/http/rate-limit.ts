/** How many calls a caller may make. Each process counts for itself. */
import { createHash } from 'node:crypto'
import type { Response } from 'express'
import ipaddr from 'ipaddr.js'
import { LRUCache } from 'lru-cache'
import { tooManyRequests } from '../errors/problem.ts'
import { recordOf } from './record.ts'
import { addressOf } from './request.ts'

const WINDOW = 60_000 // milliseconds

/**
 * Callers that are counted at once: a flood from more IP addresses than these takes no more memory,
 * and starts the counts of those anew that have been silent for longest.
 */
const MAX_CALLERS = 100_000

/**
 * Counts calls per minute: per API key, and per IP address where there is no valid key (IPv6: per
 * subnet of 56 bits). What counts throws TOO_MANY_REQUESTS when there were too many, with
 * `Retry-After`, and sets the headers of draft-ietf-httpapi-ratelimit-headers-08.
 */
export interface RateLimit {
  /** Counts calls of an IP address, before its key is looked for. */
  countAddress(res: Response, calls: number): void
  /** Gives the IP address its calls back: their key turned out to be valid. */
  giveBack(res: Response, calls: number): void
  /** Counts calls of a valid key. */
  countKey(res: Response, keyId: bigint, calls: number): void
}

export function createRateLimit(limit: number): RateLimit {
  const counters = new LRUCache<string, { calls: number; endsAt: number }>({ max: MAX_CALLERS })
  const counterOf = (caller: string, now: number) => {
    const known = counters.get(caller)
    if (known && known.endsAt > now) return known
    const counter = { calls: 0, endsAt: now + WINDOW }
    counters.set(caller, counter)
    return counter
  }
  const name = `"${limit}-in-1min"`
  const count = (res: Response, caller: string, calls: number) => {
    const now = performance.now()
    const counter = counterOf(caller, now)
    counter.calls += calls
    const seconds = Math.ceil((counter.endsAt - now) / 1000)
    const partition = createHash('sha256').update(caller).digest('hex').slice(0, 12)
    const left = Math.max(0, limit - counter.calls)
    recordOf(res).headers = [
      'RateLimit',
      `${name}; r=${left}; t=${seconds}`,
      'RateLimit-Policy',
      `${name}; q=${limit}; w=60; pk=:${btoa(partition)}:`,
    ]
    if (counter.calls <= limit) return
    throw tooManyRequests(limit, seconds)
  }
  return {
    countAddress: (res, calls) => count(res, subnetOf(res), calls),
    giveBack(res, calls) {
      const counter = counterOf(subnetOf(res), performance.now())
      counter.calls = Math.max(0, counter.calls - calls)
    },
    countKey: (res, keyId, calls) => count(res, `key ${keyId}`, calls),
  }
}

/**
 * What an IP address is counted as: the bytes of IPv4, also where it is mapped to IPv6, and the first
 * seven of IPv6, which a customer may have to itself (RFC 6177).
 */
function subnetOf({ req }: Response): string {
  const address = addressOf(req)
  if (address === undefined) return 'address'
  return `address ${ipaddr.process(address).toByteArray().slice(0, 7)}`
}
