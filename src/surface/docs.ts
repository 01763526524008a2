/**
 * The docs page and its files. No ready-made page fits: Swagger UI rounds int64 in the responses that
 * it shows, Scalar rounds them in its samples, and axe finds errors in the markup of both.
 */
import { hash } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import { assets, docsPage } from 'docs-page'
import express, { type RequestHandler, type Router } from 'express'
import { pageHeaders } from '../http/headers.ts'
import { answer, notAllowed } from '../http/respond.ts'

/** Returns the Express router of the docs page, to mount at `/docs`. `document` is OpenAPI as JSON. */
export function docsRouter(document: string): Router {
  const docs = express.Router({ caseSensitive: true, strict: true })
  const serve = (path: string, type: string, bytes: Buffer) =>
    docs
      .route(path)
      .get(sender(type, bytes))
      .all(notAllowed(['GET']))
  serve('/', 'text/html; charset=utf-8', Buffer.from(docsPage(document)))
  for (const [name, { type, read }] of Object.entries(assets)) serve(`/${name}`, type, read())
  return docs
}

// The files are sent from memory: a client that never reads would keep an opened file open.
function sender(type: string, bytes: Buffer): RequestHandler {
  const forms = { gzip: formOf(type, gzipSync(bytes, { level: 9 })), identity: formOf(type, bytes) }
  forms.gzip.headers.push('Content-Encoding', 'gzip')
  return (req, res) => {
    const isCompressed = req.acceptsEncodings(['gzip', 'identity']) === 'gzip'
    const { tag, headers, bytes } = isCompressed ? forms.gzip : forms.identity
    res.setHeader('ETag', tag) // `req.fresh` compares it with If-None-Match
    if (req.fresh) answer(res, 304, headers, '')
    else answer(res, 200, headers, bytes)
  }
}

/** Each encoding is a representation with its own ETag (RFC 9110, section 8.8.3.3). */
function formOf(type: string, bytes: Buffer) {
  const tag = `"${hash('sha256', bytes, 'base64url')}"`
  const caching = ['ETag', tag, 'Cache-Control', 'no-cache', 'Vary', 'Origin, Accept-Encoding']
  return { tag, bytes, headers: [...pageHeaders, ...caching, 'Content-Type', type] }
}
