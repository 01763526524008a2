/** How much one request may ask for. */

/** Bytes of a request's body. */
export const MAX_BODY = 65_536

/** Bytes of a request's first line, address included, and headers. */
export const MAX_HEADERS = 16_384

/** How many headers a request may have. */
export const MAX_HEADER_COUNT = 1_000
