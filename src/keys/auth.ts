/** Who calls, as the Authorization header says it. */

/** Without a caller it is told apart whether a key was sent at all (RFC 6750, section 3). */
export type Auth =
  | { kind: 'missing' }
  | { kind: 'invalid' }
  | { kind: 'caller'; keyId: bigint; readOnly: boolean }

export const MISSING: Auth = { kind: 'missing' }
export const INVALID: Auth = { kind: 'invalid' }

/**
 * The bearer token of an Authorization header (RFC 6750, section 2.1; the scheme in any case, RFC
 * 9110, section 11.1). Undefined when there is no header, empty when it holds no single token.
 */
export function tokenOf(authorization: string | undefined): string | undefined {
  if (authorization === undefined) return undefined
  return /^bearer +([\w.~+/-]+=*) *$/i.exec(authorization)?.[1] ?? ''
}
