/** The name and the version of the product. */

/** The name for programs: API keys and metric names begin with it. */
export const NAME = 'petstore'

/** The name for people. */
export const TITLE = 'Petstore'

/** The version of the interface, in the OpenAPI document. */
export const VERSION = '1.0.0'
