/** The record of a request: what the pipeline learns of it, for the response, log and metrics. */
import { randomUUID } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import type { Auth } from '../keys/key.ts'
import { activeSpan } from '../observe/span.ts'

/** A call, as the log and the metrics report it. */
export type CallOutcome = [operation: string | undefined, status: number]

export class RequestRecord {
  /** The id in the log and in the response's `X-Request-Id`. */
  requestId: string = randomUUID()
  surface: 'rest' | 'trpc' | 'other' = 'other'
  /** The name of the procedure, or `batch`; undefined if the request calls no procedure. */
  operation: string | undefined
  /** The calls of a batch. The log has a line for each. */
  calls: CallOutcome[] | undefined
  /** Undefined until the API key has been checked. */
  auth: Auth | undefined
  /** The part of an invalid API key that the log may contain. */
  keyPrefix: string | undefined
  /** The span of the request; undefined without OpenTelemetry. */
  readonly span = activeSpan()
  /** Whether the request is for a file of the docs page. A success is logged at debug. */
  isDocsFile = false
  /** Headers of any response to this request: names and values in turn. */
  headers: readonly string[] = []
}

const RECORD = Symbol('record')

/** Returns the record of a response's request, and creates it on the first call. */
export function recordOf(res: ServerResponse & { [RECORD]?: RequestRecord }): RequestRecord {
  res[RECORD] ??= new RequestRecord()
  return res[RECORD]
}
