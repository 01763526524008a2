/**
 * The docs page and what it loads, all of it from here. It is the house's own: Swagger UI rounds great
 * ids in the answers it shows, Scalar in its samples, and what axe finds in both sits in their markup.
 */
import { hash } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import { assets, docsPage, download } from 'docs-page'
import express, { type RequestHandler, type Router } from 'express'
import { pageHeaders } from '../http/headers.ts'
import { recordOf } from '../http/record.ts'
import { answer, notAllowed } from '../http/respond.ts'

/** The Express router of the page that shows this document, to be mounted at `/docs`. */
export function docsRouter(document: string): Router {
  const docs = express.Router({ caseSensitive: true, strict: true })
  const serve = (path: string, handler: RequestHandler) =>
    docs
      .route(path)
      .get(handler)
      .all(notAllowed(['GET']))
  serve('/', sender('text/html; charset=utf-8', Buffer.from(docsPage(document, '../v1'))))
  serve('/openapi.json', sender('application/json', Buffer.from(download(document)), AS_FILE))
  for (const [name, { type, read }] of Object.entries(assets)) {
    const send = sender(type, read())
    serve(`/${name}`, (req, res, next) => {
      recordOf(res).isPart = true
      return send(req, res, next)
    })
  }
  return docs
}

const AS_FILE = ['Content-Disposition', 'attachment; filename="openapi.json"']

// From memory, and compressed once: a file opened for an answer that is never taken would stay open.
function sender(type: string, bytes: Buffer, more: string[] = []): RequestHandler {
  const packed = gzipSync(bytes, { level: 9 })
  const forms = { gzip: formOf(type, packed, more), identity: formOf(type, bytes, more) }
  forms.gzip.headers.push('Content-Encoding', 'gzip')
  return (req, res) => {
    const isCompressed = req.acceptsEncodings(['gzip', 'identity']) === 'gzip'
    const { tag, headers, bytes } = isCompressed ? forms.gzip : forms.identity
    res.setHeader('ETag', tag) // what `fresh` compares with
    if (req.fresh) answer(res, 304, headers, '')
    else answer(res, 200, headers, bytes)
  }
}

/** A representation, with a tag of its own (RFC 9110, section 8.8.3.3). */
function formOf(type: string, bytes: Buffer, more: string[]) {
  const tag = `"${hash('sha256', bytes, 'base64url')}"`
  const caching = ['ETag', tag, 'Cache-Control', 'no-cache', 'Vary', 'Origin, Accept-Encoding']
  return { tag, bytes, headers: [...pageHeaders, ...caching, ...more, 'Content-Type', type] }
}
