/** `npm run openapi`: writes openapi.json, the document as it is published. */
import { writeFileSync } from 'node:fs'
import { resources } from '../petstore/resources.ts'
import { openApiDocument } from '../surface/rest/document.ts'
import { operationsOf } from '../surface/rest/operations.ts'

/** Addresses for the published document: a running service puts its own in their place. */
const servers = {
  baseUrl: 'https://petstore.example/v1',
  stagingUrl: 'https://staging.petstore.example/v1',
}

const document = openApiDocument(resources, operationsOf(resources.router, resources.tags), servers)
writeFileSync('openapi.json', `${JSON.stringify(document, undefined, 2)}\n`)
