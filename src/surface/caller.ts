/** The look-up of the caller by its API key, and the rate limit. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Deadline } from '../../db/deadline.ts'
import { CLIENT_GONE } from '../errors/catalogue.ts'
import type { RateLimit } from '../http/rate-limit.ts'
import { countHeader } from '../http/request.ts'
import { recordOf } from '../http/request-log.ts'
import type { Authenticator } from '../keys/authenticator.ts'
import { type Auth, KEY_LIFETIME, tokenOf, visiblePrefix } from '../keys/key.ts'

export interface Callers {
  authenticator: Authenticator
  /** Undefined if the operator has set no limit. */
  rateLimit: RateLimit | undefined
  /** Milliseconds that a call may wait for the database, and so may the look-up of its API key. */
  timeout: number
}

/**
 * Returns the caller of a request of `calls` calls, and counts them, none where a body has arrived since they
 * were counted; without a promise if the API key is cached, which most are. Any other key is counted for
 * the client's IP address before the look-up, so that a flood of invalid keys does not reach the
 * database. Throws TOO_MANY_REQUESTS, and the errors of the look-up.
 */
export function identify(
  callers: Callers,
  res: ServerResponse,
  calls: number,
): Auth | Promise<Auth> {
  const token = bearerToken(res.req)
  const caller = token && callers.authenticator.known(token)
  if (!caller) return identifyUnknown(callers, res, calls, token)
  recordOf(res).keyId = String(caller.keyId)
  if (calls > 0) callers.rateLimit?.countKey(res, caller.keyId, calls)
  return caller
}

async function identifyUnknown(
  callers: Callers,
  res: ServerResponse,
  calls: number,
  token: string | undefined,
): Promise<Auth> {
  const { authenticator } = callers
  const rateLimit = calls > 0 ? callers.rateLimit : undefined
  const record = recordOf(res)
  record.keyPrefix = visiblePrefix(token ?? '')
  // A key that was valid a moment ago is not rejected because of other callers at its IP address.
  const isCounted = !token || !authenticator.remembers(token)
  if (isCounted) rateLimit?.countIpAddress(res, calls)
  if (token === undefined) return 'missingKey'
  const caller = await lookUp(callers, res, token)
  if (!caller) return 'invalidKey'
  record.keyId = String(caller.keyId)
  record.keyPrefix = undefined
  if (isCounted) rateLimit?.refundIpAddress(res, calls)
  rateLimit?.countKey(res, caller.keyId, calls)
  return caller
}

async function lookUp({ authenticator, timeout }: Callers, res: ServerResponse, token: string) {
  // A look-up that took longer would be out of date at its end.
  using deadline = new Deadline(Math.min(timeout, KEY_LIFETIME))
  res.once('close', () => deadline.giveUp(CLIENT_GONE))
  return await authenticator.find(token, deadline)
}

// Of several Authorization headers none is valid: a proxy may have checked another than this service.
function bearerToken(req: IncomingMessage): string | undefined {
  const token = tokenOf(req.headers.authorization)
  return token && countHeader(req, 'authorization') > 1 ? '' : token
}
