/**
 * The docs page, its files, and the document. No ready-made page fits, compared in a browser with Scalar, Swagger UI,
 * Elements, RapiDoc and Redoc: they send 218 to 1,255 kB and this one 15, compressed; axe finds 2 to 121
 * serious faults in them and none here; none of them works under this Content-Security-Policy. Scalar shows
 * all digits of an id, too, but sends the example of an Idempotency-Key as if it were the reader's.
 */
import { hash } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import express, { type RequestHandler, type Router } from 'express'
import { assets, docsPage, download } from '../../docs-page/src/page.ts'
import { forAnyPage, pageHeaders, publicHeaders } from '../http/headers.ts'
import { getOnly, send } from '../http/respond.ts'

/** Returns the Express router of the docs page, to mount at `/docs`. `document` is OpenAPI as JSON. */
export function docsRouter(document: string): Router {
  const docs = express.Router({ caseSensitive: true, strict: true })
  const add = (path: string, handler: RequestHandler) => docs.route(path).get(handler).all(getOnly)
  const ofType = (type: string) => [...pageHeaders, 'Content-Type', type]
  const page = Buffer.from(docsPage(document, '../v1'))
  add('/', sender(ofType('text/html; charset=utf-8'), page))
  const asFile = [...ofType('application/json'), ...AS_FILE, ...forAnyPage]
  add('/openapi.json', sender(asFile, Buffer.from(download(document))))
  for (const [name, { type, read }] of Object.entries(assets)) {
    add(`/${name}`, sender(ofType(type), read()))
  }
  return docs
}

const AS_FILE = ['Content-Disposition', 'attachment; filename="openapi.json"']

/** Returns the handler that sends the document, OpenAPI as JSON, to programs. */
export const documentSender = (document: string): RequestHandler =>
  sender([...publicHeaders, ...forAnyPage], Buffer.from(document))

/**
 * Returns the handler that sends a file with these headers, each name before its value: compressed by gzip if the
 * client accepts that, and as 304 without content if it has the file (RFC 9110, section 13.1.2). The file is sent
 * from memory: a client that never reads would keep an opened one open.
 */
function sender(headers: readonly string[], bytes: Buffer): RequestHandler {
  // Each encoding is a representation with its own ETag (RFC 9110, section 8.8.3.3).
  const formOf = (bytes: Buffer, ...encoding: string[]) => {
    const tag = `"${hash('sha256', bytes, 'base64url')}"`
    const caching = ['ETag', tag, 'Cache-Control', 'no-cache', 'Vary', 'Origin, Accept-Encoding']
    return { tag, headers: [...headers, ...caching, ...encoding], bytes }
  }
  const plain = formOf(bytes)
  const packed = formOf(gzipSync(bytes, { level: 9 }), 'Content-Encoding', 'gzip')
  return (req, res) => {
    const isPacked = req.acceptsEncodings(['gzip', 'identity']) === 'gzip'
    const { tag, headers, bytes } = isPacked ? packed : plain
    if (names(req.headers['if-none-match'], tag)) send(res, 304, headers, '')
    else send(res, 200, headers, bytes)
  }
}

/**
 * Returns whether a value of `If-None-Match` names this tag, weak or not. `req.fresh` of Express would also read
 * `Cache-Control: no-cache`, which fetch adds to every request with `If-None-Match`, and send the file again.
 */
const names = (value: string | undefined, tag: string): boolean =>
  value === '*' || (value ?? '').split(',').some((one) => one.trim().replace(/^W\//, '') === tag)
