/** Health checks, without an API key: liveness and readiness of the process. */
import express, { type Router } from 'express'
import type { ApiError } from '../errors/problem.ts'
import { jsonHeaders } from './headers.ts'
import { answer, notAllowed } from './respond.ts'

const notReady: ApiError = {
  code: 'SERVICE_UNAVAILABLE',
  message: 'The service is not ready',
  status: 503,
}

/**
 * Returns the Express router of `/healthz` (always 200) and `/readyz` (200, or 503 where `isReady`
 * resolves to false). `isReady` needs a timeout of its own.
 */
export function healthRouter(isReady: () => Promise<boolean>): Router {
  const health = express.Router({ caseSensitive: true, strict: true })
  health.get('/healthz', (_req, res) => answer(res, 200, jsonHeaders, '{"status":"ok"}'))
  health.get('/readyz', async (_req, res) => {
    if (await isReady()) return answer(res, 200, jsonHeaders, '{"status":"ready"}')
    // A thrown error would be logged, and health checks come every second.
    answer(res, notReady.status, jsonHeaders, JSON.stringify(notReady))
  })
  health.all(['/healthz', '/readyz'], notAllowed(['GET']))
  return health
}
