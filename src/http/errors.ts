/** Answers what went wrong outside of a procedure with the Error body. */
import { TRPCError } from '@trpc/server'
import type { ErrorRequestHandler, RequestHandler, Response } from 'express'
import { errorHeaders, toApiError, toTRPCError } from '../errors.ts'
import { contextOf } from './identify.ts'
import { sendJson } from './json.ts'

/** Refuses every request that got this far. */
export const notFound: RequestHandler = () => {
  throw new TRPCError({ code: 'NOT_FOUND', message: 'There is nothing at this address' })
}

/** Answers errors with the Error body, and tells `onError` of each. */
export function answerErrors(
  onError: (error: TRPCError, res: Response) => void,
): ErrorRequestHandler {
  return (thrown, _req, res, next) => {
    const error = toTRPCError(thrown)
    onError(error, res)
    if (res.headersSent) return next(thrown) // Express ends the connection
    const body = toApiError(error)
    res.set(errorHeaders(error, contextOf(res)?.challenge))
    sendJson(res, body.status, JSON.stringify(body))
  }
}
