/** The authentication of a request, by its Authorization header. */

/** Milliseconds that a valid key stays in the cache: a revoked key may still work for this long. */
export const KEY_LIFETIME = 10_000

/** A caller with a valid API key. */
export interface Caller {
  keyId: bigint
  readOnly: boolean
}

/** The result. The answers to a missing and to an invalid key differ (RFC 6750, section 3). */
export type Auth = Caller | 'missing' | 'invalid'

/**
 * Returns the bearer token of an Authorization header (RFC 6750, section 2.1). The scheme is
 * case-insensitive (RFC 9110, section 11.1). Undefined without a header, empty if the header is not
 * one bearer token.
 */
export function tokenOf(authorization: string | undefined): string | undefined {
  if (authorization === undefined) return undefined
  return /^bearer +([\w.~+/-]+=*) *$/i.exec(authorization)?.[1] ?? ''
}
