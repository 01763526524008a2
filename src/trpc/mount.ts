/** tRPC over HTTP: the router as an Express router, to be mounted at `/trpc`. */
import { TRPCError } from '@trpc/server'
import { createExpressMiddleware } from '@trpc/server/adapters/express'
import express, { type RequestHandler, type Response, type Router } from 'express'
import { errorHeaders, toTRPCError } from '../errors.ts'
import { readBody } from '../http/body.ts'
import { contextOf } from '../http/identify.ts'
import { setOperation } from '../http/telemetry.ts'
import { MAX_BATCH } from '../limits.ts'
import type { AppRouter } from '../router.ts'

/**
 * The Express router of tRPC. `guards` give a request its context or refuse it. The errors of the
 * procedures are answered and told to `onError`; all others are passed on.
 */
export function trpcRouter(
  router: AppRouter,
  guards: RequestHandler[],
  onError: (error: TRPCError, res: Response) => void,
): Router {
  const names = new Set(Object.keys(router._def.procedures))
  const nameCall: RequestHandler = (req, res, next) => {
    const called = req.path.slice(1)
    if (names.has(called)) setOperation(res, 'trpc', called)
    else setOperation(res, 'trpc', called.includes(',') ? 'batch' : 'unknown')
    next()
  }

  // The key is checked before the body is read: without one the body counts as empty.
  const readKeyedBody: RequestHandler = (req, res, next) => {
    if (contextOf(res).caller) return readBody(req, res, next)
    req.body = ''
    // Of a type that it does not know tRPC would complain before it asks for the key.
    req.headers['content-type'] = 'application/json'
    next()
  }

  const handle = createExpressMiddleware({
    router,
    createContext({ res, info }) {
      const context = contextOf(res)
      if (context.idempotencyHeader !== undefined && info.calls.length > 1) {
        const message = 'The header Idempotency-Key goes with one call, not with a batch'
        throw new TRPCError({ code: 'BAD_REQUEST', message })
      }
      return context
    },
    maxBatchSize: MAX_BATCH,
    responseMeta({ ctx, errors: [error] }) {
      // A plain object replaces headers that tRPC has set; `Headers` would be added to them.
      // tRPC's own Vary would leave out what CORS has put there.
      const headers = { Vary: 'Origin, trpc-accept, accept' }
      if (!error) return { headers }
      const type = { 'Content-Type': 'application/json' }
      return { headers: { ...headers, ...type, ...errorHeaders(error, ctx?.challenge) } }
    },
    onError: ({ error, req }) => onError(toTRPCError(error), req.res as Response),
  })

  return express.Router().use(nameCall, requireMethod, ...guards, readKeyedBody, handle)
}

const METHODS = ['GET', 'HEAD', 'POST']

const requireMethod: RequestHandler = (req, res, next) => {
  // tRPC leaves the type of an answer open where it cannot tell what is asked.
  res.setHeader('Content-Type', 'application/json')
  if (METHODS.includes(req.method)) return next()
  res.set('Allow', METHODS.join(', '))
  const message = `${req.method} is not supported here: use GET, HEAD or POST`
  throw new TRPCError({ code: 'METHOD_NOT_SUPPORTED', message })
}
