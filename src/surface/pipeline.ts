/**
 * The pipeline of both surfaces. Each request takes these steps, in this order: match, Host, deadline,
 * key, rate, body, reply (input, procedure, output), answer.
 */
import type { Request, RequestHandler, Response } from 'express'
import { Deadline } from '../../db/deadline.ts'
import { OverloadedError } from '../../db/errors.ts'
import { CLIENT_GONE, type Problem, toProblem } from '../errors/problem.ts'
import { readBody } from '../http/body.ts'
import { checkHost, type Target, targetBelow } from '../http/request.ts'
import { type RequestRecord, recordOf } from '../http/request-record.ts'
import { answer } from '../http/respond.ts'
import { type Log, summed } from '../observe/log.ts'
import { idsOf } from '../observe/span.ts'
import type { Context } from '../procedure/context.ts'
import { authorize } from '../procedure/procedure.ts'
import { type Callers, identify } from './caller.ts'

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
  reply(context: CallContext, body: string | undefined, report: Report): Promise<Reply>
}

/** The context of a request's calls, which is its record, too. */
export type CallContext = Context & RequestRecord

/** Logs a 5xx error of one request. */
export type Report = (error: Problem) => void

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
}

/** Returns the handler that serves a surface below its prefix. It passes on all other requests. */
export function pipeline(surface: Surface, service: Service): RequestHandler {
  return async (req, res, next) => {
    const target = targetBelow(surface.prefix, req)
    if (!target) return next()
    const record = recordOf(res)
    const report = (error: Problem) => service.report(error, record)
    let headers = surface.headers
    try {
      if (surface.unmatched !== undefined) setOperation(record, surface.name, surface.unmatched)
      const match = surface.match(req, target)
      if (!match) return next()
      headers = match.headers
      setOperation(record, surface.name, match.operation)

      checkHost(req)
      const begun = begin(service, req, res, match)
      const auth = await identify(service, res, match.calls, begun.deadline)
      const context = Object.assign(begun, { caller: authorize(auth, match.type) })

      const body = match.readsBody ? await bodyOf(req, res, context) : undefined
      const reply = await match.reply(context, body, report)
      answer(res, reply.status, reply.headers, reply.body)
    } catch (thrown) {
      const error = toProblem(thrown)
      report(error)
      answer(res, error.status, [...headers, ...error.headers], surface.encodeError(error))
    }
  }
}

/** Reads the body. The time of a body that is still arriving is that of the client, not of the database. */
function bodyOf(req: Request, res: Response, { deadline }: Context): Promise<string | undefined> {
  const read = () => readBody(req, res)
  return req.complete ? read() : deadline.suspend(read)
}

function setOperation(record: RequestRecord, surface: Surface['name'], operation: string): void {
  record.surface = surface
  record.operation = operation
}

/**
 * Returns the context of a request's calls, and starts their deadline. The context is the
 * request's record with more fields. The deadline ends when the response has been sent, or when the
 * client closes the connection.
 */
function begin(
  { stores, transact, idempotency, timeout }: Service,
  req: Request,
  res: Response,
  { operation, route }: Match,
): Omit<CallContext, 'caller'> {
  const record = recordOf(res)
  record.span?.updateName(operation).setAttribute('http.route', route)
  const deadline = new Deadline(timeout)
  res.on('close', () => deadline.giveUp(CLIENT_GONE))
  return Object.assign(record, {
    deadline,
    stores,
    transact,
    idempotency,
    // Node joins several such headers with ", ", and the result is not a valid key.
    idempotencyHeader: req.headers['idempotency-key'] as string | undefined,
    schemas: undefined,
    page: { next: undefined },
  })
}

/** Returns the function that logs 5xx errors, and ignores all others. */
export function reporter(log: Log): Service['report'] {
  // One line for each rejected call would fill the log during an overload.
  const reportOverload = summed((calls) =>
    log.error({ calls }, 'Too many calls wait for the database'),
  )
  return (error, { requestId, span }) => {
    if (error.status < 500) return
    if (error.cause instanceof OverloadedError) return reportOverload()
    log.error({ requestId, ...idsOf(span), err: error.cause ?? error }, error.message)
  }
}
