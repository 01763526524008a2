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
import { jsonHeaders } from '../http/headers.ts'
import { checkHost, type Target, targetBelow } from '../http/request.ts'
import { type CallOutcome, type RequestRecord, recordOf } from '../http/request-log.ts'
import { answer } from '../http/respond.ts'
import type { Caller } from '../keys/key.ts'
import type { Log } from '../observe/log.ts'
import { activeSpan } from '../observe/span.ts'
import type { Context } from '../procedure/context.ts'
import { authorize } from '../procedure/procedure.ts'
import { type Callers, identify } from './caller.ts'

/** How a surface matches requests, and reads and writes what they carry. */
export interface Surface<Matched extends Match> {
  name: 'rest' | 'trpc'
  /** The path prefix, such as `/v1`. */
  prefix: string
  /** Returns undefined for a path that the surface lacks. Throws METHOD_NOT_SUPPORTED, BAD_REQUEST. */
  match(req: IncomingMessage, target: Target): Matched | undefined
  /** Reads the input, runs the calls, and encodes the output. Throws the error of the request. */
  reply(match: Matched, context: Context, body: string | undefined): Promise<Reply>
  /** Returns the body of an error. */
  encodeError(error: Problem): string
}

/** What a surface reads from the method and the target of a request. The target is below the prefix. */
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
  calls?: CallOutcome[] | undefined
  /** The errors of the calls of a batch. */
  errors?: Problem[]
}

/** The services of a process that all requests use. */
export interface Service extends Callers, Pick<Context, 'stores' | 'transact' | 'idempotency'> {
  /** Logs a 5xx error. */
  report(error: Problem, record: RequestRecord): void
}

/**
 * Returns the pipeline of a surface: a function that answers a request, and returns true; it returns false
 * for a path that the surface does not have.
 */
export function pipeline<Matched extends Match>(surface: Surface<Matched>, service: Service) {
  const refuse = (res: ServerResponse, headers: readonly string[], thrown: unknown) => {
    const error = toProblem(thrown)
    service.report(error, recordOf(res))
    answer(res, error.status, [...headers, ...error.headers], surface.encodeError(error))
  }

  const serve = async (
    req: IncomingMessage,
    res: ServerResponse,
    match: Matched,
    isAlone: boolean,
  ) => {
    const { calls, type, readsBody, headers } = match.operation
    try {
      checkHost(req)
      const hasArrived = req.complete
      let caller = authorize(await identify(service, res, calls), type)
      const body = readsBody ? await readBody(req, res) : undefined
      // However slowly a body came, the look-up that found the key valid began at most ten seconds ago.
      if (!hasArrived) caller = authorize(await identify(service, res, 0), type)
      const deadline = deadlineOf(service, res, isAlone && calls === 1)
      const context = contextOf(service, req, caller, deadline)
      const reply = await surface.reply(match, context, body)
      const record = recordOf(res)
      record.calls = reply.calls
      for (const error of reply.errors ?? []) service.report(error, record)
      answer(res, reply.status, reply.headers, reply.body)
    } catch (thrown) {
      refuse(res, headers, thrown)
    }
  }

  return (req: IncomingMessage, res: ServerResponse, target: Target, isAlone: boolean): boolean => {
    const below = targetBelow(surface.prefix, target)
    if (!below) return false
    const record = recordOf(res)
    try {
      const match = surface.match(req, below)
      if (!match) return false
      const { name, route } = match.operation
      record.surface = surface.name
      record.operation = name
      if (record.spanId) activeSpan()?.updateName(name).setAttribute('http.route', route)
      void serve(req, res, match, isAlone)
    } catch (thrown) {
      refuse(res, jsonHeaders, thrown)
    }
    return true
  }
}

/**
 * Starts the deadline of a request's calls. It ends with the answer, or when the client closes the
 * connection before, which gives up the calls.
 */
function deadlineOf({ timeout }: Service, res: ServerResponse, isAlone: boolean): Deadline {
  if (res.destroyed) throw CLIENT_GONE
  const deadline = new Deadline(timeout, { isAlone })
  res.on('close', () => (res.writableFinished ? deadline.clear() : deadline.giveUp(CLIENT_GONE)))
  return deadline
}

function contextOf(
  { stores, transact, idempotency }: Service,
  req: IncomingMessage,
  caller: Caller,
  deadline: Deadline,
): Context {
  // Node joins several such headers with ", ", and the result is not a valid key.
  const idempotencyHeader = req.headers['idempotency-key'] as string | undefined
  const nextCursor = undefined
  return { caller, deadline, stores, transact, idempotency, idempotencyHeader, nextCursor }
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
