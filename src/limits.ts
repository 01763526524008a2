/** How much one request may ask for. */

/** Bytes of a request's body. */
export const MAX_BODY = 65_536

/** Calls in one tRPC batch. */
export const MAX_BATCH = 20
