/**
 * The one way in. Each request of both surfaces takes these steps, in this order: match, Host,
 * deadline, key, rate, input, procedure, output, answer.
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

/** What differs between the surfaces: how a request is matched, read and answered. */
export interface Surface {
  name: 'rest' | 'trpc'
  /** The path below which the surface is found, such as `/v1`. */
  prefix: string
  /** What the log has as the operation where none matches; undefined where the path is left to others. */
  unmatched: string | undefined
  /** Headers of an answer to a request that matches nothing. */
  headers: readonly string[]
  /**
   * What a request asks for, by its method and the target below the prefix; undefined where the
   * path is not the surface's. Throws METHOD_NOT_SUPPORTED, BAD_REQUEST.
   */
  match(req: Request, target: Target): Match | undefined
  encodeError(error: Problem): string
}

/** What one request asks for. */
export interface Match {
  /** The name for the log, the metrics and the span. */
  operation: string
  /** The path with the names of its parameters in braces, for the span. */
  route: string
  /** One call, or those of a batch. */
  calls: Called[]
  /** A mutation needs a key that may write. */
  type: 'query' | 'mutation'
  readsBody: boolean
  /** Headers of every answer, errors included. */
  headers: readonly string[]
  /** Reads the body; what it returns reads the input of each call, by its index. Throws what is wrong. */
  decode(body: string | undefined): (index: number) => unknown
  encode(outcomes: Outcome[], context: Context): Reply
  /** Answers by other means than calling each procedure. */
  serve?(context: Context, body: string | undefined, report: Report): Promise<Reply>
}

/** A call of a procedure, or what is wrong with it. */
export interface Called {
  name: string
  run: Run | Problem
}

/** What came of a call. */
export interface Outcome {
  output?: unknown
  error?: Problem
  status: number
  /** The span of a call of a batch. */
  ids?: TraceIds
}

export interface Reply {
  status: number
  headers: readonly string[]
  body: string
}

/** What the calls of a service share. */
export interface Service extends Callers {
  stores: Context['stores']
  transact: Context['transact']
  idempotency: Context['idempotency']
  /** Milliseconds that the calls of a request may take. */
  timeout: number
  /** Logs an error that is the service's own fault. */
  report(error: Problem, record: RequestRecord): void
  tracing: Tracing | undefined
}

/** Serves a surface below its prefix; all other paths are passed on. */
export function pipeline(surface: Surface, service: Service): RequestHandler {
  return async (req, res, next) => {
    const target = targetBelow(surface.prefix, req)
    if (!target) return next()
    const record = recordOf(res)
    const report = (error: Problem) => service.report(error, record)
    let headers = surface.headers
    let context: (Context & RequestRecord) | undefined
    try {
      if (surface.unmatched !== undefined) name(record, surface.name, surface.unmatched)
      const match = surface.match(req, target)
      if (!match) return next()
      headers = match.headers
      name(record, surface.name, match.operation)

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

function name(record: RequestRecord, surface: Surface['name'], operation: string): void {
  record.surface = surface
  record.operation = operation
}

/** Begins the calls of a request: their deadline, which ends when the client goes, and their span. */
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
  // A call that is over has cleared its deadline, which then gives up nothing.
  res.on('close', () => deadline.giveUp(CLIENT_GONE))
  return Object.assign(recordOf(res), {
    deadline,
    trace,
    stores,
    transact,
    idempotency,
    caller: undefined,
    // Node joins several of this header to one text, which then is not a key.
    idempotencyHeader: req.headers['idempotency-key'] as string | undefined,
    page: { next: undefined },
  })
}

/** Calls the procedures of a request, all at once. */
async function callAll(
  { calls, decode }: Match,
  context: Context & RequestRecord,
  body: string | undefined,
  report: Report,
): Promise<Outcome[]> {
  const inputs = decode(body)
  const call = async ({ run }: Called, index: number, ctx: Context): Promise<Outcome> => {
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
  const callInBatch = async (called: Called, index: number): Promise<Outcome> => {
    const part = context.trace?.call(loggedName(called))
    if (!part) return await call(called, index, context)
    const deadline = context.deadline.traced(part)
    const outcome = await call(called, index, { ...context, deadline, trace: part })
    part.end(outcome.status)
    return { ...outcome, ids: part.ids }
  }
  const [only] = calls
  if (only && calls.length === 1) return [await call(only, 0, context)]
  const outcomes = await Promise.all(calls.map(callInBatch))
  context.calls = calls.map((called, index) => {
    const { status, ids } = outcomes[index] as Outcome // there is one for each call
    return [loggedName(called), status, ids]
  })
  return outcomes
}

/** What the log has as the operation of a call of no procedure: callers must not fill it with names. */
export const UNKNOWN = 'unknown'

const loggedName = ({ name, run }: Called) =>
  typeof run === 'function' || run.code !== 'NOT_FOUND' ? name : UNKNOWN

/** Logs an error of this request that is the service's own fault. */
export type Report = (error: Problem) => void

/** What logs the errors of requests. */
export function reporter(log: Log): (error: Problem, record: RequestRecord) => void {
  // A crowd that is turned away must not fill the log too.
  const reportOverload = summed((calls) => log.error({ calls }, 'Too many wait for the database'))
  return (error, { requestId, trace }) => {
    if (error.status < 500) return
    if (error.cause instanceof OverloadedError) return reportOverload()
    log.error({ requestId, ...trace?.ids, err: error.cause ?? error }, error.message)
  }
}
