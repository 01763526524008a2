/** `npm run openapi`: writes openapi.json, the published document. */
import { writeFileSync } from 'node:fs'
import { appRouter } from '../petstore/router.ts'
import { texts } from '../petstore/texts.ts'
import { operationsOf } from '../procedure/operations.ts'
import { openApiDocument } from '../surface/rest/openapi/document.ts'
import { routesOf } from '../surface/rest/routes.ts'

/** The URLs in the published document. A running service has its own instead. */
const servers = {
  baseUrl: 'https://petstore.example/v1',
  stagingUrl: 'https://staging.petstore.example/v1',
}

const routes = routesOf(operationsOf(appRouter), servers.baseUrl)
const document = openApiDocument(appRouter, routes, texts, servers)
writeFileSync('openapi.json', `${JSON.stringify(JSON.parse(document), undefined, 2)}\n`)
