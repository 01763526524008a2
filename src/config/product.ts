/** How the product is called. Change it, and the folder petstore/, to make another service. */

/** Begins API keys, metric names and the service's name wherever a machine reads it. */
export const NAME = 'petstore'

/** The same for people. */
export const TITLE = 'Petstore'

/** The version of the interface, as the OpenAPI document says it. */
export const VERSION = '1.0.0'
