/** The texts of the product: in the OpenAPI document, and at the first start. */
import { readFileSync } from 'node:fs'

/** The description of the API, with its guides, in Markdown. */
export const DESCRIPTION = readFileSync(new URL('guide.md', import.meta.url), 'utf8').trimEnd()

/** The beginning of each sample for the TypeScript client. */
export const SAMPLE = `import { createPetstoreClient } from '@petstore-catalogue/petstore/client'

const petstore = createPetstoreClient({
  url: '{{trpcUrl}}',
  apiKey: '<API_KEY>',
})
const answer = await `

/** The example that the first start prints: a creation, as the path and the body of REST. */
export const FIRST_REQUEST = { path: '/pets', body: '{"name": "Rex", "categoryId": 1}' }

/** The description of each tag of the document, by name. */
export const tags = { pets: 'The animals of the store.' }
