/** What every call is made with, on both surfaces: who calls, and what can be reached. */
import { TRPCError } from '@trpc/server'
import type { Deadline } from '../db/deadline.ts'
import type { Idempotency } from './idempotency/store.ts'
import type { Authenticator, Caller } from './keys/authenticator.ts'
import type { PetStore } from './pets/store.ts'

export interface Context {
  /** Undefined when the request's API key is missing or invalid. */
  caller: Caller | undefined
  /** The WWW-Authenticate header for a request without a valid key (RFC 6750, section 3). */
  challenge: string
  pets: PetStore
  idempotency: Idempotency
  /** When the call is given up. */
  deadline: Deadline
  /** The Idempotency-Key header as it was sent; only some procedures look at it. */
  idempotencyHeader: string | undefined
  /**
   * Filled by a procedure that gave a page: `next` is the cursor of the next page, if there is one.
   * An object of its own, for tRPC hands a copy of the context to what follows a middleware.
   */
  page: { next?: bigint | undefined }
}

/** What all contexts have in common, and where callers are found. */
export interface Resources extends Pick<Context, 'pets' | 'idempotency'> {
  authenticator: Pick<Authenticator, 'known' | 'find'>
}

/** The headers that a context is made of. */
interface Headers {
  authorization: string | undefined
  idempotencyKey: string | undefined
}

/** The context of a request with these headers. May throw DatabaseUnavailableError. */
export async function createContext(
  { pets, idempotency, authenticator }: Resources,
  { authorization, idempotencyKey: idempotencyHeader }: Headers,
  deadline: Deadline,
): Promise<Context> {
  // RFC 9110, section 11.1: the scheme is case-insensitive. RFC 6750, section 2.1: the token.
  const key = authorization?.match(/^bearer +([\w.~+/-]+=*) *$/i)?.[1]
  const caller = key && (authenticator.known(key) ?? (await authenticator.find(key, deadline)))
  const challenge = authorization === undefined ? 'Bearer' : 'Bearer error="invalid_token"'
  return {
    caller: caller || undefined,
    challenge,
    pets,
    idempotency,
    deadline,
    idempotencyHeader,
    page: {},
  }
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
