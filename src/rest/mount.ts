/** REST: the operations of the router as an Express router, to be mounted at `/v1`. */
import type { TRPCError } from '@trpc/server'
import express, { type RequestHandler, type Response, type Router } from 'express'
import { requireCaller } from '../context.ts'
import { answer } from '../http/answer.ts'
import { readBody } from '../http/body.ts'
import { jsonHeaders } from '../http/headers.ts'
import { contextOf } from '../http/identify.ts'
import { notAllowed } from '../http/methods.ts'
import { setOperation } from '../http/telemetry.ts'
import type { AppRouter } from '../router.ts'
import { createAdapter } from './adapter.ts'
import { openApiDocument, type Servers } from './document.ts'
import { deprecationHeaders } from './headers.ts'
import { inputReader } from './input.ts'
import { hasBody, operationsOf } from './operations.ts'

/**
 * The Express router of REST. `guards` give a request its context or refuse it. The errors of the
 * procedures are answered and told to `onError`; all others are passed on.
 */
export function restRouter(
  router: AppRouter,
  servers: Servers,
  guards: RequestHandler[],
  onError: (error: TRPCError, res: Response) => void,
): Router {
  const { baseUrl } = servers
  const operations = operationsOf(router)
  const document = openApiDocument(router, servers)
  const make = createAdapter(router, operations, baseUrl, onError)
  const rest = express.Router({ caseSensitive: true, strict: true })

  rest.use(keepUndecodable)
  for (const operation of operations) {
    const route = rest.route(expressPath(operation.path))
    const read = inputReader(operation, document)
    const deprecation = deprecationHeaders(operation, baseUrl)
    const announce: RequestHandler = (_req, res, next) => {
      setOperation(res, 'rest', operation.name)
      res.set(deprecation)
      next()
    }
    const call: RequestHandler = (req, res) =>
      make(req, res, { operation, input: read(req), context: contextOf(res) })
    // Express serves HEAD where GET is.
    const method = operation.method.toLowerCase() as 'get'
    route[method](announce, ...guards, requireKey, ...(hasBody(operation) ? [readText] : []), call)
  }

  const body = JSON.stringify(document)
  rest.get('/openapi.json', (_req, res) => answer(res, 200, jsonHeaders, body))

  const served = Map.groupBy(
    [{ method: 'GET', path: '/openapi.json' }, ...operations],
    ({ path }) => path,
  )
  for (const [path, routes] of served) {
    rest.all(expressPath(path), notAllowed(routes.map(({ method }) => method)))
  }
  return rest
}

// Express refuses escapes that are not UTF-8 while it looks for the route: before the key, and
// without the headers of the operation. Escaped once more they reach the schema, which refuses them.
const keepUndecodable: RequestHandler = (req, _res, next) => {
  try {
    decodeURIComponent(req.path)
  } catch {
    req.url = req.url.replaceAll('%', '%25')
  }
  next()
}

const readText: RequestHandler = async (req, res, next) => {
  req.body = await readBody(req, res)
  next()
}

const requireKey: RequestHandler = (_req, res, next) => {
  requireCaller(contextOf(res))
  next()
}

const expressPath = (path: string) => path.replaceAll(/\{(.+?)\}/g, ':$1')
