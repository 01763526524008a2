/** The limits of a request. */

/** Maximum bytes of a body. */
export const MAX_BODY = 65_536

/** Maximum bytes of the request line and the headers together. */
export const MAX_HEADERS = 16_384

/** Maximum number of headers. */
export const MAX_HEADER_COUNT = 1_000
