/**
 * The pipeline of both surfaces. Each request takes these steps, in this order: match, Host, key, rate,
 * body, deadline, reply (input, procedure, output), answer.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Deadline } from '../../db/deadline.ts'
import { BrokenDatabaseError, OverloadedError } from '../../db/errors.ts'
import { CLIENT_GONE, type Problem, problem, toProblem } from '../errors/problem.ts'
import { readBody } from '../http/body.ts'
import { jsonHeaders } from '../http/headers.ts'
import type { RateLimit } from '../http/rate-limit.ts'
import { type CallOutcome, type RequestRecord, recordOf } from '../http/record.ts'
import { checkHost, countHeader, type Target } from '../http/request.ts'
import { answer } from '../http/respond.ts'
import type { Authenticator } from '../keys/authenticator.ts'
import { type Caller, KEY_LIFETIME, tokenOf, visiblePrefix } from '../keys/key.ts'
import type { Log } from '../observe/log.ts'
import { activeSpan } from '../observe/span.ts'
import type { Context } from '../procedure/context.ts'

/** How a surface matches requests, and reads and writes what they carry. */
export interface Surface<Matched extends Match> {
  name: 'rest' | 'trpc'
  /** Returns undefined for a path that the surface lacks. Throws METHOD_NOT_SUPPORTED, BAD_REQUEST. */
  match(req: IncomingMessage, target: Target): Matched | undefined
  /** Reads the input, runs the calls, and encodes the output. Throws the error of the request. */
  reply(match: Matched, context: Context, body: string | undefined): Promise<Reply>
  /** Returns the body of an error. */
  encodeError(error: Problem): string
}

/** What a surface reads from the method and the target of a request. */
export interface Match {
  operation: {
    /** The name in the log, the metrics and the span. */
    name: string
    /** The path template, for the span. */
    route: string
    /** The number of calls: more than one in a batch. */
    calls: number
    /** A mutation needs an API key that may write. */
    type: 'query' | 'mutation'
    readsBody: boolean
    /** Headers of every response, errors included: names and values in turn. */
    headers: readonly string[]
  }
}

/** A response. */
export interface Reply {
  status: number
  /** Names and values in turn. */
  headers: readonly string[]
  body: string
  /** The calls of a batch, for the log. */
  calls?: Outcome[]
}

/** The output of a call of a batch, or its error. */
export interface Outcome extends CallOutcome {
  output?: unknown
  error?: Problem
}

/** The services of a process that all requests use. */
export interface Service extends Pick<Context, 'stores' | 'transact' | 'idempotency'> {
  authenticator: Authenticator
  /** Undefined if the operator has set no limit. */
  rateLimit: RateLimit | undefined
  /** Milliseconds that a call may wait for the database, and so may the look-up of its API key. */
  timeout: number
  /** Logs a 5xx error. */
  report(error: Problem, record: RequestRecord): void
}

/**
 * Returns the pipeline of a surface: a function that answers a request, and returns true; it returns false
 * for a path that the surface does not have.
 */
