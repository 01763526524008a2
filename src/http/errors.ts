/** Answers what went wrong outside of a procedure. */
import { TRPCError } from '@trpc/server'
import type { ErrorRequestHandler, RequestHandler, Response } from 'express'
import { type ApiError, errorHeaders, toApiError, toTRPCError } from '../errors.ts'
import { envelope } from '../trpc/envelope.ts'
import { contextOf } from './identify.ts'
import { sendJson } from './json.ts'

/** Refuses every request that got this far. */
export const notFound: RequestHandler = () => {
  throw new TRPCError({ code: 'NOT_FOUND', message: 'There is nothing at this address' })
}

/** The body of an error for a request target: tRPC's envelope below `/trpc`, else the Error body. */
export function errorText(target: string | undefined, error: ApiError): string {
  const isTrpc = /^(https?:\/\/[^/]*)?\/trpc([/?]|$)/.test(target ?? '')
  return isTrpc ? envelope(error) : JSON.stringify(error)
}

/** Answers errors in the form of the surface that was asked, and tells `onError` of each. */
export function answerErrors(
  onError: (error: TRPCError, res: Response) => void,
): ErrorRequestHandler {
  return (thrown, req, res, next) => {
    const error = toTRPCError(thrown)
    onError(error, res)
    if (res.headersSent) return next(thrown) // the server ends the connection
    const body = toApiError(error)
    // Of an answer that was begun and given up.
    for (const name of ['Content-Length', 'ETag', 'Last-Modified']) res.removeHeader(name)
    res.set(errorHeaders(error, contextOf(res)?.challenge))
    sendJson(res, body.status, errorText(req.originalUrl, body))
  }
}
