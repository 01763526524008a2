/** The Express app: what is mounted where, and in which order. */
import { parse as parseQuery } from 'node:querystring'
import { TRPCError } from '@trpc/server'
import { getHTTPStatusCodeFromError } from '@trpc/server/http'
import express, { type Express, type RequestHandler, type Response } from 'express'
import type { Logger } from 'pino'
import type { Config } from './config.ts'
import { docsRouter } from './docs/mount.ts'
import { answerErrors, notFound } from './http/errors.ts'
import { apiHeaders, crossOrigin, noStore } from './http/headers.ts'
import { healthRouter } from './http/health.ts'
import { identify } from './http/identify.ts'
import { limitRate } from './http/rate-limit.ts'
import { requestIdOf, telemetry } from './http/telemetry.ts'
import type { Idempotency } from './idempotency/store.ts'
import type { Authenticator } from './keys/authenticator.ts'
import type { Observation } from './metrics.ts'
import type { PetStore } from './pets/store.ts'
import type { Readiness } from './readiness.ts'
import { restRouter } from './rest/mount.ts'
import { appRouter } from './router.ts'
import { trpcRouter } from './trpc/mount.ts'

/** What the app is made of; the database is migrated. */
export interface Parts {
  config: Pick<
    Config,
    'baseUrl' | 'stagingUrl' | 'corsOrigins' | 'rateLimit' | 'trustProxy' | 'databaseTimeout'
  >
  pets: PetStore
  idempotency: Idempotency
  authenticator: Authenticator
  readiness: Readiness
  log: Logger
  observe: (observation: Observation) => void
}

/** The service as an Express app that listens nowhere yet. */
export function createApp({
  config,
  pets,
  idempotency,
  authenticator,
  readiness,
  log,
  observe,
}: Parts): Express {
  const { corsOrigins, rateLimit, databaseTimeout: timeout } = config
  const guards = [
    noStore,
    identify({ pets, idempotency, authenticator }, timeout),
    ...(rateLimit === undefined ? [] : [limitRate(rateLimit)]),
  ]
  const onError = (error: TRPCError, res: Response) => {
    if (getHTTPStatusCodeFromError(error) < 500) return
    log.error({ requestId: requestIdOf(res), err: error.cause ?? error }, error.message)
  }

  const app = express()
  app.disable('x-powered-by').disable('etag')
  app.enable('case sensitive routing').enable('strict routing')
  // Node's parser, without its limit of keys: what came after would be ignored.
  app.set('query parser', (text: string) => parseQuery(text, '&', '=', { maxKeys: 0 }))
  app.set('trust proxy', config.trustProxy)
  app.use(telemetry(log, observe), closeWhenStopping(readiness), apiHeaders)
  app.use(healthRouter(readiness.isReady))
  if (corsOrigins.length > 0) app.use(crossOrigin(corsOrigins))
  app.use(requireHost)
  app.get(['/', '/docs'], (_req, res) => res.redirect('/docs/'))
  app.use('/docs/', docsRouter())
  app.use('/v1', restRouter(appRouter, config, guards, onError))
  app.use('/trpc', trpcRouter(appRouter, guards, onError))
  app.use(notFound, answerErrors(onError))
  return app
}

// Clients that keep connections are told to go elsewhere with their next request.
const closeWhenStopping =
  (readiness: Readiness): RequestHandler =>
  (_req, res, next) => {
    if (readiness.stopping) res.setHeader('Connection', 'close')
    next()
  }

// RFC 9112, section 3.2: one Host header, and one that names a host.
const requireHost: RequestHandler = (req, _res, next) => {
  const [host, second] = req.headersDistinct.host ?? []
  const isValid =
    host === undefined
      ? req.httpVersion === '1.0'
      : second === undefined && /^[^\s/?#@\\]+$/.test(host) && URL.canParse(`http://${host}`)
  if (isValid) return next()
  next(
    new TRPCError({ code: 'BAD_REQUEST', message: 'The request must have one valid Host header' }),
  )
}
