/** Request bodies of both surfaces: uncompressed JSON in UTF-8, of limited size. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { TRPCError } from '@trpc/server'
import { MAX_BODY } from '../config/limits.ts'
import { CLIENT_GONE, malformed, payloadTooLarge, unsupportedMediaType } from '../errors/problem.ts'
import { Backlog } from './backlog.ts'
import { hasBody } from './request.ts'

/** Bytes that a chunk occupies in addition to its content, as a Buffer in an array. */
const CHUNK_OVERHEAD = 256

/** The bodies that have not arrived in full: together at most 16 MiB. */
const arriving = new Backlog(16 * 1024 * 1024)

const utf8 = new TextDecoder('utf-8', { fatal: true })

/**
 * Returns the text of the body, or undefined where the request has none. It checks the headers
 * before it reads. Throws PAYLOAD_TOO_LARGE for more than `MAX_BODY` bytes, UNSUPPORTED_MEDIA_TYPE
 * unless the body is uncompressed application/json in UTF-8, PARSE_ERROR for bytes that are not
 * UTF-8 (RFC 8259, section 8.1), and CLIENT_CLOSED_REQUEST if the connection closes first.
 */
export async function readBody(
  req: IncomingMessage,
  res: ServerResponse,
): Promise<string | undefined> {
  const { headers } = req
  if (Number(headers['content-length'] ?? 0) > MAX_BODY) throw tooLarge(res)
  const isPresent = hasBody(req)
  const type = headers['content-type']
  if ((isPresent || type !== undefined) && !isJson(type)) throw unsupportedMediaType()
  if (!isPresent) return undefined
  if (!/^(identity)?$/i.test(headers['content-encoding'] ?? '')) throw unsupportedMediaType()
  // RFC 9110, section 10.1.1: the client waits for this response before it sends the body.
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
      if (!req.complete) arriving.set(req, length + chunks.length * CHUNK_OVERHEAD)
      if (length <= MAX_BODY) return
      req.off('data', onData).pause()
      reject(tooLarge(res))
    }
    const onEnd = () => {
      arriving.delete(req)
      resolve(chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks))
    }
    const onClose = () => {
      arriving.delete(req)
      reject(CLIENT_GONE)
    }
    if (req.destroyed || res.destroyed) return onClose()
    req.on('data', onData).on('end', onEnd).on('error', onClose)
    // A request that the server rejects in the middle of its body emits no other event.
    res.on('close', onClose)
  })
}

// The response closes the connection even if the body has arrived: other bodies would follow.
function tooLarge(res: ServerResponse): TRPCError {
  res.shouldKeepAlive = false
  return payloadTooLarge()
}

function decode(bytes: Buffer): string {
  try {
    const text = utf8.decode(bytes)
    // The decoder removes one byte order mark, and a parser might remove another.
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
