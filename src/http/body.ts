/** Reads request bodies, for both surfaces: JSON as text, bounded, uncompressed, in UTF-8. */
import { TRPCError } from '@trpc/server'
import express, { type RequestHandler } from 'express'
import { malformed } from '../errors.ts'
import { MAX_BODY } from '../limits.ts'

const readBytes = express.raw({ type: 'application/json', limit: MAX_BODY, inflate: false })
const utf8 = new TextDecoder('utf-8', { fatal: true })

/**
 * Sets `req.body` to the text of the body, or to undefined when there is none. Passes on
 * UNSUPPORTED_MEDIA_TYPE when it is not application/json in UTF-8 or is compressed,
 * PAYLOAD_TOO_LARGE, and PARSE_ERROR when its bytes are not UTF-8 (RFC 8259, section 8.1).
 */
export const readBody: RequestHandler = (req, res, next) => {
  const hasBody =
    req.headers['transfer-encoding'] !== undefined || Number(req.headers['content-length'] ?? 0) > 0
  const type = req.headers['content-type']
  const isSaid = hasBody || (req.method === 'POST' && type !== undefined)
  if (isSaid && !isJson(type)) {
    const message = 'The body must be of the type application/json, in UTF-8'
    return next(new TRPCError({ code: 'UNSUPPORTED_MEDIA_TYPE', message }))
  }
  readBytes(req, res, (error) => {
    if (error) return next(error)
    try {
      req.body = Buffer.isBuffer(req.body) ? utf8.decode(req.body) : undefined
      next()
    } catch (cause) {
      next(malformed(cause))
    }
  })
}

function isJson(contentType = ''): boolean {
  const [type = '', ...parameters] = contentType.toLowerCase().split(';')
  const charset = parameters.map(
    (parameter) => parameter.trim().match(/^charset="?([^"]*)"?$/)?.[1],
  )
  return type.trim() === 'application/json' && charset.every((name = 'utf-8') => name === 'utf-8')
}
