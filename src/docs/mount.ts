/** The docs page: the OpenAPI document shown by Swagger UI, all of it served from here. */
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import express, { type Router } from 'express'
import { pageHeaders } from '../http/headers.ts'

const swaggerFiles = ['swagger-ui.css', 'swagger-ui-bundle.js']
const ownFiles = ['docs.css', 'docs.js', 'icon.svg']

/** The Express router of the docs page, to be mounted at `/docs`. */
export function docsRouter(): Router {
  const docs = express.Router({ caseSensitive: true, strict: true })
  const send = (folder: string, files: string[]) => {
    for (const file of files)
      docs.get(`/${file}`, (_req, res) => res.sendFile(file, { root: folder }))
  }
  docs.use(pageHeaders)
  docs.get('/', (_req, res) => res.sendFile('index.html', { root: import.meta.dirname }))
  send(import.meta.dirname, ownFiles)
  send(
    path.dirname(fileURLToPath(import.meta.resolve('swagger-ui-dist/package.json'))),
    swaggerFiles,
  )
  return docs
}
