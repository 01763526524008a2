/** What people read of the product before they know its operations. */

/** What the OpenAPI document begins with. */
export const DESCRIPTION = `A catalogue of animals for a store: list them, add one, get one.

Every operation needs an API key, sent as \`Authorization: Bearer <API_KEY>\`. Bodies are JSON. Identifiers are integers of 64 bits, which a JavaScript number cannot always hold exactly.`

/** The package for TypeScript frontends (client/), of which the document has samples. */
export const CLIENT = {
  module: '@petstore-catalogue/petstore/client',
  create: 'createPetstoreClient',
}

/** The request that a newcomer is shown first: a creation, as the path and the body of REST. */
export const FIRST_REQUEST = { path: '/pets', body: '{"name": "Rex", "categoryId": 1}' }

/** What the document says of the headings under which operations are listed. */
export const tags = { pets: 'The animals of the store.' }
