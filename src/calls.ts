/** How every call begins, on both surfaces: its deadline first, then its key, counted. */
import type { TRPCError } from '@trpc/server'
import { getHTTPStatusCodeFromError } from '@trpc/server/http'
import type { Response } from 'express'
import { Deadline } from '../db/deadline.ts'
import { OverloadedError } from '../db/errors.ts'
import { CLIENT_GONE } from './errors.ts'
import type { RateLimit } from './http/rate-limit.ts'
import { requestIdOf, setCaller, setStranger, traceIdsOf } from './http/telemetry.ts'
import type { Idempotency } from './idempotency/store.ts'
import { type Auth, bearerToken, INVALID, MISSING } from './keys/auth.ts'
import type { Authenticator } from './keys/authenticator.ts'
import { type Log, summed } from './log.ts'
import type { Stores } from './stores.ts'
import type { CallTrace } from './tracing.ts'
import type { Transact } from './transact.ts'
import type { Context } from './trpc.ts'

export interface Calls {
  /**
   * The context of so many calls that come with one request. Its deadline ends when the client goes;
   * whoever began clears it. Throws TOO_MANY_REQUESTS, and what the look-up of the key throws.
   */
  begin(res: Response, count: number): Promise<Context>
  /** Tells the log of an error that is the service's own fault. */
  report(error: TRPCError, res: Response): void
}

export interface Foundation {
  stores: Stores
  transact: Transact
  idempotency: Idempotency
  authenticator: Authenticator
  /** Undefined when callers may call as often as they like. */
  rateLimit: RateLimit | undefined
  /** Milliseconds that a call may take. */
  timeout: number
  log: Log
  /** Begins the span of a request that calls something; undefined where nothing is traced. */
  beginTrace: ((res: Response) => CallTrace) | undefined
}

/** What begins the calls of a service. */
export function createCalls(foundation: Foundation): Calls {
  const { stores, transact, idempotency, timeout, log, beginTrace } = foundation
  // A crowd that is turned away must not fill the log too.
  const reportOverload = summed((calls) => log.error({ calls }, 'Too many wait for the database'))
  return {
    async begin(res, count) {
      const trace = beginTrace?.(res)
      const deadline = new Deadline(timeout, trace)
      // A call that is over has cleared its deadline, so that this tells nobody then.
      res.on('close', () => deadline.giveUp(CLIENT_GONE))
      let auth: Auth
      try {
        auth = await identify(foundation, res, count, deadline, trace)
      } catch (error) {
        deadline.clear()
        throw error
      }
      // Node joins several of this header to one text, which then is no key.
      const idempotencyHeader = res.req.headers['idempotency-key'] as string | undefined
      return {
        auth,
        deadline,
        trace,
        stores,
        transact,
        idempotency,
        idempotencyHeader,
        page: { next: undefined },
      }
    },
    report(error, res) {
      if (getHTTPStatusCodeFromError(error) < 500) return
      if (error.cause instanceof OverloadedError) return reportOverload()
      log.error(
        { requestId: requestIdOf(res), ...traceIdsOf(res), err: error.cause ?? error },
        error.message,
      )
    },
  }
}

/**
 * Who calls. A key that is known costs nothing. Any other is counted for its address before it is
 * looked up, so that a flood of wrong keys ends at the door.
 */
async function identify(
  { authenticator, rateLimit }: Foundation,
  res: Response,
  calls: number,
  deadline: Deadline,
  trace: CallTrace | undefined,
): Promise<Auth> {
  const token = bearerToken(res.req)
  const known = token ? authenticator.known(token) : undefined
  if (known) {
    setCaller(res, known.keyId)
    await rateLimit?.countKey(res, known.keyId, calls)
    return { kind: 'caller', keyId: known.keyId, readOnly: known.readOnly }
  }
  setStranger(res, token)
  // One that was valid a moment ago is not made to pay for what others do at its address.
  const isStranger = !token || !authenticator.remembers(token)
  if (isStranger) await rateLimit?.countAddress(res, calls)
  if (token === undefined) return MISSING
  // Its statement may be that of many keys, or of calls that came before.
  const found = await authenticator.find(token, deadline).finally(trace?.wait('API key look-up'))
  if (!found) return INVALID
  setCaller(res, found.keyId)
  if (isStranger) await rateLimit?.giveBack(res, calls)
  await rateLimit?.countKey(res, found.keyId, calls)
  return { kind: 'caller', keyId: found.keyId, readOnly: found.readOnly }
}
