/** How much one request may ask for. */

/** Bytes of a request's body. */
export const MAX_BODY = 65_536

/** Bytes of a request's first line, address included, and headers. */
export const MAX_HEADERS = 16_384

/** Requests that one connection may have sent before it has the answer to the first of them. */
export const MAX_PIPELINED = 32

/** Calls in one tRPC batch. */
export const MAX_BATCH = 20
