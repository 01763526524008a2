/** Milliseconds that a valid key stays in the cache: a revoked key may still work for this long. */
export const KEY_LIFETIME = 10_000
