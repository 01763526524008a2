/** What the product is called, and the limits of a request. */

/** The name for programs: API keys and metric names begin with it. */
export const NAME = 'petstore'

/** The name for people. */
export const TITLE = 'Petstore'

/** The version of the interface, in the OpenAPI document. */
export const VERSION = '1.0.0'

/** Maximum bytes of a body. */
export const MAX_BODY = 65_536

/** Maximum bytes of the request line and the headers together. */
export const MAX_HEADERS = 16_384

/** Maximum number of headers, as of Apache and Envoy: each takes more memory than its characters. */
export const MAX_HEADER_COUNT = 100
