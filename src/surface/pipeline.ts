/**
 * The pipeline of both surfaces. Each request takes these steps, in this order: match, Host, key with its rate,
 * body, deadline, reply (input, operation, output), answer.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { BrokenDatabaseError, Deadline, OverloadedError } from '../../db/index.ts'
import { CLIENT_GONE, type Problem, problem, toProblem } from '../errors/problem.ts'
import { readBody, skipBody } from '../http/body.ts'
import { jsonHeaders } from '../http/headers.ts'
import type { RateLimit } from '../http/rate-limit.ts'
import { type CallOutcome, type RequestRecord, recordOf } from '../http/record.ts'
import { checkHost, countHeader, parseTarget, type Target } from '../http/request.ts'
import { answer } from '../http/respond.ts'
import type { Authenticator } from '../keys/authenticator.ts'
import { type Caller, KEY_LIFETIME, tokenOf, visiblePrefix } from '../keys/key.ts'
import type { Log } from '../observe/log.ts'
import { activeSpan } from '../observe/span.ts'
import type { CallsOfRequest, Shared } from '../procedure/call.ts'

/** How a surface matches requests, and reads and writes what they carry. */
export interface Surface<Matched extends Match = Match> {
  name: 'rest' | 'trpc'
  /** Returns undefined for a path that the surface lacks. Throws METHOD_NOT_SUPPORTED, BAD_REQUEST. */
  match(req: IncomingMessage, target: Target): Matched | undefined
  /** Reads the input, runs the operation, and encodes the output. Throws the error of the request. */
  reply(calls: CallsOfRequest, match: Matched, body: string | undefined): Promise<Reply>
  /** Returns the body of an error. */
  encodeError(error: Problem): string
}

/** What a surface reads from the method and the target of a request. */
export interface Match {
  /** The name of the operation, in the log, the metrics and the span: `batch` for several, `unknown` for none. */
  name: string
  /** A mutation needs an API key that may write. */
  type: 'query' | 'mutation'
  /** The path template, for the span. */
  template: string
  /** The number of calls: of a batch, up to its maximum. */
  count: number
  readsBody: boolean
  /** Headers of every response, errors included: names and values in turn. */
  headers: readonly string[]
}

/** A response. */
export interface Reply {
  status: number
  /** Names and values in turn. */
  headers: readonly string[]
  body: string
  /** Those of the calls of a batch, for the log. */
  outcomes?: Outcome[]
}

/** The output of a call of a batch, or its error. */
export interface Outcome extends CallOutcome {
  output?: unknown
  error?: Problem
}

/** The services of a process that all requests use. */
export interface Service extends Shared {
  readonly authenticator: Authenticator
  /** Undefined if the operator has set no limit. */
  readonly rateLimit: RateLimit | undefined
  /** Milliseconds that a call may wait for the database, and so may the look-up of its API key. */
  readonly timeout: number
  /** Logs a 5xx error, with the name of its operation: for a call of a batch, its own. */
  report(error: Problem, record: RequestRecord, operation?: string): void
}

/** Serves a request by the surface that has its path. Returns false if none has it. */
export function serve(
  service: Service,
  res: ServerResponse,
  surfaces: readonly Surface[],
): boolean {
  const target = parseTarget(res.req.url ?? '')
  if (!target) {
    answer(res, BAD_URL.status, jsonHeaders, JSON.stringify(BAD_URL.refusal))
    return true
  }
  for (const surface of surfaces) {
    try {
      const match = surface.match(res.req, target)
      if (!match) continue
      nameRequest(recordOf(res), surface, match)
      void answerCalls(service, res, surface, match)
    } catch (thrown) {
      answerError(service, res, surface, jsonHeaders, thrown)
    }
    return true
  }
  return false
}

const BAD_URL = problem('invalidUrl')

/** Names what is called, in the record of the request and its span. */
function nameRequest(record: RequestRecord, surface: Surface, { name, template }: Match): void {
  record.surface = surface.name
  record.operation = name
  if (record.spanId) activeSpan()?.updateName(name).setAttribute('http.route', template)
}

