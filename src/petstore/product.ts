/** What is called after the product: change it here to make the house another catalogue. */

/** Begins API keys, metric names and the service's name wherever a machine reads it. */
export const NAME = 'petstore'

/** The same for people. */
export const TITLE = 'Petstore'

/** The version of the interface, as the OpenAPI document says it. */
export const VERSION = '1.0.0'

/** What the OpenAPI document begins with. */
export const DESCRIPTION = `A catalogue of animals for a store: list them, add one, get one.

Every operation needs an API key, sent as \`Authorization: Bearer <API_KEY>\`. Bodies are JSON. Identifiers are integers of 64 bits, which a JavaScript number cannot always hold exactly.`

/** The request that a newcomer is shown first: a creation, as the path and the body of REST. */
export const FIRST_REQUEST = { path: '/pets', body: '{"name": "Rex", "categoryId": 1}' }
