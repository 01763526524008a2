/** The Express app: what is mounted where, and in which order. */
import { parse as parseQuery } from 'node:querystring'
import { TRPCError } from '@trpc/server'
import { getHTTPStatusCodeFromError } from '@trpc/server/http'
import express, { type Express, type RequestHandler, type Response } from 'express'
import type { Logger } from 'pino'
import type { Config } from './config.ts'
import { docsRouter } from './docs/mount.ts'
import type { ApiError } from './errors.ts'
import { answerErrors, notFound } from './http/errors.ts'
import { apiHeaders, crossOrigin, noStore, setHeaders } from './http/headers.ts'
import { healthRouter } from './http/health.ts'
import { identify } from './http/identify.ts'
import { createRateLimit } from './http/rate-limit.ts'
import { requestIdOf, type Telemetry } from './http/telemetry.ts'
import type { Authenticator } from './keys/authenticator.ts'
import type { PetStore } from './pets/schema.ts'
import type { Readiness } from './readiness.ts'
import { restRouter } from './rest/mount.ts'
import { appRouter } from './router.ts'
import { envelope } from './trpc/envelope.ts'
import { callsOf, trpcRouter } from './trpc/mount.ts'

/** What the app is made of; the database is migrated. */
export interface Parts {
  config: Pick<
    Config,
    'baseUrl' | 'stagingUrl' | 'corsOrigins' | 'rateLimit' | 'trustProxy' | 'databaseTimeout'
  >
  pets: PetStore
  authenticator: Authenticator
  readiness: Readiness
  log: Logger
  telemetry: Telemetry
}

/** The service as an Express app that listens nowhere yet. */
export function createApp({
  config,
  pets,
  authenticator,
  readiness,
  log,
  telemetry,
}: Parts): Express {
  const { corsOrigins, rateLimit, databaseTimeout: timeout } = config
  const { known, authenticate } = authenticator
  const resources = { pets, timeout, known, authenticate }
  const limit = rateLimit === undefined ? undefined : createRateLimit(rateLimit)
  const restGuards = [noStore, identify(resources, limit)]
  const trpcGuards = [noStore, identify(resources, limit, callsOf)]
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
  app.use(telemetry.handle, closeWhenStopping(readiness), setHeaders(apiHeaders))
  app.use(healthRouter(readiness.isReady))
  if (corsOrigins.length > 0) app.use(crossOrigin(corsOrigins, ['GET', 'HEAD', 'POST']))
  app.use(requireHost)
  app.get(['/', '/docs'], (_req, res) => res.redirect('/docs/'))
  app.use('/docs/', docsRouter())
  app.use('/v1', restRouter(appRouter, config, restGuards, onError))
  app.use('/trpc', trpcRouter(appRouter, trpcGuards, onError))
  app.use(notFound, answerErrors(errorText, onError))
  return app
}

/** The body of an error for a request target: tRPC's envelope below `/trpc`, else the Error body. */
export function errorText(target: string | undefined, error: ApiError): string {
  const isTrpc = /^(https?:\/\/[^/]*)?\/trpc([/?]|$)/.test(target ?? '')
  return isTrpc ? envelope(error) : JSON.stringify(error)
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
