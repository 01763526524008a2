/** How many calls a caller may make. Each process counts for itself. */
import { TRPCError } from '@trpc/server'
import type { Request, RequestHandler } from 'express'
import { ipKeyGenerator, rateLimit } from 'express-rate-limit'
import { MAX_BATCH } from '../limits.ts'
import { contextOf } from './identify.ts'

const WINDOW = 60_000 // milliseconds

/**
 * Allows `limit` calls a minute per API key, and per address where there is no valid key (IPv6: per
 * subnet of 56 bits). It passes on TOO_MANY_REQUESTS, with `Retry-After`, and tells how much is
 * left in the headers of draft-ietf-httpapi-ratelimit-headers-08.
 */
export function limitRate(limit: number): RequestHandler {
  const countOne = rateLimit({
    windowMs: WINDOW,
    limit,
    standardHeaders: 'draft-8',
    legacyHeaders: false,
    keyGenerator: (req, res) => {
      const caller = contextOf(res)?.caller
      return caller ? `key ${caller.keyId}` : `address ${ipKeyGenerator(req.ip ?? '')}`
    },
    handler: (_req, res, next) => {
      const message = `There were more than ${limit} calls in a minute; try again in ${res.getHeader('Retry-After')} seconds`
      next(new TRPCError({ code: 'TOO_MANY_REQUESTS', message }))
    },
  })
  return (req, res, next) => {
    let left = callsOf(req)
    const count = (error?: unknown) => {
      if (error || left-- === 0) next(error)
      else {
        // The library would add to what it said of the calls before.
        res.removeHeader('RateLimit')
        res.removeHeader('RateLimit-Policy')
        countOne(req, res, count)
      }
    }
    count()
  }
}

// tRPC writes the procedures of a batch into one path, with commas between them. A batch that is
// too long is refused anyway, and an escaped comma would be one more call.
function callsOf(req: Request): number {
  return Math.min(req.path.split(/,|%2c/i).length, MAX_BATCH)
}
