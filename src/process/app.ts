/** The Express app and its server: the routes, in their order. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import express, {
  type ErrorRequestHandler,
  type Request,
  type RequestHandler,
  type Response,
} from 'express'
import { dedupe } from '../../db/dedupe.ts'
import type { Config } from '../config/config.ts'
import { problem, toProblem } from '../errors/catalogue.ts'
import {
  crossOrigin,
  forAnyPage,
  jsonHeaders,
  pageHeaders,
  publicHeaders,
} from '../http/headers.ts'
import { healthRouter } from '../http/health.ts'
import { checkHost, parseTarget } from '../http/request.ts'
import type { Telemetry } from '../http/request-log.ts'
import { recordOf } from '../http/request-log.ts'
import { answer, getOnly } from '../http/respond.ts'
import { type ClientTimeouts, createHttpServer } from '../http/server.ts'
import type { Resources } from '../procedure/resources.ts'
import { pipeline, type Service } from '../surface/pipeline.ts'
import { operationsOf } from '../surface/rest/operations.ts'
import { restSurface } from '../surface/rest/surface.ts'
import { trpcSurface } from '../surface/trpc/surface.ts'
import type { Readiness } from './readiness.ts'

/** The parts of the app. */
interface Parts {
  config: Config
  resources: Resources
  service: Service
  telemetry: Telemetry
  readiness: Readiness
  clientTimeouts: ClientTimeouts | undefined
}

/** Returns a server that does not listen yet. Throws TypeError for an incomplete description. */
export function createApp(parts: Parts) {
  const { config, resources, service, telemetry, readiness, clientTimeouts } = parts
  const { router } = resources
  const operations = operationsOf(router)
  // Made at the first request: most processes serve neither, and their modules are a tenth of the memory.
  const document = kept(async () => {
    const { openApiDocument } = await import('../surface/rest/openapi/document.ts')
    return openApiDocument(resources, operations, config)
  })
  const docs = kept(async () => {
    const { docsRouter } = await import('../surface/docs.ts')
    return docsRouter(await document())
  })
  const methods = [...new Set(['GET', 'HEAD', 'POST', ...operations.map(({ method }) => method)])]

  const app = express()
  app.disable('x-powered-by').disable('etag')
  app.enable('case sensitive routing').enable('strict routing')
  // Before the check of Host, which health checkers often omit.
  app.use(healthRouter(readiness.isReady))
  app.use(requireHost)
  app.get('/v1/openapi.json', async (_req, res) =>
    answer(res, 200, [...publicHeaders, ...forAnyPage], await document()),
  )
  app.get(['/', '/docs'], (_req, res) => answer(res, 302, TO_DOCS, ''))
  app.all(['/v1/openapi.json', '/', '/docs'], getOnly)
  app.use('/docs/', async (req, res, next) => (await docs())(req, res, next))
  app.use(refuseAll, answerError(service.report))

  const rest = pipeline(restSurface(operations, config.baseUrl), service)
  const trpc = pipeline(trpcSurface(router), service)
  const allowOrigins =
    config.corsOrigins.length > 0 ? crossOrigin(config.corsOrigins, methods) : undefined
  const begin = (req: IncomingMessage, res: ServerResponse) => {
    // `Connection: close` sends the next request of this client to another instance.
    if (readiness.stopping) res.shouldKeepAlive = false
    return telemetry.begin(req, res)
  }
  const serve = (req: IncomingMessage, res: ServerResponse) => {
    const target = parseTarget(req.url ?? '')
    if (!target) {
      return answer(res, BAD_URL.status, jsonHeaders, JSON.stringify(BAD_URL.refusal))
    }
    // Express takes what Node made, and gives it prototypes of its own: 5 µs, so the surfaces come first.
    const route = () =>
      rest(req, res, target) || trpc(req, res, target) || app(req as Request, res as Response)
    if (allowOrigins) allowOrigins(req as Request, res as Response, route)
    else route()
  }
  return createHttpServer(
    { begin, serve, onRefused: telemetry.onRefused },
    { headers: 10_000, request: 30_000, keepAlive: config.keepAliveTimeout, ...clientTimeouts },
  )
}

const BAD_URL = problem('invalidUrl')

/** Returns a function that makes a value at its first call, and again after a failure. */
const kept = <Made>(make: () => Promise<Made>) => dedupe<void, Made>(make, { keep: true })

// Relative, because a proxy may have removed the beginning of the path.
const TO_DOCS = [...pageHeaders, 'Location', 'docs/']

const requireHost: RequestHandler = (req, _res, next) => {
  checkHost(req)
  next()
}

const refuseAll: RequestHandler = () => {
  throw problem('nothingHere')
}

const answerError =
  (report: Service['report']): ErrorRequestHandler =>
  (thrown, _req, res, next) => {
    const error = toProblem(thrown)
    report(error, recordOf(res))
    if (res.headersSent) return next(thrown) // Express closes the connection
    const body = JSON.stringify(error.body)
    answer(res, error.status, [...jsonHeaders, ...error.headers], body)
  }
