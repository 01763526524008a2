/** The limit of calls a minute for each caller. Each process has its own counters. */
import type { ServerResponse } from 'node:http'
import { isIPv6 } from 'node:net'
import ipaddr from 'ipaddr.js'
import { LRUCache } from 'lru-cache'
import type { Trust } from '../config/config.ts'
import { tooManyRequests } from '../errors/problem.ts'
import { ipAddressOf } from './request.ts'

const WINDOW = 60_000 // milliseconds

/**
 * Callers with a counter. It limits the memory that a flood from many IP addresses takes: the least
 * recently used counters are dropped, and start again from 0.
 */
const MAX_CALLERS = 100_000

export type RateLimit = ReturnType<typeof createRateLimit>

/**
 * Returns the counters of a limit of `limit` calls a minute: per API key, and per IP address where there
 * is no valid key (IPv6: per subnet of 56 bits). `trust` is that of X-Forwarded-For. The counting methods
 * set the headers of draft-ietf-httpapi-ratelimit-headers-08, and throw TOO_MANY_REQUESTS with
 * `Retry-After` beyond the limit.
 */
export function createRateLimit(limit: number, trust: Trust) {
  const counters = new LRUCache<string, { calls: number; endsAt: number }>({ max: MAX_CALLERS })
  const name = `"${limit}-in-1min"`
  const policy = `${name}; q=${limit}; w=60`
  const counterOf = (caller: string, now: number) => {
    const known = counters.get(caller)
    if (known && known.endsAt > now) return known
    const counter = { calls: 0, endsAt: now + WINDOW }
    counters.set(caller, counter)
    return counter
  }
  const count = (res: ServerResponse, caller: string, calls: number) => {
    const now = performance.now()
    const counter = counterOf(caller, now)
    counter.calls += calls
    const seconds = Math.ceil(Math.round(counter.endsAt - now) / 1000)
    const left = `${name}; r=${Math.max(0, limit - counter.calls)}; t=${seconds}`
    res.setHeader('RateLimit', left).setHeader('RateLimit-Policy', policy)
    if (counter.calls > limit) throw tooManyRequests(limit, seconds)
  }
  return {
    /** Counts calls from the client's IP address, before the look-up of the API key. */
    countIpAddress: (res: ServerResponse, calls: number) =>
      count(res, subnetOf(ipAddressOf(res.req, trust)), calls),
    /** Subtracts these calls from the client's IP address, because their API key is valid. */
    refundIpAddress(res: ServerResponse, calls: number) {
      const counter = counterOf(subnetOf(ipAddressOf(res.req, trust)), performance.now())
      counter.calls = Math.max(0, counter.calls - calls)
    },
    /** Counts calls with a valid API key. */
    countKey: (res: ServerResponse, keyId: bigint, calls: number) =>
      count(res, `key ${keyId}`, calls),
    /** Counts calls of a holder without an API key. */
    countHolder: (res: ServerResponse, holder: string, calls: number) =>
      count(res, `holder ${holder}`, calls),
  }
}

/**
 * Returns the counter's name for an IP address: all four bytes of IPv4 (mapped to IPv6 or not), and
 * the first seven of IPv6, because one customer may have such a subnet (RFC 6177).
 */
function subnetOf(ipAddress: string | undefined): string {
  if (ipAddress === undefined) return 'IP address'
  // The address without its zone (RFC 4007, section 11). The URL parser knows all notations of IPv6.
  const [plain = ''] = ipAddress.split('%')
  const host = isIPv6(plain) ? new URL(`http://[${plain}]`).hostname.slice(1, -1) : plain
  return `IP address ${ipaddr.process(host).toByteArray().slice(0, 7)}`
}
