/** Answers what went wrong outside of a procedure. */
import { TRPCError } from '@trpc/server'
import type { ErrorRequestHandler, RequestHandler, Response } from 'express'
import { type ApiError, errorHeaders, toApiError, toTRPCError } from '../errors.ts'
import { answer } from './answer.ts'
import { jsonHeaders } from './headers.ts'
import { contextOf } from './identify.ts'

/** The body of an error for a request target, in the form of the surface that it belongs to. */
export type ErrorText = (target: string | undefined, error: ApiError) => string

/** Refuses every request that got this far. */
export const notFound: RequestHandler = () => {
  throw new TRPCError({ code: 'NOT_FOUND', message: 'There is nothing at this address' })
}

/** Answers errors in the form that `textOf` gives them, and tells `onError` of each. */
export function answerErrors(
  textOf: ErrorText,
  onError: (error: TRPCError, res: Response) => void,
): ErrorRequestHandler {
  return (thrown, req, res, next) => {
    const error = toTRPCError(thrown)
    onError(error, res)
    if (res.headersSent) return next(thrown) // the server ends the connection
    const body = toApiError(error)
    // An answer may have been begun and given up: its headers are not those of the error.
    for (const name of ['Content-Length', 'ETag', 'Last-Modified']) res.removeHeader(name)
    res.set(errorHeaders(error, contextOf(res)?.challenge))
    answer(res, body.status, jsonHeaders, textOf(req.originalUrl, body))
  }
}