export function pipeline<Matched extends Match>(surface: Surface<Matched>, service: Service) {
  const { stores, transact, idempotency, timeout } = service
  const uncounted = { ...service, rateLimit: undefined }

  const serve = async (res: ServerResponse, match: Matched) => {
    const { req } = res
    const { calls, type, readsBody, headers } = match.operation
    try {
      checkHost(req)
      const hasArrived = req.complete
      let caller = await callerOf(service, res, calls)
      if (caller.readOnly && type === 'mutation') throw problem('readOnlyKey')
      const body = readsBody ? await readBody(req, res) : undefined
      // However slowly a body came, the look-up that found the key valid began at most ten seconds ago.
      // The calls are counted already.
      if (!hasArrived) caller = await callerOf(uncounted, res, calls)
      if (res.destroyed) throw CLIENT_GONE
      // The deadline ends with the answer, or as the client closes the connection, which gives up the calls.
      const deadline = new Deadline(timeout)
      res.on('close', () =>
        res.writableFinished ? deadline.clear() : deadline.giveUp(CLIENT_GONE),
      )
      // Node joins several such headers with ", ", and the result is not a valid key.
      const idempotencyHeader = req.headers['idempotency-key'] as string | undefined
      const context = { caller, deadline, stores, transact, idempotency, idempotencyHeader }
      const reply = await surface.reply(match, context, body)
      const record = recordOf(res)
      record.calls = reply.calls
      for (const { error } of reply.calls ?? []) if (error) service.report(error, record)
      answer(res, reply.status, reply.headers, reply.body)
    } catch (thrown) {
      refuse(res, headers, thrown)
    }
  }

  const refuse = (res: ServerResponse, headers: readonly string[], thrown: unknown) => {
    const error = toProblem(thrown)
    service.report(error, recordOf(res))
    answer(res, error.status, [...headers, ...error.headers], surface.encodeError(error))
  }

  return (req: IncomingMessage, res: ServerResponse, target: Target): boolean => {
    const record = recordOf(res)
    try {
      const match = surface.match(req, target)
      if (!match) return false
      const { name, route } = match.operation
      record.surface = surface.name
      record.operation = name
      if (record.spanId) activeSpan()?.updateName(name).setAttribute('http.route', route)
      void serve(res, match)
    } catch (thrown) {
      refuse(res, jsonHeaders, thrown)
    }
    return true
  }
}

/**
 * Returns the caller of a request by its API key, and counts its calls; without a promise if the key is cached,
 * which most are. Throws UNAUTHORIZED without a valid key, TOO_MANY_REQUESTS, and the errors of the look-up.
 */
function callerOf(service: Service, res: ServerResponse, calls: number): Caller | Promise<Caller> {
  const { req } = res
  const sent = tokenOf(req.headers.authorization)
  // Of several Authorization headers none is valid: a proxy may have checked another than this service.
  const token = sent && countHeader(req, 'authorization') > 1 ? '' : sent
  const caller = token && service.authenticator.known(token)
  if (!caller) return lookUpCaller(service, res, calls, token)
  recordOf(res).keyId = String(caller.keyId)
  service.rateLimit?.countKey(res, caller.keyId, calls)
  return caller
}

/** Counts for the client's IP address first, so that a flood of invalid keys does not reach the database. */
async function lookUpCaller(
  { authenticator, rateLimit, timeout }: Service,
  res: ServerResponse,
  calls: number,
  token: string | undefined,
): Promise<Caller> {
  const record = recordOf(res)
  record.keyPrefix = visiblePrefix(token ?? '')
  // A key that was valid a moment ago is not rejected because of other callers at its IP address.
  const isCounted = !token || !authenticator.remembers(token)
  if (isCounted) rateLimit?.countIpAddress(res, calls)
  if (token === undefined) throw problem('missingKey')
  // A look-up that took longer would be out of date at its end.
  using deadline = new Deadline(Math.min(timeout, KEY_LIFETIME))
  res.once('close', () => deadline.giveUp(CLIENT_GONE))
  const caller = await authenticator.find(token, deadline)
  if (!caller) throw problem('invalidKey')
  record.keyId = String(caller.keyId)
  record.keyPrefix = undefined
  if (isCounted) rateLimit?.refundIpAddress(res, calls)
  rateLimit?.countKey(res, caller.keyId, calls)
  return caller
}

/** Returns the function that logs 5xx errors, and ignores all others. */
export function reporter(
  log: Log,
  reportBroken: (error: BrokenDatabaseError) => void,
): Service['report'] {
  // One line for each rejected call would fill the log during an overload: there is one a second.
  let quietUntil = 0
  return (error, { requestId, traceId, spanId }) => {
    if (error.status < 500) return
    if (error.cause instanceof OverloadedError) {
      if (performance.now() < quietUntil) return
      quietUntil = performance.now() + 1_000
      return log.error('Too many calls wait for the database')
    }
    if (error.cause instanceof BrokenDatabaseError) return reportBroken(error.cause)
    log.error({ requestId, traceId, spanId, err: error.cause ?? error }, error.message)
  }
}
