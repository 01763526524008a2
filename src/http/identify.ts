/** Builds the context of each request, once, before anything of its body is read. */
import type { RequestHandler, Response } from 'express'
import { type Caller, type Context, createContext } from '../context.ts'
import type { PetStore } from '../pets/schema.ts'

/** Middleware that gives each request its context; what `authenticate` throws, it passes on. */
export function identify(
  authenticate: (key: string) => Promise<Caller | undefined>,
  pets: PetStore,
): RequestHandler {
  return async (req, res, next) => {
    // Of two headers none counts: a proxy in front may have looked at the other one.
    const [authorization, second] = req.headersDistinct.authorization ?? []
    res.locals.context = await createContext(
      second === undefined ? authorization : '',
      authenticate,
      pets,
    )
    next()
  }
}

/** The context that `identify` gave the request of this response; undefined if it did not get to. */
export const contextOf = (res: Response): Context => res.locals.context
