/** What is known of a request when it is over: one log line, and what the metrics count. */
import { randomUUID } from 'node:crypto'
import type { Request, Response } from 'express'
import type { Logger } from 'pino'
import { withoutKeys } from '../keys/format.ts'
import type { Observation } from '../observe/metrics.ts'
import type { TraceIds } from '../observe/tracing.ts'
import { type RequestRecord, recordOf } from './record.ts'
import { addressOf, parseTarget } from './request.ts'

/** The status that is logged for a request whose client went before it was answered. */
const GONE = 499

export interface Telemetry {
  /**
   * Gives each request an id (that of `X-Request-Id`, when it is sane) and logs one line when the
   * request is over: at debug for a part of a page that was served. Neither keys nor bodies nor queries are
   * in it.
   */
  begin(req: Request, res: Response): void
  /** Logs and counts a request that was refused before anything could handle it; returns its id. */
  onRefused(refusal: { status: number; address: string | undefined }): string
}

export function createTelemetry(
  log: Logger,
  observe: (observation: Observation) => void,
): Telemetry {
  return {
    begin(req, res) {
      const start = performance.now()
      const record = recordOf(res)
      const sent = requestIdFrom(req.headers['x-request-id'])
      if (sent !== undefined) record.requestId = sent
      const { method, url } = req
      res.on('close', () => {
        const { surface, requestId, auth, keyPrefix, trace } = record
        const answered = res.writableFinished ? res.statusCode : undefined
        const duration = Math.round((performance.now() - start) * 10) / 10
        trace?.end(answered ?? GONE)
        for (const [operation, status = GONE, ids = trace?.ids] of callsOf(record, answered)) {
          observe({ surface, operation, status, duration })
          const path = operation === undefined ? readablePath(url) : undefined
          const caller =
            auth?.kind === 'caller'
              ? { keyId: auth.keyId.toString() }
              : { address: plain(addressOf(req)), keyPrefix }
          const isQuiet = record.isPart && (status === 200 || status === 304)
          log[isQuiet ? 'debug' : 'info'](
            { requestId, ...ids, surface, operation, method, path, status, duration, ...caller },
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

// An id that holds an API key is replaced as a whole, because others will read it.
function requestIdFrom(sent: string | string[] | undefined): string | undefined {
  const isSane = typeof sent === 'string' && REQUEST_ID.test(sent)
  return isSane && withoutKeys(sent) === sent ? sent : undefined
}

// Of an IPv4 address in IPv6's form the former (RFC 4291, section 2.5.5.2).
const plain = (address: string | undefined) => address?.replace(/^::ffff:(?=\d+\.)/, '')

// A client that has gone has got none of the answers of its calls.
function callsOf(
  { calls, operation }: RequestRecord,
  answered: number | undefined,
): [operation: string | undefined, status: number | undefined, ids?: TraceIds | undefined][] {
  return calls && answered !== undefined ? calls : [[operation, answered]]
}

/** How often a path may have been percent-encoded for an API key in it to be found. */
const MAX_ESCAPES = 5

/** The path of a URL for the log: without its query, and without API keys, encoded ones included. */
export function readablePath(url: string): string {
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
