/** Builds the context of each request, once, before anything of its body is read. */
import type { Request, RequestHandler, Response } from 'express'
import { bearerKey, type Context, createContext, type Resources } from '../context.ts'
import type { RateLimit } from './rate-limit.ts'
import { setCaller, setStranger } from './telemetry.ts'

/**
 * Middleware that gives each request its context; what the search for the caller throws, it passes
 * on. A caller whose key is not known to be valid is counted by address before the key is looked
 * for; `callsOf` says for how many calls a request counts.
 */
export function identify(
  resources: Resources,
  limit: RateLimit | undefined,
  callsOf: (req: Request) => number = () => 1,
): RequestHandler {
  return async (req, res, next) => {
    // Of two headers none counts: a proxy in front may have looked at the other one.
    const [first, second] = req.headersDistinct.authorization ?? []
    const authorization = second === undefined ? first : ''
    const key = bearerKey(authorization)
    const known = key === undefined ? undefined : resources.known(key)
    if (!known) {
      setStranger(res, authorization)
      await limit?.countAddress(res, callsOf(req))
    }
    const context = await createContext(resources, {
      authorization,
      idempotencyKey: req.get('idempotency-key'),
    })
    res.locals.context = context
    if (context.caller) {
      const { keyId } = context.caller
      setCaller(res, keyId)
      await (known ? limit?.countKey : limit?.moveToKey)?.(res, keyId, callsOf(req))
    }
    next()
  }
}

/** The context that `identify` gave the request of this response; undefined if it did not get to. */
export const contextOf = (res: Response): Context => res.locals.context
