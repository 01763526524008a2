/** What every call is made with, on both surfaces: who calls, and what can be reached. */
import { TRPCError } from '@trpc/server'
import { DatabaseTimeoutError } from '../db/errors.ts'
import { within } from '../db/within.ts'
import type { Caller } from './keys/authenticator.ts'
import type { PetStore } from './pets/schema.ts'

export interface Context {
  /** Undefined when the request's API key is missing or invalid. */
  caller: Caller | undefined
  /** The WWW-Authenticate header for a request without a valid key (RFC 6750, section 3). */
  challenge: string
  pets: PetStore
  /** Milliseconds that a call may take. */
  timeout: number
  /** The Idempotency-Key header as it was sent; only some procedures look at it. */
  idempotencyHeader: string | undefined
  /**
   * Filled by a procedure that gave a page: `next` is the cursor of the next page, if there is one.
   * An object of its own, for tRPC hands a copy of the context to what follows a middleware.
   */
  page: { next?: bigint | undefined }
}

/** What all contexts have in common, and where callers are found. */
export interface Resources extends Pick<Context, 'pets' | 'timeout'> {
  /** The caller of an API key that was found valid a moment ago. */
  known(key: string): Caller | undefined
  /** The caller of an API key, or undefined. May throw DatabaseUnavailableError. */
  authenticate(key: string): Promise<Caller | undefined>
}

/** The headers that a context is made of. */
interface Headers {
  authorization: string | undefined
  idempotencyKey: string | undefined
}

/** The key in an Authorization header; undefined when there is none. */
export function bearerKey(authorization: string | undefined): string | undefined {
  // RFC 9110, section 11.1: the scheme is case-insensitive. RFC 6750, section 2.1: the token.
  return authorization?.match(/^bearer +([\w.~+/-]+=*) *$/i)?.[1]
}

/** The context of a request with these headers. What `authenticate` throws, this throws. */
export async function createContext(
  { pets, timeout, authenticate }: Resources,
  { authorization, idempotencyKey: idempotencyHeader }: Headers,
): Promise<Context> {
  const key = bearerKey(authorization)
  const late = () => new DatabaseTimeoutError(timeout)
  const caller =
    key === undefined ? undefined : await within(authenticate(key), timeout, undefined, late)
  const challenge = authorization === undefined ? 'Bearer' : 'Bearer error="invalid_token"'
  return { caller, challenge, pets, timeout, idempotencyHeader, page: {} }
}

/** The caller of a context. Throws UNAUTHORIZED when there is none. */
export function requireCaller({ caller, challenge }: Context): Caller {
  if (caller) return caller
  const message =
    challenge === 'Bearer'
      ? 'The API key is missing: send the header "Authorization: Bearer <API_KEY>"'
      : 'The API key is invalid: the header must be "Authorization: Bearer <API_KEY>" with a key of this service'
  throw new TRPCError({ code: 'UNAUTHORIZED', message })
}
