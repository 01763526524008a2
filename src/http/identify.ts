/** Builds the context of each request, once, before anything of its body is read. */
import type { RequestHandler, Response } from 'express'
import { type Context, createContext, type Resources } from '../context.ts'

/** Middleware that gives each request its context; what the search for the caller throws, it passes on. */
export function identify(resources: Resources): RequestHandler {
  return async (req, res, next) => {
    // Of two headers none counts: a proxy in front may have looked at the other one.
    const [authorization, second] = req.headersDistinct.authorization ?? []
    res.locals.context = await createContext(resources, {
      authorization: second === undefined ? authorization : '',
      idempotencyKey: req.get('idempotency-key'),
    })
    next()
  }
}

/** The context that `identify` gave the request of this response; undefined if it did not get to. */
export const contextOf = (res: Response): Context => res.locals.context
