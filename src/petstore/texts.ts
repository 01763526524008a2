/** The texts of the product: in the OpenAPI document, and at the start. */
import { readFileSync } from 'node:fs'

export const texts = {
  description: readFileSync(new URL('guide.md', import.meta.url), 'utf8').trimEnd(),
  sample: `import { createPetstoreClient } from '@petstore-catalogue/petstore/client'

const petstore = createPetstoreClient({
  url: '{{trpcUrl}}',
  apiKey: '<API_KEY>',
})
const answer = await `,
  /** The creation that a start shows to a newcomer, as the path and the body of REST. */
  firstRequest: { path: '/pets', body: '{"name": "Rex", "categoryId": 1}' },
}
