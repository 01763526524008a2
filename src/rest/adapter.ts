/**
 * trpc-to-openapi, made to serve this router as it is. Left alone it would coerce the schemas that
 * both surfaces share, round int64, answer 200 to everything and shape errors in its own way; so
 * it gets a router of the same procedures whose inputs it does not see, and an empty request.
 */
import type { TRPCError } from '@trpc/server'
import type { Request, Response } from 'express'
import { createOpenApiExpressMiddleware } from 'trpc-to-openapi'
import { z } from 'zod'
import type { Context } from '../context.ts'
import { errorHeaders, toApiError, toTRPCError, withoutCause } from '../errors.ts'
import type { AppRouter } from '../router.ts'
import { successHeaders } from './headers.ts'
import { toJson } from './json.ts'
import type { Operation } from './operations.ts'

/** One call of one operation. */
export interface Call {
  operation: Operation
  input: Record<string, unknown>
  context: Context
}

/** A call being made: `signal` aborts when the client has gone. */
interface Running extends Call {
  res: Response
  signal: AbortSignal
}

/**
 * A function that makes a call and answers it, be it with an error. `baseUrl` is the address of
 * `/v1`, for the links; `onError` hears of every error that was answered.
 */
export function createAdapter(
  router: AppRouter,
  operations: Operation[],
  baseUrl: string,
  onError: (error: TRPCError, res: Response) => void,
): (req: Request, res: Response, call: Call) => Promise<void> {
  const createCaller = ({ operation, input, context, res, signal }: Running) => ({
    async [operation.name]() {
      try {
        const caller = router.createCaller(context, { signal })
        const call = caller[operation.name as keyof typeof caller]
        const output = await (call as (input: unknown) => Promise<unknown>)(input)
        res.set(successHeaders(operation, baseUrl, input, output, context))
        return toJson(output)
      } catch (thrown) {
        const error = toTRPCError(thrown)
        onError(error, res)
        throw withoutCause(error)
      }
    },
  })
  const facade = {
    ...router,
    createCaller,
    _def: {
      ...router._def,
      procedures: Object.fromEntries(
        operations.map((operation) => [operation.name, opaque(router, operation)]),
      ),
      _config: {
        ...router._def._config,
        errorFormatter: ({ error }: { error: TRPCError }) => toApiError(error),
      },
    },
  }
  const handle = createOpenApiExpressMiddleware({
    router: facade as unknown as AppRouter,
    createContext: ({ res, info }) => ({ ...res.locals.call, res, signal: info.signal }),
    responseMeta({ ctx, errors: [error] }) {
      const { operation, context } = ctx as unknown as Call
      if (error) return { headers: errorHeaders(error, context.challenge) }
      return { status: operation.rest.location ? 201 : 200 }
    },
  })
  return (req, res, call) => {
    res.locals.call = call
    Object.assign(req, { method: call.operation.method, url: call.operation.path, body: '' })
    req.headers['content-type'] = 'application/json'
    return handle(req, res)
  }
}

/** The procedure with an input of nothing but its path's parameters, as text. */
function opaque(router: AppRouter, { name, path }: Operation) {
  const procedure = router._def.procedures[name as keyof AppRouter['_def']['procedures']]
  const names = [...path.matchAll(/\{(.+?)\}/g)].map(([, parameter]) => [parameter, z.string()])
  return { _def: { ...procedure._def, inputs: [z.object(Object.fromEntries(names))] } }
}
