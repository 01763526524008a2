/**
 * The pipeline of both surfaces. Each request takes these steps, in this order: match, Host, deadline,
 * key, rate, input, procedure, output, answer.
 */
import type { Request, RequestHandler, Response } from 'express'
import { Deadline } from '../../db/deadline.ts'
import { OverloadedError } from '../../db/errors.ts'
import { CLIENT_GONE, type Problem, toProblem } from '../errors/problem.ts'
import { readBody } from '../http/body.ts'
import { type RequestRecord, recordOf } from '../http/record.ts'
import { checkHost, type Target, targetBelow } from '../http/request.ts'
import { readablePath } from '../http/request-log.ts'
import { answer } from '../http/respond.ts'
import { type Log, summed } from '../observe/log.ts'
import type { TraceIds, Tracing } from '../observe/tracing.ts'
import type { Context } from '../procedure/context.ts'
import { authorize } from '../procedure/procedure.ts'
import { type Callers, identify } from './caller.ts'
import type { Run } from './run.ts'

/** A surface: how it matches requests, and encodes errors. */
export interface Surface {
  name: 'rest' | 'trpc'
  /** The path prefix of the surface, such as `/v1`. */
  prefix: string
  /** The logged operation of a request without a match; undefined if other handlers serve its path. */
  unmatched: string | undefined
  /** Headers of the error for a request without a match: names and values in turn. */
  headers: readonly string[]
  /**
   * Returns the match of a method and of the target below the prefix; undefined for a path that the
   * surface does not have. Throws METHOD_NOT_SUPPORTED, BAD_REQUEST.
   */
  match(req: Request, target: Target): Match | undefined
  /** Returns the body of an error. */
  encodeError(error: Problem): string
}

/** The match of a request: its calls, and how a surface reads and answers it. */
export interface Match {
  /** The name in the log, the metrics and the span. */
  operation: string
  /** The path template, for the span. */
  route: string
  /** One call, or those of a batch. */
  calls: Call[]
  /** A mutation needs an API key that may write. */
  type: 'query' | 'mutation'
  readsBody: boolean
  /** Headers of every response, errors included: names and values in turn. */
  headers: readonly string[]
  /**
   * Parses the request, and returns a function that returns the input of each call by its index. Both
   * throw a Problem for an invalid input.
   */
  decode(body: string | undefined): (index: number) => unknown
  encode(outcomes: Outcome[], context: Context): Reply
  /** Replaces `decode`, the calls and `encode`. */
  serve?(context: Context, body: string | undefined, report: Report): Promise<Reply>
}

/** A call of a procedure; `run` is the error where the procedure cannot be called. */
export interface Call {
  name: string
  run: Run | Problem
}

/** The output of a call, or its error. */
export interface Outcome {
  output?: unknown
  error?: Problem
  status: number
  /** The span of a call in a batch. */
  ids?: TraceIds
}

/** A response. */
export interface Reply {
  status: number
  /** Names and values in turn. */
  headers: readonly string[]
  body: string
}

/** The services of a process that all requests use. */
export interface Service extends Callers {
  stores: Context['stores']
  transact: Context['transact']
  idempotency: Context['idempotency']
  /** Milliseconds from the match to the deadline of the calls. */
  timeout: number
  /** Logs a 5xx error. */
  report(error: Problem, record: RequestRecord): void
  tracing: Tracing | undefined
}

/** Returns the handler that serves a surface below its prefix. It passes on all other requests. */
export function pipeline(surface: Surface, service: Service): RequestHandler {
  return async (req, res, next) => {
    const target = targetBelow(surface.prefix, req)
    if (!target) return next()
    const record = recordOf(res)
    const report = (error: Problem) => service.report(error, record)
    let headers = surface.headers
    let context: (Context & RequestRecord) | undefined
    try {
      if (surface.unmatched !== undefined) setOperation(record, surface.name, surface.unmatched)
      const match = surface.match(req, target)
      if (!match) return next()
      headers = match.headers
      setOperation(record, surface.name, match.operation)

      checkHost(req)
      context = begin(service, req, res, match)
      const auth = await identify(service, res, match.calls.length, context.deadline)
      context.caller = authorize(auth, match.type)

      const body = match.readsBody ? await readBody(req, res) : undefined
      const reply = match.serve
        ? await match.serve(context, body, report)
        : match.encode(await callAll(match, context, body, report), context)
      answer(res, reply.status, reply.headers, reply.body)
    } catch (thrown) {
      const error = toProblem(thrown)
      report(error)
      answer(res, error.status, [...headers, ...error.headers], surface.encodeError(error))
    } finally {
      context?.deadline.clear()
    }
  }
}

