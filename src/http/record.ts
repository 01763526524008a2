/** The record of a request: all that is known of it, from its arrival to its line in the log. */
import { randomUUID } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import type { Auth } from '../keys/auth.ts'
import type { CallTrace, TraceIds } from '../observe/tracing.ts'

/** One call of several that came with one request: its operation, its status, and its span. */
export type Call = [operation: string, status: number, ids?: TraceIds | undefined]

export interface RequestRecord {
  /** The id that the log has, and that X-Request-Id answers. */
  requestId: string
  surface: 'rest' | 'trpc' | 'other'
  /** The name of the procedure, or `batch`; undefined where no procedure is called. */
  operation: string | undefined
  /** The calls of a batch, each of which is logged and counted. */
  calls: Call[] | undefined
  /** Undefined before the key was looked at. */
  auth: Auth | undefined
  /** How a key begins that is not valid, as the log may show it. */
  keyPrefix: string | undefined
  /** The span of the request; undefined where it is not traced. */
  trace: CallTrace | undefined
  /** Whether it asks for a part of a page, which is logged when it fails and else at debug. */
  isPart: boolean
  /** Headers that every answer to this request has, names and values in turn. */
  headers: string[]
}

const RECORD = Symbol('record')

/** The record of the request that is answered here; a new one where it has none. */
export function recordOf(res: ServerResponse & { [RECORD]?: RequestRecord }): RequestRecord {
  res[RECORD] ??= {
    requestId: randomUUID(),
    surface: 'other',
    operation: undefined,
    calls: undefined,
    auth: undefined,
    keyPrefix: undefined,
    trace: undefined,
    isPart: false,
    headers: [],
  }
  return res[RECORD]
}
