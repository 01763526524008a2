/** The record of a request: what the pipeline learns of it, and its log line and metrics, when it is over. */
import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Logger } from 'pino'
import { NAME } from '../config/product.ts'
import { type Caller, withoutKeyAtEnd, withoutKeys } from '../keys/key.ts'
import type { Observation } from '../observe/metrics.ts'
import { activeSpan, idsOf } from '../observe/span.ts'
import { ipAddressOf, parseTarget, type Trust } from './request.ts'

/** The logged status of a request whose client closed the connection before the response was sent. */
export const GONE = 499

/** A call, as the log and the metrics report it. */
export type CallOutcome = [operation: string | undefined, status: number]

export class RequestRecord {
  /** The id in the log and in the response's `X-Request-Id`. */
  readonly requestId: string
  surface: 'rest' | 'trpc' | 'other' = 'other'
  /** The name of the procedure, or `batch`; undefined if the request calls no procedure. */
  operation: string | undefined
  /** The calls of a batch. The log has a line for each. */
  calls: CallOutcome[] | undefined
  /** Undefined until an API key has been found valid. */
  caller: Caller | undefined
  /** The part of an invalid API key that the log may contain. */
  keyPrefix: string | undefined
  /** The span of the request; undefined without OpenTelemetry. */
  readonly span = activeSpan()
  /** Whether the request is for a file of the docs page. A success is logged at debug. */
  isDocsFile = false
  /** Headers of any response to this request: names and values in turn. */
  headers: readonly string[] = []
  readonly #req: IncomingMessage
  readonly #trust: Trust

  constructor(req: IncomingMessage, trust: Trust) {
    this.requestId = requestIdFrom(req.headers['x-request-id']) ?? randomUUID()
    this.#req = req
    this.#trust = trust
  }

  /** The client's IP address; undefined if the connection is closed. */
  get ipAddress(): string | undefined {
    return ipAddressOf(this.#req, this.#trust)
  }
}

const RECORD = Symbol('record')

type Recorded = ServerResponse & { [RECORD]?: RequestRecord }

/** Returns the record that `begin` has made for a response's request. */
export const recordOf = (res: Recorded): RequestRecord => res[RECORD] as RequestRecord

export type Telemetry = ReturnType<typeof createTelemetry>

/** Returns the telemetry that logs to `log` and counts by `observe`. `trust` is that of X-Forwarded-For. */
export function createTelemetry(
  log: Logger,
  trust: Trust,
  observe: (observation: Observation) => void = () => {},
) {
  return {
    /**
     * Sets the id of a request, from a valid `X-Request-Id` or at random, and logs one line when the
     * request is over: at debug for a file of the docs page that was sent. The line has no API key, no
     * body and no query.
     */
    begin(req: IncomingMessage, res: Recorded): void {
      const start = performance.now()
      const record = new RequestRecord(req, trust)
      res[RECORD] = record
      record.span?.setAttributes({
        [`${NAME}.request_id`]: record.requestId,
        'url.path': readablePath(req.url ?? ''), // the path may have an API key by mistake
      })
      const { method, url = '' } = req // Express changes the URL
      res.on('close', () => {
        const { surface, requestId, caller, span } = record
        const answered = res.writableFinished ? res.statusCode : undefined
        const duration = Math.round((performance.now() - start) * 10) / 10
        const { traceId, spanId } = idsOf(span)
        // A batch whose client closed the connection has one line: none of its calls was answered.
        const ofBatch = answered === undefined ? undefined : record.calls
        const outcomes: CallOutcome[] = ofBatch ?? [[record.operation, answered ?? GONE]]
        for (const [operation, status] of outcomes) {
          observe({ surface, operation, status, duration })
          const isQuiet = record.isDocsFile && (status === 200 || status === 304)
          log[isQuiet ? 'debug' : 'info'](
            // The log leaves out what is undefined. To spread objects would cost more.
            {
              requestId,
              traceId,
              spanId,
              surface,
              operation,
              method,
              path: operation === undefined ? readablePath(url) : undefined,
              status,
              duration,
              keyId: caller?.keyId.toString(),
              address: caller ? undefined : plain(record.ipAddress),
              keyPrefix: caller ? undefined : record.keyPrefix,
            },
            'request',
          )
        }
      })
    },
    /** Logs and counts a request that the server rejects before the app; returns its new id. */
    onRefused({ status, ipAddress }: { status: number; ipAddress: string | undefined }): string {
      const requestId = randomUUID()
      const refused = { surface: 'other', status, duration: 0 } as const
      observe({ ...refused, operation: undefined })
      log.info({ requestId, ...refused, address: plain(ipAddress) }, 'request')
      return requestId
    },
  }
}

/** A valid `X-Request-Id`. */
export const REQUEST_ID = /^[A-Za-z0-9_.:/+=-]{1,128}$/

// An id that contains an API key is replaced: logs of other programs would keep it.
function requestIdFrom(sent: string | string[] | undefined): string | undefined {
  const isSane = typeof sent === 'string' && REQUEST_ID.test(sent)
  return isSane && withoutKeys(sent) === sent ? sent : undefined
}

// RFC 4291, section 2.5.5.2: an IPv4 address may come mapped to IPv6.
const plain = (ipAddress: string | undefined) => ipAddress?.replace(/^::ffff:(?=\d+\.)/, '')

/** Rounds of percent-decoding in which an API key is looked for. */
const MAX_ESCAPES = 5

/** Returns the path of a URL for the log: without the query, and without API keys, even encoded ones. */
export function readablePath(url: string): string {
  const path = parseTarget(url)?.path ?? ''
  let plain = path
  for (let round = 0; round < MAX_ESCAPES && plain.includes('%'); round++) {
    plain = plain.replaceAll(/%([\da-f]{2})/gi, (_escape, code: string) =>
      String.fromCharCode(Number.parseInt(code, 16)),
    )
  }
  const shown = withoutKeyAtEnd(plain)
  return shown === plain ? path : shown
}
