/** Who calls, as the Authorization header says it. */
import type { IncomingMessage } from 'node:http'
import { countHeader } from '../http/request.ts'

/** Without a caller it is told apart whether a key was sent at all (RFC 6750, section 3). */
export type Auth =
  | { kind: 'missing' }
  | { kind: 'invalid' }
  | { kind: 'caller'; keyId: bigint; readOnly: boolean }

export const MISSING: Auth = { kind: 'missing' }
export const INVALID: Auth = { kind: 'invalid' }

/**
 * The bearer token of a request (RFC 6750, section 2.1; the scheme in any case, RFC 9110, section
 * 11.1). Undefined when no Authorization was sent, empty when it holds no single bearer token: of two
 * headers none counts, because a proxy in front may have looked at the other one.
 */
export function bearerToken(req: IncomingMessage): string | undefined {
  const token = tokenOf(req.headers.authorization)
  return token && countHeader(req, 'authorization') > 1 ? '' : token
}

/** The same for the text of the only header. */
export function tokenOf(authorization: string | undefined): string | undefined {
  if (authorization === undefined) return undefined
  return /^bearer +([\w.~+/-]+=*) *$/i.exec(authorization)?.[1] ?? ''
}
