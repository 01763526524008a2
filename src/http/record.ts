/** The record of a request: what the server and the pipeline learn of it, for its log line and the metrics. */
import { randomUUID } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { withoutKeyAtEnd, withoutKeys } from '../keys/key.ts'
import { parseTarget } from './request.ts'

// Not by an `import`, as in server.ts.
const { ServerResponse } = process.getBuiltinModule('node:http')

/** What became of a call, as the log and the metrics report it. */
export type CallOutcome = Pick<RequestRecord, 'operation' | 'status'>

/**
 * The fields of the log line, in their order, each with what sets it, unless that is the server. The log leaves out those
 * that are undefined.
 */
export class RequestRecord {
  /** The id in the log and in the response's `X-Request-Id`. */
  readonly requestId: string
  /** The ids of the span, by the telemetry; undefined without OpenTelemetry. */
  traceId: string | undefined
  spanId: string | undefined
  /** By the pipeline. */
  surface: 'rest' | 'trpc' | 'other' = 'other'
  /** The name of the procedure, by the pipeline: `batch` for several, `unknown` for none; undefined where no surface has the path. */
  operation: string | undefined
  readonly method: string | undefined
  /** By `end`, for a request without an operation. */
  path: string | undefined
  /** The HTTP status, by `end`; 499 if the client closed the connection before the answer. */
  status = 499
  /** Milliseconds, by `end`. */
  duration = 0
  /** By surface/caller.ts: undefined until an API key has been found valid. */
  keyId: string | undefined
  /** By surface/caller.ts: undefined until an authenticator of the product has named the caller. */
  holder: string | undefined
  /** By the telemetry, for a caller without a name. */
  address: string | undefined
  /** The part of an invalid API key that the log may contain, by surface/caller.ts. */
  keyPrefix: string | undefined
  /** What the client spoke in place of HTTP/1.1, where that is known, by the telemetry. */
  protocol: string | undefined
  // Private: the log writes all other fields. Express changes the URL of the request.
  readonly #url: string
  readonly #start = performance.now()
  /** Those of the calls of tRPC. The record itself says what became of one of REST. */
  #outcomes: readonly CallOutcome[] | undefined

  constructor(requestId = randomUUID() as string, method?: string, url = '') {
    this.requestId = requestId
    this.method = method
    this.#url = url
  }

  /** The path of the request, as the log may contain it. */
  get readablePath(): string {
    return readablePath(this.#url)
  }

  /** Notes what became of the calls of tRPC, which are several in a batch. */
  noteOutcomes(outcomes: readonly CallOutcome[]): void {
    this.#outcomes = outcomes
  }

  /**
   * Notes the end of the request: `status` is that of its answer, undefined if that was not sent. Returns the
   * outcomes of its calls, where they were noted.
   */
  end(status: number | undefined): readonly CallOutcome[] | undefined {
    this.duration = Math.round((performance.now() - this.#start) * 10) / 10
    if (this.operation === undefined) this.path = this.readablePath
    // A batch whose client closed the connection has one line: none of its calls was answered.
    if (status === undefined) return undefined
    this.status = status
    return this.#outcomes
  }
}

/** The response to a request, with its record. Express replaces the prototype of responses: it has no methods of its own. */
export class RecordedResponse extends ServerResponse {
  readonly record = new RequestRecord(requestIdOf(this.req), this.req.method, this.req.url)
}

declare global {
  namespace Express {
    interface Response extends Pick<RecordedResponse, 'record'> {}
  }
}

/** A valid `X-Request-Id`. */
export const REQUEST_ID = /^[A-Za-z0-9_.:/+=-]{1,128}$/

// A random one replaces an id that contains an API key: logs of other programs would keep it.
function requestIdOf({ headers }: IncomingMessage): string | undefined {
  const sent = headers['x-request-id'] as string | undefined // Node joins several with ", "
  return sent && REQUEST_ID.test(sent) && withoutKeys(sent) === sent ? sent : undefined
}

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