function setOperation(record: RequestRecord, surface: Surface['name'], operation: string): void {
  record.surface = surface
  record.operation = operation
}

/**
 * Returns the context of a request's calls, and starts their deadline and their span. The context is
 * the request's record with more fields. When the client closes the connection, the deadline ends.
 */
function begin(
  { stores, transact, idempotency, timeout, tracing }: Service,
  req: Request,
  res: Response,
  { operation, route }: Match,
): Context & RequestRecord {
  const trace = tracing?.begin({
    operation,
    route,
    method: req.method,
    path: readablePath(req.originalUrl),
    scheme: req.protocol,
    headers: req.headers,
  })
  const deadline = new Deadline(timeout, trace)
  // After the response the deadline is cleared, and `giveUp` has no effect.
  res.on('close', () => deadline.giveUp(CLIENT_GONE))
  return Object.assign(recordOf(res), {
    deadline,
    trace,
    stores,
    transact,
    idempotency,
    caller: undefined,
    // Node joins several such headers with ", ", and the result is not a valid key.
    idempotencyHeader: req.headers['idempotency-key'] as string | undefined,
    page: { next: undefined },
  })
}

/** Runs the calls of a request concurrently, and returns their outcomes in order. */
async function callAll(
  { calls, decode }: Match,
  context: Context & RequestRecord,
  body: string | undefined,
  report: Report,
): Promise<Outcome[]> {
  const inputs = decode(body)
  const runCall = async ({ run }: Call, index: number, ctx: Context): Promise<Outcome> => {
    try {
      if (typeof run !== 'function') throw run
      return { output: await run(ctx, () => inputs(index)), status: 200 }
    } catch (thrown) {
      const error = toProblem(thrown)
      report(error)
      return { error, status: error.status }
    }
  }
  // Each call of a traced batch has a span of its own.
  const runInBatch = async (call: Call, index: number): Promise<Outcome> => {
    const span = context.trace?.call(loggedName(call))
    if (!span) return await runCall(call, index, context)
    const deadline = context.deadline.traced(span)
    const outcome = await runCall(call, index, { ...context, deadline, trace: span })
    span.end(outcome.status)
    return { ...outcome, ids: span.ids }
  }
  const [only] = calls
  if (only && calls.length === 1) return [await runCall(only, 0, context)]
  const outcomes = await Promise.all(calls.map(runInBatch))
  context.calls = calls.map((call, index) => {
    const { status, ids } = outcomes[index] as Outcome // each call has one
    return [loggedName(call), status, ids]
  })
  return outcomes
}

/** The logged operation of a call without a procedure: the log and the metrics omit invented names. */
export const UNKNOWN = 'unknown'

const loggedName = ({ name, run }: Call) =>
  typeof run === 'function' || run.code !== 'NOT_FOUND' ? name : UNKNOWN

/** Logs a 5xx error of one request. */
export type Report = (error: Problem) => void

/** Returns the function that logs 5xx errors, and ignores all others. */
export function reporter(log: Log): Service['report'] {
  // One line for each rejected call would fill the log during an overload.
  const reportOverload = summed((calls) =>
    log.error({ calls }, 'Too many calls wait for the database'),
  )
  return (error, { requestId, trace }) => {
    if (error.status < 500) return
    if (error.cause instanceof OverloadedError) return reportOverload()
    log.error({ requestId, ...trace?.ids, err: error.cause ?? error }, error.message)
  }
}