async function answerCalls(
  service: Service,
  res: ServerResponse,
  surface: Surface,
  match: Match,
): Promise<void> {
  const { req } = res
  const { type, count, readsBody, headers } = match
  try {
    checkHost(req)
    const hasArrived = req.complete
    let caller = await callerOf(service, res, count)
    if (caller.readOnly && type === 'mutation') throw problem('readOnlyKey')
    const body = readsBody ? await readBody(req, res) : undefined
    // A mutation without a body waits for the rest of its request, so that a malformed one changes nothing.
    if (!readsBody && !req.complete && type === 'mutation') await skipBody(req, res)
    // The key may have been revoked while the rest arrived. Nothing is counted twice.
    if (!hasArrived) caller = await callerOf(service, res, 0)
    if (res.destroyed || res.headersSent) throw CLIENT_GONE
    using deadline = deadlineOf(res, service.timeout)
    // Node joins several such headers with ", ", and the result is not a valid key.
    const idempotencyHeader = req.headers['idempotency-key'] as string | undefined
    const record = recordOf(res)
    const report = (error: Problem, operation: string) => service.report(error, record, operation)
    const calls = { shared: service, caller, deadline, idempotencyHeader, report }
    const { status, headers, body: text, outcomes } = await surface.reply(calls, match, body)
    record.outcomes = outcomes
    for (const { error, operation } of outcomes ?? []) {
      if (error) service.report(error, record, operation)
    }
    answer(res, status, headers, text)
  } catch (thrown) {
    answerError(service, res, surface, headers, thrown)
  }
}

function answerError(
  service: Service,
  res: ServerResponse,
  surface: Surface,
  headers: readonly string[],
  thrown: unknown,
): void {
  const error = toProblem(thrown)
  service.report(error, recordOf(res))
  answer(res, error.status, [...headers, ...error.headers], surface.encodeError(error))
}

/** Returns a deadline in so many milliseconds, or when the connection closes: the client has left, or sent what was refused. */
function deadlineOf(res: ServerResponse, timeout: number): Deadline {
  const deadline = new Deadline(timeout)
  res.on('close', () => deadline.giveUp(CLIENT_GONE))
  return deadline
}

/**
 * Returns the caller of a request by its API key, and counts its calls, unless `count` is 0; without a promise if
 * the key is cached, which most are. Throws UNAUTHORIZED without a valid key, TOO_MANY_REQUESTS, and the errors of
 * the look-up.
 */
function callerOf(service: Service, res: ServerResponse, count: number): Caller | Promise<Caller> {
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
  service: Service,
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
  if (token === undefined) throw problem('missingKey')
  // A look-up that took longer would be out of date at its end.
  using deadline = deadlineOf(res, Math.min(timeout, KEY_LIFETIME))
  const caller = await authenticator.find(token, deadline)
  if (!caller) {
    Object.assign(record, { keyId: undefined, keyPrefix: prefix }) // it was valid before a slow body
    throw problem('invalidKey')
  }
  record.keyId = String(caller.keyId)
  record.keyPrefix = undefined
  if (isCounted) rateLimit?.refundIpAddress(res, count)
  rateLimit?.countKey(res, caller.keyId, count)
  return caller
}

/** Returns the function that logs 5xx errors, and ignores all others. */
export function reporter(
  log: Log,
  reportBroken: (error: BrokenDatabaseError) => void,
): Service['report'] {
  // One line for each rejected call would fill the log during an overload: there is one a second.
  let quietUntil = 0
  return (error, record, operation = record.operation) => {
    const { requestId, traceId, spanId } = record
    if (error.status < 500) return
    if (error.cause instanceof OverloadedError) {
      if (performance.now() < quietUntil) return
      quietUntil = performance.now() + 1_000
      return log.error('Too many calls wait for the database')
    }
    if (error.cause instanceof BrokenDatabaseError) return reportBroken(error.cause)
    log.error({ requestId, traceId, spanId, operation, err: error.cause ?? error }, error.message)
  }
}
