/** Request bodies of both surfaces: uncompressed JSON in UTF-8, of limited size. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { MAX_BODY } from '../config/product.ts'
import { CLIENT_GONE, problem } from '../errors/problem.ts'
import { connectionOf } from './connection.ts'
import { headSize } from './memory.ts'

/** Chunks that are kept apart. In an array, each occupies 256 bytes beside its content. */
const MAX_CHUNKS = 64

const utf8 = new TextDecoder('utf-8', { fatal: true })

/** A body that has arrived. Its text goes once it is read: the call may then wait for the database for seconds. */
export class Body {
  /** Bytes. */
  readonly length: number
  #text: string | undefined

  constructor(length: number, text: string) {
    this.length = length
    this.#text = text
  }

  /**
   * Returns the text, the first time alone. The function that takes it must not be async: V8 keeps all variables and
   * arguments of one until it ends.
   */
  take(): string | undefined {
    const text = this.#text
    this.#text = undefined
    return text
  }
}

/**
 * Returns the body, or undefined where the request has none. It checks the headers
 * before it reads. Throws PAYLOAD_TOO_LARGE for more than `MAX_BODY` bytes, UNSUPPORTED_MEDIA_TYPE
 * unless the body is uncompressed application/json in UTF-8, PARSE_ERROR for bytes that are not
 * UTF-8 (RFC 8259, section 8.1), and CLIENT_CLOSED_REQUEST if the connection closes first.
 */
export async function readBody(
  req: IncomingMessage,
  res: ServerResponse,
): Promise<Body | undefined> {
  const { headers } = req
  const length = Number(headers['content-length'] ?? 0)
  if (length > MAX_BODY) throw problem('bodyTooLarge')
  const isPresent = length > 0 || headers['transfer-encoding'] !== undefined // RFC 9112, section 6.3
  const [type] = req.headersDistinct['content-type'] ?? [] // the server joins several in `headers`
  if ((isPresent || type !== undefined) && !isJson(type)) throw problem('mediaType')
  if (!isPresent) return undefined
  if (!/^(identity)?$/i.test(headers['content-encoding'] ?? '')) throw problem('mediaType')
  // RFC 9110, section 10.1.1: the client waits for this response before it sends the body.
  if (req.httpVersion === '1.1' && /100-continue/i.test(headers.expect ?? '')) res.writeContinue()
  // Most bodies come with their head: `read` returns all that the stream has, and null for none.
  const bytes = req.complete ? ((req.read() as Buffer | null) ?? NOTHING) : await arriving(req, res)
  if (bytes.length > MAX_BODY) throw problem('bodyTooLarge')
  try {
    return new Body(bytes.length, utf8.decode(bytes))
  } catch (cause) {
    throw problem('notUtf8', cause)
  }
}

/** Returns the bytes of the body that may gather before it is read: those that have arrived, or may still arrive. */
export function gatheringBytes({ complete, readableLength, headers }: IncomingMessage): number {
  const length = headers['content-length']
  if (length !== undefined) return Math.min(Number(length), MAX_BODY)
  if (headers['transfer-encoding'] === undefined) return 0
  return complete ? readableLength : MAX_BODY
}

/** Resolves once the request has arrived in full, and ignores its body. Throws CLIENT_CLOSED_REQUEST. */
export function skipBody(req: IncomingMessage, res: ServerResponse): Promise<void> {
  return new Promise((resolve, reject) => {
    const onClose = () => reject(CLIENT_GONE)
    if (req.destroyed || res.destroyed) return onClose()
    req.on('end', resolve).on('error', onClose).resume()
    res.on('close', onClose) // as in arriving
  })
}

const NOTHING = Buffer.alloc(0)

/** Returns the bytes of a body that is still arriving. Meanwhile it counts: see ClientMemory. */
function arriving(req: IncomingMessage, res: ServerResponse): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const connection = connectionOf(req.socket)
    let chunks: Buffer[] = []
    let length = 0
    // The head of a request whose body does not end stays as long as the body.
    const head = headSize(req)
    connection.hold(head)
    // What listens would keep the bytes, and the promise has them, until the answer is over.
    const release = () => {
      connection.hold(0)
      chunks = []
      req.off('data', onData).off('end', onEnd).off('error', onClose)
      res.off('close', onClose)
    }
    const onData = (chunk: Buffer) => {
      length += chunk.length
      if (length > MAX_BODY) {
        release()
        return reject(problem('bodyTooLarge'))
      }
      if (chunks.push(chunk) > MAX_CHUNKS) chunks = [Buffer.concat(chunks)]
      if (!req.complete) connection.hold(head + length)
    }
    const onEnd = () => {
      resolve(Buffer.concat(chunks))
      release()
    }
    const onClose = () => {
      release()
      reject(CLIENT_GONE)
    }
    if (req.destroyed || res.destroyed) return onClose()
    req.on('data', onData).on('end', onEnd).on('error', onClose)
    // A request that the server rejects in the middle of its body emits no other event.
    res.on('close', onClose)
  })
}

function isJson(contentType = ''): boolean {
  const [type = '', ...parameters] = contentType.toLowerCase().split(';')
  const charset = parameters.map(
    (parameter) => parameter.trim().match(/^charset="?([^"]*)"?$/)?.[1],
  )
  return type.trim() === 'application/json' && charset.every((name) => UTF_8.has(name ?? 'utf-8'))
}

/** The labels of UTF-8 (https://encoding.spec.whatwg.org/#names-and-labels). */
const UTF_8 = new Set(
  'unicode-1-1-utf-8 unicode11utf8 unicode20utf8 utf-8 utf8 x-unicode20utf8'.split(' '),
)
