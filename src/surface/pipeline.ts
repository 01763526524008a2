/**
 * The pipeline of both surfaces. Each request takes these steps, in this order: match, Host, key, rate,
 * body, deadline, reply (input, procedure, output), answer.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Deadline } from '../../db/deadline.ts'
import { BrokenDatabaseError, OverloadedError } from '../../db/errors.ts'
import { CLIENT_GONE, toProblem } from '../errors/catalogue.ts'
import type { Problem } from '../errors/problem.ts'
import { readBody } from '../http/body.ts'
import { checkHost, type Target, targetBelow } from '../http/request.ts'
import { type CallOutcome, type RequestRecord, recordOf } from '../http/request-log.ts'
import { answer } from '../http/respond.ts'
import { type Log, oncePerSecond } from '../observe/log.ts'
import { activeSpan } from '../observe/span.ts'
import type { Context } from '../procedure/context.ts'
import { authorize } from '../procedure/procedure.ts'
import { type Callers, identify, identifyAgain } from './caller.ts'

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
  match(req: IncomingMessage, target: Target): Match | undefined
  /** Returns the body of an error. */
  encodeError(error: Problem): string
}

/** The match of a request, and how the surface answers it. */
export interface Match {
  /** The name in the log, the metrics and the span. */
  operation: string
  /** The path template, for the span. */
  route: string
  /** The number of calls: more than one in a batch. */
  calls: number
  /** A mutation needs an API key that may write. */
  type: 'query' | 'mutation'
  readsBody: boolean
  /** Headers of every response, errors included: names and values in turn. */
  headers: readonly string[]
  /** Reads the input, runs the calls, and encodes the output. Throws the error of the request. */
  reply(context: Context, body: string | undefined, report: Report): Promise<Reply>
}

/** Logs a 5xx error of one request. */
export type Report = (error: Problem) => void

/** A response. */
export interface Reply {
  status: number
  /** Names and values in turn. */
  headers: readonly string[]
  body: string
  /** The calls of a batch, for the log. */
  calls?: CallOutcome[]
}

/** The services of a process that all requests use. */
export interface Service extends Callers {
  stores: Context['stores']
  transact: Context['transact']
  idempotency: Context['idempotency']
  /** Logs a 5xx error. */
  report(error: Problem, record: RequestRecord): void
}

/** Answers a request, and returns true; returns false for a path that the surface does not have. */
export type Pipeline = (req: IncomingMessage, res: ServerResponse, target: Target) => boolean

/** Returns the pipeline of a surface. */
export function pipeline(surface: Surface, service: Service): Pipeline {
  const refuse = (res: ServerResponse, headers: readonly string[], thrown: unknown) => {
    const error = toProblem(thrown)
    service.report(error, recordOf(res))
    answer(res, error.status, [...headers, ...error.headers], surface.encodeError(error))
  }

  const serve = async (req: IncomingMessage, res: ServerResponse, match: Match) => {
    const record = recordOf(res)
    try {
      checkHost(req)
      const hasArrived = req.complete
      let caller = authorize(await identify(service, res, match.calls), match.type)
      const body = match.readsBody ? await readBody(req, res) : undefined
      if (!hasArrived) caller = authorize(await identifyAgain(service, res), match.type)
      const context = { ...begin(service, req, res), caller }
      const report = (error: Problem) => service.report(error, record)
      const { status, headers, body: text, calls } = await match.reply(context, body, report)
      record.calls = calls
      answer(res, status, headers, text)
    } catch (thrown) {
      refuse(res, match.headers, thrown)
    }
  }

  return (req, res, target) => {
    const below = targetBelow(surface.prefix, target)
    if (!below) return false
    const record = recordOf(res)
    if (surface.unmatched !== undefined) setOperation(record, surface.name, surface.unmatched)
    try {
      const match = surface.match(req, below)
      if (!match) return false
      setOperation(record, surface.name, match.operation)
      if (record.spanId)
        activeSpan()?.updateName(match.operation).setAttribute('http.route', match.route)
      void serve(req, res, match)
    } catch (thrown) {
      refuse(res, surface.headers, thrown)
    }
    return true
  }
}

function setOperation(record: RequestRecord, surface: Surface['name'], operation: string): void {
  record.surface = surface
  record.operation = operation
}

/**
 * Starts the deadline of a request's calls, and returns their context without the caller. The deadline
 * ends with the answer, and gives up the calls when the client closes the connection before.
 */
function begin(
  { stores, transact, idempotency, timeout }: Service,
  req: IncomingMessage,
  res: ServerResponse,
): Omit<Context, 'caller'> {
  if (res.destroyed) throw CLIENT_GONE
  const deadline = new Deadline(timeout)
  res.on('close', () => (res.writableFinished ? deadline.clear() : deadline.giveUp(CLIENT_GONE)))
  return {
    deadline,
    stores,
    transact,
    idempotency,
    // Node joins several such headers with ", ", and the result is not a valid key.
    idempotencyHeader: req.headers['idempotency-key'] as string | undefined,
    schemas: undefined,
    page: { next: undefined },
  }
}

/** Returns the function that logs 5xx errors, and ignores all others. */
export function reporter(
  log: Log,
  reportBroken: (error: BrokenDatabaseError) => void,
): Service['report'] {
  // One line for each rejected call would fill the log during an overload.
  const reportOverload = oncePerSecond((calls) =>
    log.error({ calls }, 'Too many calls wait for the database'),
  )
  return (error, { requestId, traceId, spanId }) => {
    if (error.status < 500) return
    if (error.cause instanceof OverloadedError) return reportOverload()
    if (error.cause instanceof BrokenDatabaseError) return reportBroken(error.cause)
    log.error({ requestId, traceId, spanId, err: error.cause ?? error }, error.message)
  }
}
