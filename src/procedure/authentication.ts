/** Callers without an API key: those of an authenticator of the product, and those of public procedures. */
import type { TRPCError } from '@trpc/server'
import { Problem, problem, toProblem } from '../errors/problem.ts'
import { type Caller, visiblePrefix } from '../keys/key.ts'
import type { RequestHeaders } from './headers.ts'

/**
 * A caller without an API key; `holder` is a text that no two callers have, such as the subject of a token. What else an
 * authenticator returns, such as a role, is in `ctx.caller`, too: see `CallerOf`.
 */
type CallerWithoutKey = Pick<Caller, 'name' | 'readOnly'> & { holder: string }

/**
 * The type of `ctx.caller` with what an authenticator returns besides, which callers by an API key and anyone lack. The
 * builder takes it: `proceduresWith<Stores, { caller: CallerOf<typeof bySession> }>()`.
 * @public Products with a sign-in of their own need it, such as that of test/teams.
 */
export type CallerOf<Own extends Pick<Authentication, 'callerOf'>> = Caller &
  Partial<Omit<NonNullable<Awaited<ReturnType<Own['callerOf']>>>, keyof Caller>>

/** An authenticator of the product, in place of API keys or before them. */
export interface Authentication {
  /**
   * Returns the caller of a request; undefined for one without credentials of this kind. Throws UNAUTHORIZED for
   * invalid ones. `headers` have `Authorization`; `signal` aborts at the deadline. It runs for each
   * request, before its body is read, and again after a wait for the rest of it.
   */
  callerOf(request: {
    headers: RequestHeaders
    signal: AbortSignal
  }): Promise<CallerWithoutKey | undefined> | CallerWithoutKey | undefined
  /** Whether a request without these credentials may have an API key. */
  besideApiKeys: boolean
  /** The message of 401 for a request without credentials. */
  message: string
  /** What 401 says in `WWW-Authenticate` (RFC 9110, section 11.6.1), such as `Bearer realm="team"`. */
  challenge: string
  /** The security scheme in the document. Of a cookie, mutations need an `Origin` that may call the service. */
  scheme:
    | { type: 'http'; scheme: string; bearerFormat?: string; description: string }
    | { type: 'apiKey'; in: 'cookie' | 'header'; name: string; description: string }
}

/** Whether browsers send the credentials by themselves, with requests of any page. */
export const isCookie = ({ scheme }: Authentication): boolean =>
  scheme.type === 'apiKey' && scheme.in === 'cookie'

/** Returns the 401 of a request without a caller. `token` is what it has in the place of an API key, if anything. */
export function withoutCaller(
  authentication: Authentication | undefined,
  token: string | undefined,
): Problem {
  // What is no API key may be a token that the authenticator has passed on.
  const isKey = token !== undefined && visiblePrefix(token) !== undefined
  if (authentication && !isKey) return unauthorized(authentication)
  return problem(token === undefined ? 'missingKey' : 'invalidKey')
}

/** Returns the 401 of an authenticator: of a request without credentials, or for what it has thrown. */
export function unauthorized(
  { challenge, besideApiKeys, message }: Authentication,
  thrown: Pick<TRPCError, 'message' | 'cause'> = { message },
): Problem {
  const schemes = besideApiKeys ? `${challenge}, Bearer` : challenge
  const headers = ['WWW-Authenticate', schemes]
  return new Problem('UNAUTHORIZED', thrown.message, { cause: thrown.cause, headers })
}

/** Returns the caller that an authenticator finds, or undefined. Throws its errors, and UNAUTHORIZED as above. */
export async function authenticate(
  authentication: Authentication,
  request: Parameters<Authentication['callerOf']>[0],
): Promise<(Caller & CallerWithoutKey) | undefined> {
  try {
    const caller = await authentication.callerOf(request)
    return caller && { ...caller, keyId: undefined } // not a claim with this name
  } catch (thrown) {
    const error = toProblem(thrown)
    throw error.code === 'UNAUTHORIZED' ? unauthorized(authentication, error) : error
  }
}

/** The caller of a public procedure. */
export const ANYONE: Caller = { name: 'anyone', holder: 'anyone', readOnly: false }
