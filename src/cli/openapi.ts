/** `npm run openapi`: writes openapi.json, the published document. */
import { writeFileSync } from 'node:fs'
import { appRouter } from '../petstore/router.ts'
import { texts } from '../petstore/texts.ts'
import { openApiDocument } from '../surface/rest/openapi/document.ts'
import { operationsOf } from '../surface/rest/operations.ts'

/** The URLs in the published document. A running service has its own instead. */
const servers = {
  baseUrl: 'https://petstore.example/v1',
  stagingUrl: 'https://staging.petstore.example/v1',
}

const operations = operationsOf(appRouter, servers.baseUrl)
const document = openApiDocument(appRouter, operations, texts, servers)
writeFileSync('openapi.json', `${JSON.stringify(JSON.parse(document), undefined, 2)}\n`)
