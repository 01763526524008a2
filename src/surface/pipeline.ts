/**
 * The pipeline of both surfaces. Each request takes these steps, in this order: match, Host, key, rate,
 * body, deadline, reply (input, operation, output), answer.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Deadline } from '../../db/deadline.ts'
import { BrokenDatabaseError, OverloadedError } from '../../db/errors.ts'
import { CLIENT_GONE, type Problem, problem, toProblem } from '../errors/problem.ts'
import { readBody, skipBody } from '../http/body.ts'
import { jsonHeaders } from '../http/headers.ts'
import type { RateLimit } from '../http/rate-limit.ts'
import { type CallOutcome, type RequestRecord, recordOf } from '../http/record.ts'
import { checkHost, countHeader, type Target } from '../http/request.ts'
import { answer } from '../http/respond.ts'
import type { Authenticator } from '../keys/authenticator.ts'
import { type Caller, KEY_LIFETIME, tokenOf, visiblePrefix } from '../keys/key.ts'
import type { Log } from '../observe/log.ts'
import { activeSpan } from '../observe/span.ts'
import { Call, type Operation, type Shared } from '../procedure/call.ts'

/** How a surface matches requests, and reads and writes what they carry. */
export interface Surface<Matched extends Match = Match> {
  name: 'rest' | 'trpc'
  /** Returns undefined for a path that the surface lacks. Throws METHOD_NOT_SUPPORTED, BAD_REQUEST. */
  match(req: IncomingMessage, target: Target): Matched | undefined
  /** Reads the input, runs the operation, and encodes the output. Throws the error of the request. */
  reply(call: RequestCall, match: Matched, body: string | undefined): Promise<Reply>
  /** Returns the body of an error. */
  encodeError(error: Problem): string
}

/** What a surface reads from the method and the target of a request. */
export interface Match {
  operation: Operation
  /** The path template, for the span. */
  template: string
  /** The number of calls: more than one in a batch. */
  calls: number
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
  /** The calls of a batch, for the log. */
  calls?: Outcome[]
}

/** The output of a call of a batch, or its error. */
export interface Outcome extends CallOutcome {
  output?: unknown
  error?: Problem
}

/** The services of a process that all requests use. */
export interface Service extends Shared {
  authenticator: Authenticator
  /** Undefined if the operator has set no limit. */
  rateLimit: RateLimit | undefined
  /** Milliseconds that a call may wait for the database, and so may the look-up of its API key. */
  timeout: number
  /** Logs a 5xx error. */
  report(error: Problem, record: RequestRecord): void
}

/** The call of a request. `caller` and `deadline` are set by their steps of the pipeline. */
export class RequestCall extends Call {
  declare readonly service: Service
  readonly res: ServerResponse
  readonly record: RequestRecord

  constructor(service: Service, res: ServerResponse) {
    super(service)
    this.res = res
    this.record = recordOf(res)
    // If the call still waits for something then, the client has left, or what it sent was refused meanwhile.
    res.on('close', () => this.deadline?.giveUp(CLIENT_GONE))
  }
}

/** Serves a call by the surface that has its path. Returns false if none has it. */
export function serve(call: RequestCall, target: Target, surfaces: readonly Surface[]): boolean {
  for (const surface of surfaces) {
    try {
      const match = surface.match(call.res.req, target)
      if (!match) continue
      note(call, surface, match)
      void answerCall(call, surface, match)
    } catch (thrown) {
      answerError(call, surface, jsonHeaders, thrown)
    }
    return true
  }
  return false
}

/** Notes what is called: in the call, its record and its span. */
function note(call: RequestCall, surface: Surface, { operation, template }: Match): void {
  const { record } = call
  call.operation = operation
  record.surface = surface.name
  record.operation = operation.name
  if (record.spanId) {
    activeSpan()?.updateName(operation.name).setAttribute('http.route', template)
  }
}

async function answerCall(call: RequestCall, surface: Surface, match: Match): Promise<void> {
  const { service, res, record } = call
  const { req } = res
  const { operation, calls, readsBody, headers } = match
  try {
    checkHost(req)
    const hasArrived = req.complete
    call.caller = await callerOf(call, service.rateLimit, calls)
    if (call.caller.readOnly && operation.type === 'mutation') throw problem('readOnlyKey')
    const body = readsBody ? await readBody(req, res) : undefined
    // A mutation without a body waits for its whole request: one that turns out to be malformed has no effect.
    if (!readsBody && !req.complete && operation.type === 'mutation') await skipBody(req, res)
    // The rest may have arrived slowly: the key must have been valid within the last ten seconds. Without the
    // rate limit, because the calls are counted already.
    if (!hasArrived) call.caller = await callerOf(call, undefined, calls)
    if (res.destroyed || res.headersSent) throw CLIENT_GONE
    call.deadline = new Deadline(service.timeout)
    // Node joins several such headers with ", ", and the result is not a valid key.
    call.idempotencyHeader = req.headers['idempotency-key'] as string | undefined
    const reply = await surface.reply(call, match, body)
    call.deadline.clear()
    record.calls = reply.calls
    for (const { error } of reply.calls ?? []) if (error) service.report(error, record)
    answer(res, reply.status, reply.headers, reply.body)
  } catch (thrown) {
    answerError(call, surface, headers, thrown)
  }
}

function answerError(
  { service, res, record }: RequestCall,
  surface: Surface,
  headers: readonly string[],
  thrown: unknown,
): void {
  const error = toProblem(thrown)
  service.report(error, record)
  answer(res, error.status, [...headers, ...error.headers], surface.encodeError(error))
}

/**
 * Returns the caller of a request by its API key, and counts its calls; without a promise if the key is cached,
 * which most are. Throws UNAUTHORIZED without a valid key, TOO_MANY_REQUESTS, and the errors of the look-up.
 */
function callerOf(
  call: RequestCall,
  rateLimit: RateLimit | undefined,
  calls: number,
): Caller | Promise<Caller> {
  const { service, res, record } = call
  const { req } = res
  const sent = tokenOf(req.headers.authorization)
  // Of several Authorization headers none is valid: a proxy may have checked another than this service.
  const token = sent && countHeader(req, 'authorization') > 1 ? '' : sent
  const caller = token && service.authenticator.known(token)
  if (!caller) return lookUpCaller(call, rateLimit, calls, token)
  record.keyId = String(caller.keyId)
  rateLimit?.countKey(res, caller.keyId, calls)
  return caller
}

/** Counts for the client's IP address first, so that a flood of invalid keys does not reach the database. */
async function lookUpCaller(
  call: RequestCall,
  rateLimit: RateLimit | undefined,
  calls: number,
  token: string | undefined,
): Promise<Caller> {
  const { service, res, record } = call
  const { authenticator, timeout } = service
  const prefix = visiblePrefix(token ?? '')
  if (record.keyId === undefined) record.keyPrefix = prefix
  // A key that was valid a moment ago is not rejected because of other callers at its IP address.
  const isCounted = !token || !authenticator.remembers(token)
  if (isCounted) rateLimit?.countIpAddress(res, calls)
  if (token === undefined) throw problem('missingKey')
  // A look-up that took longer would be out of date at its end.
  using deadline = new Deadline(Math.min(timeout, KEY_LIFETIME))
  call.deadline = deadline
  const caller = await authenticator.find(token, deadline)
  if (!caller) {
    Object.assign(record, { keyId: undefined, keyPrefix: prefix }) // it was valid before a slow body
    throw problem('invalidKey')
  }
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
