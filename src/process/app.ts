/** What answers requests, in order: CORS, the surfaces, and Express for health, the document and the docs page. */
import type { IncomingMessage } from 'node:http'
import type { AnyTRPCRouter } from '@trpc/server'
import express, {
  type ErrorRequestHandler,
  type Request,
  type RequestHandler,
  type Response,
  type Router,
} from 'express'
import type { Config } from '../config/config.ts'
import { Problem, problem, toProblem } from '../errors/problem.ts'
import { crossOrigin, jsonHeaders, pageHeaders } from '../http/headers.ts'
import type { RecordedResponse } from '../http/record.ts'
import { checkHost } from '../http/request.ts'
import { getOnly, send } from '../http/respond.ts'
import { HttpServer, type Observer } from '../http/server.ts'
import type { Log } from '../observe/log.ts'
import { isCookie } from '../procedure/authentication.ts'
import { operationsOf } from '../procedure/definitions.ts'
import { docsRouter, documentSender } from '../surface/docs.ts'
import { type Service, serve } from '../surface/pipeline.ts'
import { differencesOf, documentOf } from '../surface/rest/openapi/published.ts'
import { routesOf } from '../surface/rest/routes.ts'
import { restSurface } from '../surface/rest/surface.ts'
import { trpcSurface } from '../surface/trpc/surface.ts'
import type { Readiness } from './readiness.ts'

/** The operations that are served, and their published document, as JSON. */
export interface Api {
  router: AnyTRPCRouter
  document: string
}

/** Returns a server that does not listen yet. Throws TypeError for an incomplete description. */
export function createApp(
  config: Config,
  { router, document: published }: Api,
  service: Service,
  observer: Observer,
  readiness: Readiness,
  log: Log,
): HttpServer {
  const operations = operationsOf(router)
  const routes = routesOf(operations, config.baseUrl)
  const document = documentOf(published, config)
  const differences = [...differencesOf(document, routes)].join(', ')
  if (differences) log.warn(`openapi.json is out of date: run npm run openapi, for ${differences}`)
  const surfaces = [restSurface(routes), trpcSurface(router, operations)]
  const methods = [...new Set(['GET', 'HEAD', 'POST', ...routes.map(({ method }) => method)])]
  const headers = [
    ...new Set(operations.flatMap(({ access }) => Object.keys(access.headers ?? {}))),
  ]
  const hasCookie = service.authentication !== undefined && isCookie(service.authentication)
  const allowOrigins =
    config.corsOrigins.length > 0
      ? crossOrigin(config.corsOrigins, methods, headers, hasCookie)
      : undefined
  function onRequest(req: IncomingMessage, res: RecordedResponse) {
    // `Connection: close` sends the next request of this client to another instance.
    if (readiness.stopping) res.shouldKeepAlive = false
    if (!allowOrigins) return route(req, res)
    let calls = 1
    allowOrigins(req as Request, res as Response, () => {
      calls = route(req, res)
    })
    return calls
  }
  // Express takes what Node made, and gives it prototypes of its own: 5 µs, so the surfaces come first.
  function route(req: IncomingMessage, res: RecordedResponse) {
    const calls = serve(service, res, surfaces)
    if (calls === undefined) app(req as Request, res as Response)
    return calls ?? 1
  }
  const app = appOf(service, JSON.stringify(document), readiness)
  return new HttpServer(onRequest, observer, config.keepAliveTimeout)
}

/** Returns Express for health, the document, the docs page, and 404 for all else. */
function appOf(service: Service, document: string, readiness: Readiness) {
  // Made at the first request: most processes never serve them.
  let sendDocument: RequestHandler | undefined
  let page: Router | undefined

  const app = express()
  app.disable('x-powered-by').enable('case sensitive routing').enable('strict routing')
  // Before the check of Host, which health checkers often omit.
  app.get('/healthz', (_req, res) => send(res, 200, jsonHeaders, '{"status":"ok"}'))
  app.get('/readyz', async (_req, res) => {
    if (await readiness.isReady()) return send(res, 200, jsonHeaders, '{"status":"ready"}')
    // A thrown error would be logged each time.
    send(res, NOT_READY.status, jsonHeaders, JSON.stringify(NOT_READY.body))
  })
  app.all(['/healthz', '/readyz'], getOnly)
  app.use((req, _res, next) => {
    checkHost(req)
    next()
  })
  app.get('/v1/openapi.json', (req, res, next) => {
    sendDocument ??= documentSender(document)
    sendDocument(req, res, next)
  })
  app.get(['/', '/docs'], (_req, res) => send(res, 302, TO_DOCS, ''))
  app.all(['/v1/openapi.json', '/', '/docs'], getOnly)
  app.use('/docs/', (req, res, next) => {
    page ??= docsRouter(document)
    page(req, res, next)
  })
  app.use(() => {
    throw problem('nothingHere')
  })
  const onError: ErrorRequestHandler = (thrown, _req, res, next) => {
    const error = toProblem(thrown)
    service.report(error, res.record)
    if (res.headersSent) return next(thrown) // Express closes the connection
    send(res, error.status, [...jsonHeaders, ...error.headers], JSON.stringify(error.body))
  }
  app.use(onError)
  return app
}

const NOT_READY = new Problem('SERVICE_UNAVAILABLE', 'The service is not ready')

// Relative, because a proxy may have removed the beginning of the path.
const TO_DOCS = [...pageHeaders, 'Location', 'docs/']
