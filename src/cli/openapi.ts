/** `npm run openapi`: writes openapi.json, the published document, from which a service makes its own. */
import { writeFileSync } from 'node:fs'
import * as resources from '../petstore/resources.ts'
import { texts } from '../petstore/texts.ts'
import { operationsOf } from '../procedure/definitions.ts'
import type { Product } from '../process/start.ts'
import { openApiDocument } from '../surface/rest/openapi/document.ts'
import { PUBLISHED } from '../surface/rest/openapi/published.ts'
import { routesOf } from '../surface/rest/routes.ts'

const { appRouter } = resources
const { authentication }: Partial<Product> = resources
const routes = routesOf(operationsOf(appRouter), PUBLISHED.baseUrl)
const document = openApiDocument(routes, texts, PUBLISHED, authentication)
writeFileSync('openapi.json', `${JSON.stringify(JSON.parse(document), undefined, 2)}\n`)
