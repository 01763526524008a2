/** Whether the process lives, and whether it should be sent requests. No key is needed. */
import { TRPCError } from '@trpc/server'
import express, { type Router } from 'express'
import { sendJson } from './json.ts'

/** `/healthz` and `/readyz`. `isReady` must answer within a bound; false means 503. */
export function healthRouter(isReady: () => Promise<boolean>): Router {
  const health = express.Router({ caseSensitive: true, strict: true })
  health.get('/healthz', (_req, res) => sendJson(res, 200, '{"status":"ok"}'))
  health.get('/readyz', async (_req, res) => {
    if (await isReady()) return sendJson(res, 200, '{"status":"ready"}')
    throw new TRPCError({ code: 'SERVICE_UNAVAILABLE', message: 'The service is not ready' })
  })
  return health
}
