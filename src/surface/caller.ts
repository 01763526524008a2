/** The caller of a request: by its API key, by an authenticator of the product, or anyone. */
import type { ServerResponse } from 'node:http'
import { Deadline } from '../../db/index.ts'
import { CLIENT_GONE, problem } from '../errors/problem.ts'
import { gatheringBytes } from '../http/body.ts'
import type { RateLimit } from '../http/rate-limit.ts'
import { recordOf } from '../http/record.ts'
import { countHeader } from '../http/request.ts'
import type { Authenticator } from '../keys/authenticator.ts'
import { type Caller, KEY_LIFETIME, tokenOf, visiblePrefix } from '../keys/key.ts'
import {
  ANYONE,
  type Authentication,
  authenticate,
  isCookie,
  unauthorized,
  withoutCaller,
} from '../procedure/authentication.ts'
import { RequestHeaders } from '../procedure/headers.ts'
import { holdRequest } from './waiting.ts'

/** What determines callers. */
export interface Authenticating {
  readonly authenticator: Authenticator
  /** Undefined where API keys are all. */
  readonly authentication: Authentication | undefined
  /** The origins whose pages may change something with a cookie. */
  readonly origins: readonly string[]
  /** Undefined if the operator has set no limit. */
  readonly rateLimit: RateLimit | undefined
  /** Milliseconds that a call may wait for the database, and so may the look-up of its API key. */
  readonly timeout: number
}

/**
 * Returns a deadline in so many milliseconds, or when the connection closes: the client has left, or sent what was
 * refused. A deadline that is over, as after the answer, is not given up any more.
 */
export function deadlineOf(res: ServerResponse, timeout: number): Deadline {
  const deadline = new Deadline(timeout)
  res.on('close', () => deadline.giveUp(CLIENT_GONE))
  return deadline
}

/**
 * Returns the caller of a request, which may call what the request matches, and counts its calls, unless `count` is
 * 0. Throws UNAUTHORIZED without valid credentials, FORBIDDEN, TOO_MANY_REQUESTS, and the errors of the look-up.
 */
export async function callerOf(
  service: Authenticating,
  res: ServerResponse,
  { type, isPublic }: { type: 'query' | 'mutation'; isPublic: boolean },
  count: number,
): Promise<Caller> {
  const caller = isPublic ? anyone(service, res, count) : await identified(service, res, count)
  if (type === 'mutation') checkMayWrite(service, res, caller)
  return caller
}

function anyone({ rateLimit }: Authenticating, res: ServerResponse, count: number): Caller {
  if (count > 0) rateLimit?.countIpAddress(res, count)
  return ANYONE
}

const identified = (service: Authenticating, res: ServerResponse, count: number) =>
  service.authentication
    ? authenticated(service, service.authentication, res, count)
    : callerByKey(service, res, count)

/** Throws FORBIDDEN unless the caller may call a mutation from where the request comes. */
function checkMayWrite(
  { authentication, origins }: Authenticating,
  { req }: ServerResponse,
  { keyId, readOnly }: Caller,
): void {
  if (readOnly) throw problem(keyId === undefined ? 'readOnlyCaller' : 'readOnlyKey')
  if (keyId !== undefined || !authentication || !isCookie(authentication)) return
  if (!origins.includes(req.headers.origin ?? '')) throw problem('wrongOrigin')
}

function callerByKey(
  service: Authenticating,
  res: ServerResponse,
  count: number,
): Caller | Promise<Caller> {
  const { req } = res
  const sent = tokenOf(req.headers.authorization)
  // Of several Authorization headers none is valid: a proxy may have checked another than this service.
  const token = sent && countHeader(req, 'authorization') > 1 ? '' : sent
  const caller = token && service.authenticator.known(token)
  if (!caller) return lookUpCaller(service, res, count, token)
  recordOf(res).keyId = String(caller.keyId)
  if (count > 0) service.rateLimit?.countKey(res, caller.keyId, count)
  return caller
}

/** Counts for the client's IP address first, so that a flood of invalid keys does not reach the database. */
async function lookUpCaller(
  service: Authenticating,
  res: ServerResponse,
  count: number,
  token: string | undefined,
): Promise<Caller> {
  const { authenticator, timeout } = service
  const rateLimit = count > 0 ? service.rateLimit : undefined
  const record = recordOf(res)
  const prefix = visiblePrefix(token ?? '')
  if (record.keyId === undefined) record.keyPrefix = prefix
  // A key that was valid before is not rejected because of other callers at its IP address.
  const isCounted = !token || !authenticator.remembers(token)
  if (isCounted) rateLimit?.countIpAddress(res, count)
  if (token === undefined) throw withoutCaller(service.authentication, token)
  holdRequest(res.req, gatheringBytes(res.req))
  // A look-up that took longer would be out of date at its end.
  using deadline = deadlineOf(res, Math.min(timeout, KEY_LIFETIME))
  const caller = await authenticator.find(token, deadline)
  holdRequest(res.req, 0) // readBody counts what gathers now
  if (!caller) {
    Object.assign(record, { keyId: undefined, keyPrefix: prefix }) // it was valid before a slow body
    throw withoutCaller(service.authentication, token)
  }
  record.keyId = String(caller.keyId)
  record.keyPrefix = undefined
  if (isCounted) rateLimit?.refundIpAddress(res, count)
  rateLimit?.countKey(res, caller.keyId, count)
  return caller
}

/** Counts for the client's IP address first, as for an API key that is not cached. */
async function authenticated(
  service: Authenticating,
  authentication: Authentication,
  res: ServerResponse,
  count: number,
): Promise<Caller> {
  const rateLimit = count > 0 ? service.rateLimit : undefined
  const record = recordOf(res)
  record.holder = undefined // it was valid before a slow body
  rateLimit?.countIpAddress(res, count)
  holdRequest(res.req, gatheringBytes(res.req))
  using deadline = deadlineOf(res, Math.min(service.timeout, KEY_LIFETIME))
  // Of several Authorization headers none is valid, as with API keys.
  const isClear = countHeader(res.req, 'authorization') < 2
  const headers = new RequestHeaders(res.req.headers, isClear)
  const request = { headers, signal: deadline.signal }
  const caller = await deadline.limit(authenticate(authentication, request))
  holdRequest(res.req, 0)
  if (caller) rateLimit?.refundIpAddress(res, count)
  if (!caller) {
    if (!authentication.besideApiKeys) throw unauthorized(authentication)
    rateLimit?.refundIpAddress(res, count)
    return await callerByKey(service, res, count)
  }
  record.holder = caller.holder
  rateLimit?.countHolder(res, caller.holder, count)
  return caller
}
