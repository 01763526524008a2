/** Milliseconds that a key found valid is not looked up again: how long a revoked key may work on. */
export const KEY_LIFETIME = 10_000
