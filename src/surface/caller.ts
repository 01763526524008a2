/** The caller of a request: by its API key, by an authenticator of the product, or anyone. */
import type { Deadline } from '../../db/index.ts'
import { problem } from '../errors/problem.ts'
import { gatheringBytes } from '../http/body.ts'
import type { RateLimit } from '../http/rate-limit.ts'
import type { RecordedResponse } from '../http/record.ts'
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
import { endWait, startWait } from './waiting.ts'

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
 * Returns the caller of a request, which may call what the request matches, and counts its calls, unless `count` is
 * 0. Throws UNAUTHORIZED without valid credentials, FORBIDDEN, TOO_MANY_REQUESTS, and the errors of the look-up.
 */
export async function callerOf(
  service: Authenticating,
  res: RecordedResponse,
  { type, isPublic, count }: { type: 'query' | 'mutation'; isPublic: boolean; count: number },
): Promise<Caller> {
  const { authentication } = service
  let caller = isPublic ? anyone(service, res, count) : undefined
  if (!caller && authentication) caller = await authenticated(service, authentication, res, count)
  caller ??= knownCaller(service, res, count) ?? (await lookUpCaller(service, res, count))
  if (type === 'mutation') checkMayWrite(service, res, caller)
  return caller
}

function anyone({ rateLimit }: Authenticating, res: RecordedResponse, count: number): Caller {
  if (count > 0) rateLimit?.countIpAddress(res, count)
  return ANYONE
}

/** Throws FORBIDDEN unless the caller may call a mutation from where the request comes. */
function checkMayWrite(
  { authentication, origins }: Authenticating,
  { req }: RecordedResponse,
  { keyId, readOnly }: Caller,
): void {
  if (readOnly) throw problem(keyId === undefined ? 'readOnlyCaller' : 'readOnlyKey')
  if (keyId !== undefined || !authentication || !isCookie(authentication)) return
  if (!origins.includes(req.headers.origin ?? '')) throw problem('wrongOrigin')
}

/** Returns the caller by an API key that the cache has. */
function knownCaller(
  { authenticator, rateLimit }: Authenticating,
  res: RecordedResponse,
  count: number,
): Caller | undefined {
  const token = tokenOf(res.req.headers.authorization)
  const caller = token ? authenticator.known(token) : undefined
  if (!caller) return undefined
  res.record.keyId = String(caller.keyId)
  if (count > 0) rateLimit?.countKey(res, caller.keyId, count)
  return caller
}

/** Counts for the client's IP address first, so that a flood of invalid keys does not reach the database. */
async function lookUpCaller(
  service: Authenticating,
  res: RecordedResponse,
  count: number,
): Promise<Caller> {
  const { authenticator, authentication } = service
  const rateLimit = count > 0 ? service.rateLimit : undefined
  const { record } = res
  const token = tokenOf(res.req.headers.authorization)
  const prefix = visiblePrefix(token ?? '')
  if (record.keyId === undefined) record.keyPrefix = prefix
  // A key that was valid before is not rejected because of other callers at its IP address.
  const isCounted = !token || !authenticator.remembers(token)
  if (isCounted) rateLimit?.countIpAddress(res, count)
  if (token === undefined) throw withoutCaller(authentication, token)
  const caller = await lookUp(service, res, (deadline) => authenticator.find(token, deadline))
  if (!caller) {
    Object.assign(record, { keyId: undefined, keyPrefix: prefix }) // it was valid before a slow body
    throw withoutCaller(authentication, token)
  }
  record.keyId = String(caller.keyId)
  record.keyPrefix = undefined
  if (isCounted) rateLimit?.refundIpAddress(res, count)
  rateLimit?.countKey(res, caller.keyId, count)
  return caller
}

/**
 * Returns the caller that the product's authenticator finds; undefined for a request that may have an API key
 * instead. Counts for the client's IP address first, as for an API key that is not cached.
 */
async function authenticated(
  service: Authenticating,
  authentication: Authentication,
  res: RecordedResponse,
  count: number,
): Promise<Caller | undefined> {
  const rateLimit = count > 0 ? service.rateLimit : undefined
  const { record } = res
  record.holder = undefined // it was valid before a slow body
  rateLimit?.countIpAddress(res, count)
  // Of several Authorization headers none is valid, as with API keys.
  const { headers: sent, headersDistinct: distinct } = res.req
  const headers = new RequestHeaders(sent, distinct.authorization?.length === 1)
  const caller = await lookUp(service, res, (deadline) =>
    deadline.limit(authenticate(authentication, { headers, signal: deadline.signal })),
  )
  if (!caller && !authentication.besideApiKeys) throw unauthorized(authentication)
  rateLimit?.refundIpAddress(res, count)
  if (!caller) return undefined
  record.holder = caller.holder
  rateLimit?.countHolder(res, caller.holder, count)
  return caller
}

/** Returns what `find` finds within the deadline of a look-up. */
async function lookUp<Found>(
  { timeout }: Authenticating,
  res: RecordedResponse,
  find: (deadline: Deadline) => Promise<Found>,
): Promise<Found> {
  // A look-up that took longer would be out of date at its end.
  const limit = Math.min(timeout, KEY_LIFETIME)
  using deadline = startWait(res, limit, gatheringBytes(res.req))
  const found = await find(deadline)
  endWait(res)
  return found
}
