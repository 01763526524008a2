/** What is known of a request when it is over: one log line, and what the metrics count. */
import { randomUUID } from 'node:crypto'
import type { RequestHandler, Response } from 'express'
import type { Logger } from 'pino'
import { withoutKeys } from '../keys/format.ts'
import type { Observation } from '../metrics.ts'
import { contextOf } from './identify.ts'

/** Tells the log, and `observe`, of this request that a procedure serves it. */
export function setOperation(res: Response, surface: 'rest' | 'trpc', operation: string): void {
  Object.assign(res.locals, { surface, operation })
}

/** The id of this request, as it was answered in X-Request-Id. */
export const requestIdOf = (res: Response): string => res.locals.requestId

/**
 * Gives each request an id (that of `X-Request-Id`, when it is sane), answers it in the same
 * header, and logs one line when the request is over. Neither keys nor bodies nor queries are in it.
 */
export function telemetry(
  log: Logger,
  observe: (observation: Observation) => void,
): RequestHandler {
  return (req, res, next) => {
    const start = performance.now()
    const given = req.get('x-request-id')
    // One with a key in it is not taken either: neither the log nor an answer may show it.
    const isSane =
      given !== undefined && /^[\w.:/+=-]{1,128}$/.test(given) && withoutKeys(given) === given
    const requestId = isSane ? given : randomUUID()
    res.locals.requestId = requestId
    res.setHeader('X-Request-Id', requestId)
    const { method } = req
    const path = withoutKeys(req.path)
    res.once('close', () => {
      const { surface = 'other', operation } = res.locals
      const status = res.writableFinished ? res.statusCode : 499
      const duration = Math.round((performance.now() - start) * 10) / 10
      observe({ surface, operation, status, duration })
      const keyId = contextOf(res)?.caller?.keyId.toString()
      const route = operation === undefined ? { method, path } : { method }
      log.info({ requestId, surface, operation, ...route, status, duration, keyId }, 'request')
    })
    next()
  }
}
