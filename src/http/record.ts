/** The record of a request: what the pipeline learns of it, for its log line and the metrics. */
import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Logger } from 'pino'
import type { Trust } from '../config/config.ts'
import { NAME } from '../config/product.ts'
import { withoutKeyAtEnd, withoutKeys } from '../keys/key.ts'
import { activeSpan } from '../observe/span.ts'
import { ipAddressOf, parseTarget } from './request.ts'

/** What became of a call of a batch, as the log and the metrics report it. */
export type CallOutcome = Pick<RequestRecord, 'operation' | 'status'>

/** The fields of the log line, in their order. The log leaves out those that are undefined. */
export class RequestRecord {
  /** The id in the log and in the response's `X-Request-Id`. */
  readonly requestId: string
  /** The ids of the span; undefined without OpenTelemetry. */
  traceId: string | undefined
  spanId: string | undefined
  surface: 'rest' | 'trpc' | 'other' = 'other'
  /** The name of the procedure, `batch` for several, `unknown` for none; undefined where no surface has the path. */
  operation: string | undefined
  readonly method: string | undefined
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
  /** Those of the calls of a batch. The log has a line for each. */
  outcomes: CallOutcome[] | undefined
  // Private: the log writes all other fields. Express changes the URL of the request.
  readonly #url: string
  readonly #start = performance.now()

  constructor(requestId = randomUUID() as string, method?: string, url = '') {
    this.requestId = requestId
    this.method = method
    this.#url = url
  }

  /** The path of the request, as the log may contain it. */
  get readablePath(): string {
    return readablePath(this.#url)
  }

  /** Notes how long the request has taken. */
  stop(): void {
    this.duration = Math.round((performance.now() - this.#start) * 10) / 10
  }
}

const RECORD = Symbol('record')

type Recorded = ServerResponse & { [RECORD]?: RequestRecord }

/** Returns the record that `Telemetry` has made for a response's request. */
export const recordOf = (res: Recorded): RequestRecord => res[RECORD] as RequestRecord

/** The metrics of requests, where they are configured. */
export interface Metrics {
  /** Counts a call. */
  count(call: RequestRecord): void
  /** Counts a request by its duration. */
  time(request: RequestRecord): void
}

/** Logs and counts the requests. The lines have no API key, no body and no query. */
export class Telemetry {
  readonly #log: Logger
  readonly #trust: Trust
  readonly #metrics: Metrics | undefined
  /** The latest status of each path of health, which load balancers and supervisors ask every second. */
  readonly #health = new Map([
    ['/healthz', 200],
    ['/readyz', 200],
  ])

  /** `trust` is that of X-Forwarded-For. */
  constructor(log: Logger, trust: Trust, metrics?: Metrics) {
    this.#log = log
    this.#trust = trust
    this.#metrics = metrics
  }

  /** Makes the record of a request, whose id is a valid `X-Request-Id` or random. */
  begin(req: IncomingMessage, res: Recorded): void {
    const record = new RequestRecord(requestIdOf(req), req.method, req.url)
    res[RECORD] = record
    const span = activeSpan()
    if (!span) return
    const { traceId, spanId } = span.spanContext()
    Object.assign(record, { traceId, spanId })
    span.setAttribute(`${NAME}.request_id`, record.requestId)
    span.setAttribute('url.path', record.readablePath) // it may have an API key by mistake
  }

  /** Logs and counts a request that is over: its answer was sent, or the client has closed the connection. */
  end(res: Recorded): void {
    const record = recordOf(res)
    const { outcomes } = record
    record.outcomes = undefined
    record.stop()
    if (record.operation === undefined) record.path = record.readablePath
    if (record.keyId === undefined) record.address = plain(ipAddressOf(res.req, this.#trust))
    // A batch whose client closed the connection has one line: none of its calls was answered.
    if (res.writableFinished) record.status = res.statusCode
    this.#report(record, res.writableFinished ? outcomes : undefined)
  }

  /** Logs and counts a request that the server rejects before the app; returns its new id. */
  refuse(status: number, ipAddress: string | undefined): string {
    const record = new RequestRecord()
    this.#report(Object.assign(record, { status, address: plain(ipAddress) }))
    return record.requestId
  }

  /** The calls of a batch have one duration, and a line and a count each, for which the record is changed. */
  #report(record: RequestRecord, outcomes?: CallOutcome[]): void {
    this.#metrics?.time(record)
    if (!outcomes) this.#count(record)
    for (const { operation, status } of outcomes ?? []) {
      this.#count(Object.assign(record, { operation, status }))
    }
  }

  #count(record: RequestRecord): void {
    this.#metrics?.count(record)
    if (this.#isWorthALine(record)) this.#log.info(record, 'request')
  }

  #isWorthALine({ path = '', status }: RequestRecord): boolean {
    const before = this.#health.get(path)
    if (before === undefined) return status >= 400 || !FILE_OF_DOCS.test(path)
    this.#health.set(path, status)
    return status !== 200 || before !== 200
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
