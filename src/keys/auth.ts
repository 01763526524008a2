/** The authentication of a request, by its Authorization header. */

/** Milliseconds that a valid key stays in the cache: a revoked key may still work for this long. */
export const KEY_LIFETIME = 10_000

/** The result. The answers to a missing and to an invalid key differ (RFC 6750, section 3). */
export type Auth =
  | { kind: 'missing' }
  | { kind: 'invalid' }
  | { kind: 'caller'; keyId: bigint; readOnly: boolean }

export const MISSING: Auth = { kind: 'missing' }
export const INVALID: Auth = { kind: 'invalid' }

/**
 * Returns the bearer token of an Authorization header (RFC 6750, section 2.1). The scheme is
 * case-insensitive (RFC 9110, section 11.1). Undefined without a header, empty if the header is not
 * one bearer token.
 */
export function tokenOf(authorization: string | undefined): string | undefined {
  if (authorization === undefined) return undefined
  return /^bearer +([\w.~+/-]+=*) *$/i.exec(authorization)?.[1] ?? ''
}
