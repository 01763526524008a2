/** The caller of a request, found by its key, and counted. */
import type { Response } from 'express'
import type { Deadline } from '../../db/deadline.ts'
import type { RateLimit } from '../http/rate-limit.ts'
import { recordOf } from '../http/record.ts'
import { countHeader } from '../http/request.ts'
import { type Auth, INVALID, MISSING, tokenOf } from '../keys/auth.ts'
import type { Authenticator } from '../keys/authenticator.ts'
import { visiblePrefix } from '../keys/format.ts'

export interface Callers {
  authenticator: Authenticator
  /** Undefined when callers may call as often as they like. */
  rateLimit: RateLimit | undefined
}

/**
 * Finds out whose key a request of so many calls came with. A key that is known costs nothing. Any
 * other is counted for its IP address before it is looked up, so that a flood of wrong keys ends at
 * the door. Throws TOO_MANY_REQUESTS, and what the look-up of the key throws.
 */
export async function identify(
  { authenticator, rateLimit }: Callers,
  res: Response,
  calls: number,
  deadline: Deadline,
): Promise<Auth> {
  const record = recordOf(res)
  const token = bearerToken(res)
  const known = token ? authenticator.known(token) : undefined
  if (known) {
    record.auth = { kind: 'caller', keyId: known.keyId, readOnly: known.readOnly }
    rateLimit?.countKey(res, known.keyId, calls)
    return record.auth
  }
  record.keyPrefix = visiblePrefix(token ?? '')
  // A key that was valid a moment ago does not pay for what others do at its IP address.
  const isStranger = !token || !authenticator.remembers(token)
  if (isStranger) rateLimit?.countIpAddress(res, calls)
  record.auth = MISSING
  if (token === undefined) return record.auth
  record.auth = INVALID
  // Its statement may be that of many keys, or of calls that came before.
  const found = await authenticator
    .find(token, deadline)
    .finally(record.trace?.wait('API key look-up'))
  if (!found) return record.auth
  record.auth = { kind: 'caller', keyId: found.keyId, readOnly: found.readOnly }
  if (isStranger) rateLimit?.refundIpAddress(res, calls)
  rateLimit?.countKey(res, found.keyId, calls)
  return record.auth
}

// Of two headers none counts, because a proxy in front may have looked at the other one.
function bearerToken({ req }: Response): string | undefined {
  const token = tokenOf(req.headers.authorization)
  return token && countHeader(req, 'authorization') > 1 ? '' : token
}
