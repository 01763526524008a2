/**
 * The pipeline of both surfaces. Each request takes these steps, in this order: match, Host, key with its rate and its
 * right to write, body, memory, deadline, answer (input, operation, output), sending.
 */
import type { IncomingMessage } from 'node:http'
import { CLIENT_GONE, type Problem, problem, toProblem } from '../errors/problem.ts'
import { type Body, readBody, skipBody } from '../http/body.ts'
import { jsonHeaders } from '../http/headers.ts'
import type { CallOutcome, RecordedResponse, RequestRecord } from '../http/record.ts'
import { checkHost, parseTarget, type Target } from '../http/request.ts'
import { send } from '../http/respond.ts'
import { activeSpan } from '../observe/span.ts'
import {
  type CallsOfRequest,
  type CreateContext,
  type Shared,
  withContext,
} from '../procedure/call.ts'
import { RequestHeaders } from '../procedure/headers.ts'
import { type Authenticating, callerOf } from './caller.ts'
import { startWait } from './waiting.ts'

/** How a surface matches requests, and reads and writes what they carry. */
export interface Surface<Matched extends Match = Match> {
  name: 'rest' | 'trpc'
  /** Returns undefined for a path that the surface lacks. Throws METHOD_NOT_SUPPORTED, BAD_REQUEST. */
  match(req: IncomingMessage, target: Target): Matched | undefined
  /** Reads the input, runs the operation, and encodes the output. Throws the error of the request. */
  answer(request: CallsOfRequest, match: Matched, body: Body | undefined): Promise<Answer>
  /** Returns the body of an error. */
  encodeError(error: Problem): string
}

/** What a surface reads from the method and the target of a request. */
export interface Match {
  /** The name of the operation, in the log, the metrics and the span: `batch` for several, `unknown` for none. */
  name: string
  /** A mutation needs an API key that may write. */
  type: 'query' | 'mutation'
  /** Whether anyone may call, without an API key. */
  isPublic: boolean
  /** The path template, for the span. */
  template: string
  /** The number of calls: of a batch, up to its maximum. */
  count: number
  readsBody: boolean
  /** Headers of the errors of its calls: each name, then its value. */
  headers: readonly string[]
}

/** The answer to a request: http/respond.ts sends it. */
export interface Answer {
  status: number
  /** Each name, then its value. */
  headers: readonly string[]
  body: string
  /** Those of the calls of tRPC, for the log. */
  outcomes?: Outcome[]
}

/** The output of a call of tRPC, or its error. */
export interface Outcome extends CallOutcome {
  output?: unknown
  error?: Problem
}

/** What all requests of a process use. Their calls see the part of it that is `Shared`. */
export interface Service extends Shared, Authenticating {
  /** Returns what the product adds to `ctx` of the calls of a request. */
  readonly createContext: CreateContext | undefined
  /** Logs a 5xx error, with the name of its operation: for a call of a batch, its own. */
  report(error: Problem, record: RequestRecord, operation?: string): void
}

/** Serves a request by the surface that has its path. Returns the number of its calls; undefined if none has the path. */
export function serve(
  service: Service,
  res: RecordedResponse,
  surfaces: readonly Surface[],
): number | undefined {
  const target = parseTarget(res.req.url ?? '')
  if (!target) {
    send(res, BAD_URL.status, jsonHeaders, JSON.stringify(BAD_URL.refusal))
    return 1
  }
  for (const surface of surfaces) {
    try {
      const match = surface.match(res.req, target)
      if (!match) continue
      void serveCalls(service, res, surface, match)
      return match.count
    } catch (thrown) {
      sendError(service, res, surface, jsonHeaders, thrown)
      return 1
    }
  }
  return undefined
}

const BAD_URL = problem('invalidUrl')

async function serveCalls(
  service: Service,
  res: RecordedResponse,
  surface: Surface,
  match: Match,
): Promise<void> {
  const { req, record } = res
  const { name, type, readsBody, headers } = match
  record.surface = surface.name
  record.operation = name
  if (record.spanId) activeSpan()?.updateName(name).setAttribute('http.route', match.template)
  try {
    checkHost(req)
    let caller = await callerOf(service, res, match)
    // A mutation without a body waits for the rest of its request, too, so that a malformed one changes nothing.
    const waits = !req.complete && (readsBody || type === 'mutation')
    const body = readsBody ? await readBody(req, res) : undefined
    if (waits && !readsBody) await skipBody(req, res)
    // The key, or its right to write, may have been revoked while the rest arrived. Nothing is counted twice.
    if (waits) caller = await callerOf(service, res, { ...match, count: 0 })
    if (res.destroyed || res.headersSent) throw CLIENT_GONE
    using deadline = startWait(res, service.timeout, body?.length ?? 0)
    const request: CallsOfRequest = {
      shared: service,
      caller,
      deadline,
      headers: new RequestHeaders(req.headers),
      // Node joins several such headers with ", ", and the result is not a valid key.
      idempotencyHeader: req.headers['idempotency-key'] as string | undefined,
      report: (error, name) => service.report(error, record, name),
    }
    const { createContext } = service
    const inContext = createContext ? await withContext(request, createContext) : request
    const answer = await surface.answer(inContext, match, body)
    if (answer.outcomes) noteOutcomes(service, res, answer.outcomes)
    send(res, answer.status, answer.headers, answer.body)
  } catch (thrown) {
    sendError(service, res, surface, headers, thrown)
  }
}

/** Notes what became of the calls of tRPC, and logs their 5xx errors. */
function noteOutcomes(service: Service, res: RecordedResponse, outcomes: Outcome[]): void {
  // The server may have refused the rest of the request meanwhile: its answer is the one in the log.
  if (!res.headersSent) {
    // Without the outputs, which would stay until the answer is sent.
    res.record.noteOutcomes(outcomes.map(({ operation, status }) => ({ operation, status })))
  }
  for (const { error, operation } of outcomes) {
    if (error) service.report(error, res.record, operation)
  }
}

function sendError(
  service: Service,
  res: RecordedResponse,
  surface: Surface,
  headers: readonly string[],
  thrown: unknown,
): void {
  const error = toProblem(thrown)
  service.report(error, res.record)
  send(res, error.status, [...headers, ...error.headers], surface.encodeError(error))
}
