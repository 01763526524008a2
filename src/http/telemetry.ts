/** What is known of a request when it is over: one log line, and what the metrics count. */
import { randomUUID } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import type { Request, Response } from 'express'
import type { Logger } from 'pino'
import { visiblePrefix, withoutKeys } from '../keys/format.ts'
import type { Observation } from '../metrics.ts'
import type { CallTrace, TraceIds, Tracing } from '../tracing.ts'
import { addressOf, parseTarget } from './request.ts'

/** What is noted of a request on its way, for its log line. */
interface Notes {
  requestId?: string
  surface?: Observation['surface']
  operation?: string | undefined
  keyId?: string | undefined
  keyPrefix?: string | undefined
  calls?: Call[]
  trace?: CallTrace
}

/** One call of several that came with one request: its operation, its status, and its span. */
export type Call = [operation: string, status: number, ids?: TraceIds | undefined]

/** The status of a request whose client went before it was answered. */
const GONE = 499

const NOTES = Symbol('notes')

function notesOf(res: ServerResponse & { [NOTES]?: Notes }): Notes {
  res[NOTES] ??= {}
  return res[NOTES]
}

/** Tells the log, and `observe`, of this request that a procedure serves it. */
export function setOperation(res: Response, surface: 'rest' | 'trpc', operation: string): void {
  const noted = notesOf(res)
  noted.surface = surface
  noted.operation = operation
}

/** Tells the log, and `observe`, of the calls of a request, each of which is logged and counted. */
export function setCalls(res: Response, calls: Call[]): void {
  notesOf(res).calls = calls
}

/** Tells the log whose key a request came with. */
export function setCaller(res: Response, keyId: bigint): void {
  const noted = notesOf(res)
  noted.keyId = keyId.toString()
  noted.keyPrefix = undefined
}

/** Tells the log how the key begins of a request that has no valid one. */
export function setStranger(res: Response, authorization: string | undefined): void {
  notesOf(res).keyPrefix = visiblePrefix(authorization ?? '')
}

/**
 * Begins the span of a request whose operation is set, in the trace that it says it belongs to. It
 * ends with the request.
 */
export function beginTrace(
  res: Response,
  tracing: Tracing,
  routeOf: (surface: Observation['surface'], operation: string) => string | undefined,
): CallTrace {
  const noted = notesOf(res)
  const { req } = res
  const { surface = 'other', operation = 'unknown' } = noted
  noted.trace = tracing.begin({
    operation,
    route: routeOf(surface, operation),
    method: req.method,
    path: readable(req.originalUrl),
    scheme: req.protocol,
    headers: req.headers,
  })
  return noted.trace
}

/** The ids of the span of this request; undefined where it is not traced. */
export const traceIdsOf = (res: ServerResponse): TraceIds | undefined => notesOf(res).trace?.ids

/** The id of this request, as it is answered in X-Request-Id; a new one where it has none. */
export function requestIdOf(res: ServerResponse): string {
  const noted = notesOf(res)
  noted.requestId ??= randomUUID()
  return noted.requestId
}

export interface Telemetry {
  /**
   * Gives each request an id (that of `X-Request-Id`, when it is sane), answers it in the same
   * header, and logs one line when the request is over. Neither keys nor bodies nor queries are in it.
   */
  begin(req: Request, res: Response): void
  /** Logs and counts a request that was refused before anything could handle it; gives its id. */
  onRefused(refusal: { status: number; address: string | undefined }): string
}

export function createTelemetry(
  log: Logger,
  observe: (observation: Observation) => void,
): Telemetry {
  return {
    begin(req, res) {
      const start = performance.now()
      const noted = notesOf(res)
      noted.requestId = requestIdFrom(req.headers['x-request-id'])
      const { method, url } = req
      res.on('close', () => {
        const { surface = 'other', requestId, keyId, keyPrefix, trace } = noted
        const answered = res.writableFinished ? res.statusCode : undefined
        const duration = Math.round((performance.now() - start) * 10) / 10
        trace?.end(answered ?? GONE)
        for (const [operation, status = GONE, ids = trace?.ids] of callsOf(noted, answered)) {
          observe({ surface, operation, status, duration })
          const path = operation === undefined ? readable(url) : undefined
          const who =
            keyId === undefined ? { address: plain(addressOf(req)), keyPrefix } : { keyId }
          log.info(
            { requestId, ...ids, surface, operation, method, path, status, duration, ...who },
            'request',
          )
        }
      })
    },
    onRefused({ status, address }) {
      const requestId = randomUUID()
      observe({ surface: 'other', operation: undefined, status, duration: 0 })
      log.info(
        { requestId, surface: 'other', status, duration: 0, address: plain(address) },
        'request',
      )
      return requestId
    },
  }
}

/** What an id of a request looks like. */
export const REQUEST_ID = /^[A-Za-z0-9_.:/+=-]{1,128}$/

// One that holds a key is replaced whole: others will read it.
function requestIdFrom(given: string | string[] | undefined): string {
  const isSane = typeof given === 'string' && REQUEST_ID.test(given)
  return isSane && withoutKeys(given) === given ? given : randomUUID()
}

// Of an IPv4 address in IPv6's form the former (RFC 4291, section 2.5.5.2).
const plain = (address: string | undefined) => address?.replace(/^::ffff:(?=\d+\.)/, '')

// A client that has gone has got none of the answers of its calls.
function callsOf(
  { calls, operation }: Notes,
  answered: number | undefined,
): [operation: string | undefined, status: number | undefined, ids?: TraceIds | undefined][] {
  return calls && answered !== undefined ? calls : [[operation, answered]]
}

/** How often an address may have been escaped for a key in it to be found. */
const MAX_ESCAPES = 5

// A path without its query and without keys, be they escaped, and the escapes escaped again.
function readable(url: string): string {
  const path = parseTarget(url)?.path ?? ''
  let plain = path
  for (let round = 0; round < MAX_ESCAPES && plain.includes('%'); round++) {
    plain = plain.replaceAll(/%([\da-f]{2})/gi, (_escape, code: string) =>
      String.fromCharCode(Number.parseInt(code, 16)),
    )
  }
  const shown = withoutKeys(plain)
  return shown === plain ? path : shown
}
