/** Whether the process lives, and whether it should be sent requests. No key is needed. */
import express, { type Router } from 'express'
import type { ApiError } from '../errors.ts'
import { sendJson } from './json.ts'

const notReady: ApiError = {
  code: 'SERVICE_UNAVAILABLE',
  message: 'The service is not ready',
  status: 503,
}

/** `/healthz` and `/readyz`. `isReady` must answer within a bound; false means 503. */
export function healthRouter(isReady: () => Promise<boolean>): Router {
  const health = express.Router({ caseSensitive: true, strict: true })
  health.get('/healthz', (_req, res) => sendJson(res, 200, '{"status":"ok"}'))
  health.get('/readyz', async (_req, res) => {
    if (await isReady()) return sendJson(res, 200, '{"status":"ready"}')
    // An answer, not an error: those who ask, ask every second, and the log is for what is wrong.
    sendJson(res, notReady.status, JSON.stringify(notReady))
  })
  return health
}
