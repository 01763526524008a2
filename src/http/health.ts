/** Health checks, without an API key: liveness and readiness of the process. */
import express, { type Router } from 'express'
import { Problem } from '../errors/problem.ts'
import { jsonHeaders } from './headers.ts'
import { answer, getOnly } from './respond.ts'

const notReady = new Problem('SERVICE_UNAVAILABLE', 'The service is not ready')

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
    answer(res, notReady.status, jsonHeaders, JSON.stringify(notReady.body))
  })
  health.all(['/healthz', '/readyz'], getOnly)
  return health
}
