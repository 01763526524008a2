/** The texts of the product: in the OpenAPI document, and at the first start. */

/** The description of the API, in Markdown. */
export const DESCRIPTION = `A catalogue of animals for a store: list them, add one, get one.

Every operation needs an API key, sent as \`Authorization: Bearer <API_KEY>\`. Bodies are JSON. Identifiers are integers of 64 bits, which a JavaScript number cannot always hold exactly.`

/** The package for TypeScript frontends (client/), of which the document has samples. */
export const CLIENT = {
  module: '@petstore-catalogue/petstore/client',
  create: 'createPetstoreClient',
}

/** The example that the first start prints: a creation, as the path and the body of REST. */
export const FIRST_REQUEST = { path: '/pets', body: '{"name": "Rex", "categoryId": 1}' }

/** The description of each tag of the document, by name. */
export const tags = { pets: 'The animals of the store.' }
