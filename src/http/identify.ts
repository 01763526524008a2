/** Builds the context of each request, once, before anything of its body is read. */
import { TRPCError } from '@trpc/server'
import type { RequestHandler, Response } from 'express'
import { Deadline } from '../../db/deadline.ts'
import { type Context, createContext, type Resources } from '../context.ts'

/** Middleware that gives each request its context, and `timeout` milliseconds; what the search for the caller throws, it passes on. */
export function identify(resources: Resources, timeout: number): RequestHandler {
  return async (req, res, next) => {
    const deadline = new Deadline(timeout)
    res.once('close', () => {
      const message = 'The client has gone'
      const gone = () => new TRPCError({ code: 'CLIENT_CLOSED_REQUEST', message })
      if (!res.writableFinished) deadline.giveUp(gone())
      deadline.clear()
    })
    // Of two headers none counts: a proxy in front may have looked at the other one.
    const [authorization, second] = req.headersDistinct.authorization ?? []
    const headers = {
      authorization: second === undefined ? authorization : '',
      idempotencyKey: req.get('idempotency-key'),
    }
    res.locals.context = await createContext(resources, headers, deadline)
    next()
  }
}

/** The context that `identify` gave the request of this response; undefined if it did not get to. */
export const contextOf = (res: Response): Context => res.locals.context
