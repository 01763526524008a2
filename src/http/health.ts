/** Whether the process lives, and whether it should be sent requests. No key is needed. */
import express, { type Router } from 'express'
import type { ApiError } from '../errors/problem.ts'
import { jsonHeaders } from './headers.ts'
import { answer, notAllowed } from './respond.ts'

const notReady: ApiError = {
  code: 'SERVICE_UNAVAILABLE',
  message: 'The service is not ready',
  status: 503,
}

/** `/healthz` and `/readyz`. `isReady` must answer within a bound; false means 503. */
export function healthRouter(isReady: () => Promise<boolean>): Router {
  const health = express.Router({ caseSensitive: true, strict: true })
  health.get('/healthz', (_req, res) => answer(res, 200, jsonHeaders, '{"status":"ok"}'))
  health.get('/readyz', async (_req, res) => {
    if (await isReady()) return answer(res, 200, jsonHeaders, '{"status":"ready"}')
    // An answer, not an error: those who ask, ask every second, and the log is for what is wrong.
    answer(res, notReady.status, jsonHeaders, JSON.stringify(notReady))
  })
  health.all(['/healthz', '/readyz'], notAllowed(['GET']))
  return health
}
