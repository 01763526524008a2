/** `npm run openapi`: writes openapi.json, the document as it is published. */
import { writeFileSync } from 'node:fs'
import { openApiDocument } from '../rest/document.ts'
import { operationsOf } from '../rest/operations.ts'
import { appRouter, tags } from '../router.ts'

/** Addresses for the published document: a running service puts its own in their place. */
const servers = {
  baseUrl: 'https://petstore.example/v1',
  stagingUrl: 'https://staging.petstore.example/v1',
}

const document = openApiDocument(appRouter, operationsOf(appRouter, tags), servers)
writeFileSync('openapi.json', `${JSON.stringify(document, undefined, 2)}\n`)
