/** The look-up of the caller by its API key, and the rate limit. */
import type { Response } from 'express'
import type { Deadline } from '../../db/deadline.ts'
import type { RateLimit } from '../http/rate-limit.ts'
import { countHeader } from '../http/request.ts'
import { recordOf } from '../http/request-record.ts'
import type { Authenticator } from '../keys/authenticator.ts'
import { type Auth, tokenOf, visiblePrefix } from '../keys/key.ts'

export interface Callers {
  authenticator: Authenticator
  /** Undefined if the operator has set no limit. */
  rateLimit: RateLimit | undefined
}

/**
 * Returns the caller of a request of `calls` calls, and counts them. An API key that the authenticator
 * caches needs no query. Any other is counted for the client's IP address before the look-up, so that
 * a flood of invalid keys does not reach the database. Throws TOO_MANY_REQUESTS, and the errors of the
 * look-up.
 */
export async function identify(
  { authenticator, rateLimit }: Callers,
  res: Response,
  calls: number,
  deadline: Deadline,
): Promise<Auth> {
  const record = recordOf(res)
  const token = bearerToken(res)
  const cached = token ? authenticator.known(token) : undefined
  if (cached) {
    record.auth = cached
    rateLimit?.countKey(res, cached.keyId, calls)
    return cached
  }
  record.keyPrefix = visiblePrefix(token ?? '')
  // A key that was valid a moment ago is not rejected because of other callers at its IP address.
  const isUnknown = !token || !authenticator.remembers(token)
  if (isUnknown) rateLimit?.countIpAddress(res, calls)
  if (token === undefined) return 'missing'
  const found = await authenticator.find(token, deadline)
  if (!found) return 'invalid'
  record.auth = found
  if (isUnknown) rateLimit?.refundIpAddress(res, calls)
  rateLimit?.countKey(res, found.keyId, calls)
  return found
}

// Of several Authorization headers none is valid: a proxy may have checked another than this service.
function bearerToken({ req }: Response): string | undefined {
  const token = tokenOf(req.headers.authorization)
  return token && countHeader(req, 'authorization') > 1 ? '' : token
}
