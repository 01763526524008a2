/** Reads request bodies, for both surfaces: JSON as text, bounded, uncompressed, in UTF-8. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { TRPCError } from '@trpc/server'
import { MAX_BODY } from '../config/limits.ts'
import { CLIENT_GONE, malformed, payloadTooLarge, unsupportedMediaType } from '../errors/problem.ts'
import { Backlog } from './backlog.ts'
import { hasBody } from './request.ts'

/** Bytes that a piece of a body takes beside its content, be it a single byte. */
const PIECE = 256

/** Bytes of bodies that have not arrived whole. */
const arriving = new Backlog(16 * 1024 * 1024)

const utf8 = new TextDecoder('utf-8', { fatal: true })

/**
 * The text of a body, or undefined when there is none. What the headers say is judged before
 * anything is read. Throws PAYLOAD_TOO_LARGE, UNSUPPORTED_MEDIA_TYPE when it is not
 * application/json in UTF-8 or is compressed, PARSE_ERROR when its bytes are not UTF-8 (RFC 8259,
 * section 8.1), and CLIENT_CLOSED_REQUEST when it does not arrive whole.
 */
export async function readBody(
  req: IncomingMessage,
  res: ServerResponse,
): Promise<string | undefined> {
  const { headers } = req
  if (Number(headers['content-length'] ?? 0) > MAX_BODY) throw tooLarge(res)
  const isThere = hasBody(req)
  const type = headers['content-type']
  if ((isThere || type !== undefined) && !isJson(type)) {
    throw unsupportedMediaType()
  }
  if (!isThere) return undefined
  if (!/^(identity)?$/i.test(headers['content-encoding'] ?? '')) {
    throw unsupportedMediaType()
  }
  // Who waits to be asked for the body is asked now (RFC 9110, section 10.1.1).
  if (req.httpVersion === '1.1' && /100-continue/i.test(headers.expect ?? '')) res.writeContinue()
  return decode(await readBytes(req, res))
}

function readBytes(req: IncomingMessage, res: ServerResponse): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let length = 0
    const onData = (chunk: Buffer) => {
      length += chunk.length
      chunks.push(chunk)
      if (!req.complete) arriving.set(req, length + chunks.length * PIECE)
      if (length <= MAX_BODY) return
      req.off('data', onData).pause()
      reject(tooLarge(res))
    }
    const onEnd = () => {
      arriving.delete(req)
      resolve(chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks))
    }
    const onGone = () => {
      arriving.delete(req)
      reject(CLIENT_GONE)
    }
    if (req.destroyed || res.destroyed) return onGone()
    req.on('data', onData).on('end', onEnd).on('error', onGone)
    // A request that is refused in the middle of its body ends in no other way.
    res.on('close', onGone)
  })
}

// Whoever sends that much is not listened to any further, even if it has arrived already.
function tooLarge(res: ServerResponse): TRPCError {
  res.shouldKeepAlive = false
  return payloadTooLarge()
}

function decode(bytes: Buffer): string {
  try {
    const text = utf8.decode(bytes)
    // The decoder takes one byte order mark away, and what parses the text might take another.
    if (text.startsWith('\ufeff')) throw new SyntaxError('A second byte order mark')
    return text
  } catch (cause) {
    throw malformed(cause)
  }
}

function isJson(contentType = ''): boolean {
  const [type = '', ...parameters] = contentType.toLowerCase().split(';')
  const charset = parameters.map(
    (parameter) => parameter.trim().match(/^charset="?([^"]*)"?$/)?.[1],
  )
  return type.trim() === 'application/json' && charset.every((name = 'utf-8') => name === 'utf-8')
}
