/** The log line and the metrics of each request, and what its span gains. */
import type { Logger } from 'pino'
import type { Trust } from '../config/config.ts'
import { NAME } from '../config/product.ts'
import { type RecordedResponse, RequestRecord } from '../http/record.ts'
import { ipAddressOf } from '../http/request.ts'
import type { Observer } from '../http/server.ts'
import { activeSpan } from './span.ts'

/** The metrics of requests, where they are configured. */
export interface Metrics {
  /** Counts a call. */
  count(call: RequestRecord): void
  /** Counts a request by its duration. */
  time(request: RequestRecord): void
}

/** Logs and counts the requests. The lines have no API key, no body and no query. */
export class Telemetry implements Observer {
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

  begin(record: RequestRecord): void {
    const span = activeSpan()
    if (!span) return
    const { traceId, spanId } = span.spanContext()
    Object.assign(record, { traceId, spanId })
    span.setAttribute(`${NAME}.request_id`, record.requestId)
    span.setAttribute('url.path', record.readablePath) // it may have an API key by mistake
  }

  end({ req, record, statusCode, writableFinished }: RecordedResponse): void {
    const outcomes = record.end(writableFinished ? statusCode : undefined)
    if ((record.keyId ?? record.holder) === undefined)
      record.address = plain(ipAddressOf(req, this.#trust))
    this.#metrics?.time(record)
    if (!outcomes) this.#write(record)
    // The calls of a batch have one duration, and a line and a count each, for which the record is changed.
    for (const outcome of outcomes ?? []) this.#write(Object.assign(record, outcome))
  }

  refuse(status: number, ipAddress: string | undefined, protocol?: string): string {
    const address = plain(ipAddress)
    const record = Object.assign(new RequestRecord(), { status, address, protocol })
    this.#metrics?.time(record)
    this.#write(record)
    return record.requestId
  }

  /** Counts a call, and logs it. */
  #write(record: RequestRecord): void {
    this.#metrics?.count(record)
    const { path, status } = record
    if (path === undefined || this.#isWorthALine(path, status)) this.#log.info(record, 'request')
  }

  /** Whether the log needs a line of a path that is no operation's. */
  #isWorthALine(path: string, status: number): boolean {
    const before = this.#health.get(path)
    if (before === undefined) return status >= 400 || !FILE_OF_DOCS.test(path)
    this.#health.set(path, status)
    return status !== 200 || before !== 200
  }
}

/** A file that the docs page loads. */
const FILE_OF_DOCS = /^\/docs\/\w+\.(css|js|svg)$/

// RFC 4291, section 2.5.5.2: an IPv4 address may come mapped to IPv6.
const plain = (ipAddress: string | undefined) => ipAddress?.replace(/^::ffff:(?=\d+\.)/, '')
