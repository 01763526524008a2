/** The docs page: the OpenAPI document shown by Swagger UI, all of it served from here. */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import express, { type RequestHandler, type Router } from 'express'
import { answer } from '../http/answer.ts'
import { pageHeaders } from '../http/headers.ts'
import { notAllowed } from '../http/methods.ts'

const own = import.meta.dirname
const swagger = path.dirname(fileURLToPath(import.meta.resolve('swagger-ui-dist/package.json')))

/** The Express router of the docs page, to be mounted at `/docs`. */
export function docsRouter(): Router {
  const docs = express.Router({ caseSensitive: true, strict: true })
  const serve = (path: string, folder: string, name: string) =>
    docs
      .route(path)
      .get(sender(folder, name))
      .all(notAllowed(['GET']))
  serve('/', own, 'index.html')
  for (const name of ['docs.css', 'docs.js', 'icon.svg']) serve(`/${name}`, own, name)
  for (const name of ['swagger-ui.css', 'swagger-ui-bundle.js']) serve(`/${name}`, swagger, name)
  return docs
}

const types: Record<string, string> = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
}

// From memory: a file opened for an answer that is never taken would stay open.
function sender(folder: string, name: string): RequestHandler {
  const bytes = readFileSync(path.join(folder, name))
  const etag = `"${createHash('sha256').update(bytes).digest('base64url')}"`
  const type = types[path.extname(name)] ?? 'application/octet-stream'
  const headers = [...pageHeaders, 'ETag', etag, 'Cache-Control', 'no-cache', 'Content-Type', type]
  return (req, res) => {
    res.setHeader('ETag', etag) // what `fresh` compares with
    if (req.fresh) answer(res, 304, headers, '')
    else answer(res, 200, headers, bytes)
  }
}
