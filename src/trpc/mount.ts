/** tRPC over HTTP: the router as an Express router, to be mounted at `/trpc`. */
import { getTRPCErrorShape, TRPCError, transformTRPCResponse } from '@trpc/server'
import { createExpressMiddleware } from '@trpc/server/adapters/express'
import express, {
  type ErrorRequestHandler,
  type RequestHandler,
  type Response,
  type Router,
} from 'express'
import { errorHeaders, toTRPCError } from '../errors.ts'
import { readBody } from '../http/body.ts'
import { contextOf } from '../http/identify.ts'
import { sendJson } from '../http/json.ts'
import { setOperation } from '../http/telemetry.ts'
import { MAX_BATCH } from '../limits.ts'
import type { AppRouter } from '../router.ts'

/**
 * The Express router of tRPC. `guards` give a request its context or refuse it; every error, theirs
 * too, is answered in tRPC's envelope and told to `onError`.
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
    responseMeta({ ctx, errors: [error], type }) {
      if (!error) return {}
      const allow = error.code === 'METHOD_NOT_SUPPORTED' && {
        Allow: type === 'mutation' ? 'POST' : 'GET',
      }
      return { headers: new Headers({ ...errorHeaders(error, ctx?.challenge), ...allow }) }
    },
    onError: ({ error, req }) => onError(toTRPCError(error), req.res as Response),
  })

  const answerError: ErrorRequestHandler = (thrown, _req, res, _next) => {
    const error = toTRPCError(thrown)
    onError(error, res)
    const config = router._def._config
    const shape = getTRPCErrorShape({
      config,
      error,
      type: 'unknown',
      path: undefined,
      input: undefined,
      ctx: undefined,
    })
    res.set(errorHeaders(error, contextOf(res)?.challenge))
    sendJson(
      res,
      shape.data.httpStatus,
      JSON.stringify(transformTRPCResponse(config, { error: shape })),
    )
  }

  return express.Router().use(nameCall, ...guards, readKeyedBody, handle, answerError)
}
