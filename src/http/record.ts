/** The record of a request: what the pipeline learns of it, for its log line and the metrics. */
import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Logger } from 'pino'
import type { Trust } from '../config/config.ts'
import { NAME } from '../config/product.ts'
import { withoutKeyAtEnd, withoutKeys } from '../keys/key.ts'
import { activeSpan } from '../observe/span.ts'
import { ipAddressOf, parseTarget } from './request.ts'

/** A call, as the log and the metrics report it. */
export type CallOutcome = Pick<RequestRecord, 'operation' | 'status'>

/** The fields of the log line, in their order. The log leaves out those that are undefined. */
export class RequestRecord {
  /** The id in the log and in the response's `X-Request-Id`. */
  readonly requestId: string
  /** The ids of the span; undefined without OpenTelemetry. */
  traceId: string | undefined
  spanId: string | undefined
  surface: 'rest' | 'trpc' | 'other' = 'other'
  /** The name of the procedure, or `batch` for several; undefined where none was called. */
  operation: string | undefined
  method: string | undefined
  path: string | undefined
  /** The HTTP status; 499 if the client closed the connection before the answer. */
  status = 499
  /** Milliseconds. */
  duration = 0
  /** Undefined until an API key has been found valid. */
  keyId: string | undefined
  address: string | undefined
  /** The part of an invalid API key that the log may contain. */
  keyPrefix: string | undefined
  /** The calls of a batch. The log has a line for each. */
  calls: CallOutcome[] | undefined

  constructor(requestId?: string) {
    this.requestId = requestId ?? randomUUID()
  }
}

const RECORD = Symbol('record')

type Recorded = ServerResponse & { [RECORD]?: RequestRecord }

/** Returns the record that `begin` has made for a response's request. */
export const recordOf = (res: Recorded): RequestRecord => res[RECORD] as RequestRecord

export type Telemetry = ReturnType<typeof createTelemetry>

/** The metrics of requests, where they are configured. */
export interface Metrics {
  /** Counts a call. */
  count(call: RequestRecord): void
  /** Counts a request by its duration. */
  time(request: RequestRecord): void
}

/** Returns the telemetry that logs to `log`, and counts in `metrics`. `trust` is that of X-Forwarded-For. */
export function createTelemetry(log: Logger, trust: Trust, metrics?: Metrics) {
  // The latest status of each path of health, which load balancers and supervisors ask every second.
  const health = new Map([
    ['/healthz', 200],
    ['/readyz', 200],
  ])
  const isWorthALine = ({ path = '', status }: RequestRecord) => {
    const before = health.get(path)
    if (before === undefined) return status >= 400 || !FILE_OF_DOCS.test(path)
    health.set(path, status)
    return status !== 200 || before !== 200
  }
  const write = (record: RequestRecord) => {
    metrics?.count(record)
    if (isWorthALine(record)) log.info(record, 'request')
  }
  /** The calls of a batch have one duration, and a line and a count each. */
  const finish = (record: RequestRecord, calls?: CallOutcome[]) => {
    metrics?.time(record)
    if (!calls) return write(record)
    for (const { operation, status } of calls) write(Object.assign(record, { operation, status }))
  }
  return {
    /**
     * Makes the record of a request, whose id is a valid `X-Request-Id` or random. Returns a function that
     * logs and counts the request when it is over. The line has no API key, no body and no query.
     */
    begin(req: IncomingMessage, res: Recorded): () => void {
      const start = performance.now()
      const record = new RequestRecord(requestIdOf(req))
      const { method, url = '' } = req // Express changes the URL
      record.method = method
      res[RECORD] = record
      const span = activeSpan()
      if (span) {
        const { traceId, spanId } = span.spanContext()
        Object.assign(record, { traceId, spanId })
        span.setAttribute(`${NAME}.request_id`, record.requestId)
        span.setAttribute('url.path', readablePath(url)) // it may have an API key by mistake
      }
      return () => {
        const { calls } = record
        record.calls = undefined
        record.duration = Math.round((performance.now() - start) * 10) / 10
        if (record.operation === undefined) record.path = readablePath(url)
        if (record.keyId === undefined) record.address = plain(ipAddressOf(req, trust))
        // A batch whose client closed the connection has one line: none of its calls was answered.
        if (!res.writableFinished) return finish(record)
        record.status = res.statusCode
        finish(record, calls)
      }
    },
    /** Logs and counts a request that the server rejects before the app; returns its new id. */
    onRefused(status: number, ipAddress: string | undefined): string {
      const record = new RequestRecord()
      finish(Object.assign(record, { status, address: plain(ipAddress) }))
      return record.requestId
    },
  }
}

/** A file that the docs page loads. */
const FILE_OF_DOCS = /^\/docs\/\w+\.(css|js|svg)$/

/** A valid `X-Request-Id`. */
export const REQUEST_ID = /^[A-Za-z0-9_.:/+=-]{1,128}$/

// An id that contains an API key is replaced: logs of other programs would keep it.
function requestIdOf({ headers }: IncomingMessage): string | undefined {
  const sent = headers['x-request-id'] as string | undefined // Node joins several with ", "
  return sent && REQUEST_ID.test(sent) && withoutKeys(sent) === sent ? sent : undefined
}

// RFC 4291, section 2.5.5.2: an IPv4 address may come mapped to IPv6.
const plain = (ipAddress: string | undefined) => ipAddress?.replace(/^::ffff:(?=\d+\.)/, '')

/**
 * Returns the path of a URL for the log: without API keys, and cut at the first percent-encoded character, or
 * one that no URI has (RFC 3986, section 3.3), because a key may hide behind it.
 */
function readablePath(url: string): string {
  const path = parseTarget(url)?.path ?? ''
  const [plain = ''] = /^[\w.~!$&'()*+,;=:@/-]*/.exec(path) ?? []
  const next = path.slice(plain.length, plain.length + 1)
  return withoutKeyAtEnd(plain) + next + (next && '…')
}
