/** The docs page: the OpenAPI document shown by Swagger UI, all of it served from here. */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import express, { type RequestHandler, type Router } from 'express'
import { pageHeaders } from '../http/headers.ts'

const own = import.meta.dirname
const swagger = path.dirname(fileURLToPath(import.meta.resolve('swagger-ui-dist/package.json')))

/** The Express router of the docs page, to be mounted at `/docs`. */
export function docsRouter(): Router {
  const docs = express.Router({ caseSensitive: true, strict: true })
  docs.use(pageHeaders)
  docs.get('/', sender(own, 'index.html'))
  for (const name of ['docs.css', 'docs.js', 'icon.svg']) docs.get(`/${name}`, sender(own, name))
  for (const name of ['swagger-ui.css', 'swagger-ui-bundle.js']) {
    docs.get(`/${name}`, sender(swagger, name))
  }
  return docs
}

// From memory: a file opened for an answer that is never taken would stay open.
function sender(folder: string, name: string): RequestHandler {
  const bytes = readFileSync(path.join(folder, name))
  const etag = `"${createHash('sha256').update(bytes).digest('base64url')}"`
  return (req, res) => {
    res.type(path.extname(name)).set({ ETag: etag, 'Cache-Control': 'no-cache' })
    if (req.fresh) res.status(304).end()
    else res.end(bytes)
  }
}
