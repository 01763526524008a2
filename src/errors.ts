/** Any thrown thing → one error of the interface, `{code, message, status}`, for both surfaces. */
import { TRPCError } from '@trpc/server'
import { getHTTPStatusCodeFromError } from '@trpc/server/http'
import { type TRPC_ERROR_CODE_KEY, TRPC_ERROR_CODES_BY_KEY } from '@trpc/server/rpc'
import { ZodError } from 'zod'
import { transformer } from '../client/src/encoding.ts'
import { DatabaseUnavailableError } from '../db/errors.ts'
import type { Auth } from './keys/auth.ts'
import { withoutKeys } from './keys/format.ts'
import { MAX_BODY, MAX_HEADER_COUNT, MAX_HEADERS } from './limits.ts'

/** The Error of the interface document; `status` repeats the HTTP status code. */
export interface ApiError {
  code: TRPC_ERROR_CODE_KEY
  message: string
  status: number
}

/** Seconds after which a client is asked to try again when the service is not available. */
const RETRY_AFTER = '5'

/** An error with a message that is fit for the client; its cause is for the log alone. */
const problem = (code: TRPC_ERROR_CODE_KEY, message: string, cause?: unknown): TRPCError =>
  new TRPCError({ code, message, cause })

/**
 * The error to answer for a thrown thing: its code and message are fit for the client, and tell
 * nothing about the inside. `cause` keeps what was thrown, for the log. Each surface calls this once,
 * at its edge.
 */
export function toTRPCError(thrown: unknown): TRPCError {
  if (thrown instanceof DatabaseUnavailableError) return unavailable(thrown)
  if (!(thrown instanceof TRPCError)) return internal(thrown)
  const { code, cause } = thrown
  // tRPC wraps what a resolver threw in an INTERNAL_SERVER_ERROR with the same message.
  if (code === 'INTERNAL_SERVER_ERROR') {
    return cause instanceof DatabaseUnavailableError
      ? unavailable(cause)
      : internal(cause ?? thrown)
  }
  if (code === 'BAD_REQUEST' && cause instanceof ZodError) {
    return problem(code, sentence(cause), cause)
  }
  if (code === 'BAD_REQUEST' && cause instanceof SyntaxError) return malformed(cause)
  // Some of tRPC's messages repeat the path, into which people paste keys.
  const message = withoutKeys(thrown.message)
  return message === thrown.message ? thrown : problem(code, message, cause)
}

/** The body that answers an error, on REST. */
export const toApiError = (error: TRPCError): ApiError => ({
  code: error.code,
  message: error.message,
  status: getHTTPStatusCodeFromError(error),
})

/** The shape of an error that tRPC's clients expect; `fields` says what is wrong with each field. */
export function errorShape({ code, message, status }: ApiError, fields?: Record<string, string>) {
  return {
    message,
    code: TRPC_ERROR_CODES_BY_KEY[code],
    data: { code, httpStatus: status, ...(fields && { fields }) },
  }
}

/** An error that answers what was refused before it was known which surface was asked. */
export interface Refusal extends ApiError {
  /** The same for tRPC's clients, in their encoding. */
  error: string
}

/** The body of a refusal, which clients of both surfaces understand. */
export const refusalOf = (error: ApiError): Refusal => ({
  ...error,
  error: transformer.serialize(errorShape(error)),
})

/**
 * What is wrong with each field of an input, by the field's name; an input that is no object has its
 * words under `''`. Undefined for errors that are not about an input.
 */
export function fieldErrors({ cause }: TRPCError): Record<string, string> | undefined {
  if (!(cause instanceof ZodError)) return undefined
  const fields = cause.issues.map((issue) => [issue.path.join('.'), issue.message])
  return Object.fromEntries(fields.reverse()) // the first of several about one field wins
}

/** The headers that belong to an error, on both surfaces, as a flat list of names and values. */
export function errorHeaders({ code }: TRPCError, auth?: Auth): string[] {
  if (code === 'UNAUTHORIZED') {
    const challenge = auth?.kind === 'invalid' ? 'Bearer error="invalid_token"' : 'Bearer'
    return ['WWW-Authenticate', challenge]
  }
  // RFC 6750, section 3.1
  if (code === 'FORBIDDEN') return ['WWW-Authenticate', 'Bearer error="insufficient_scope"']
  if (code === 'SERVICE_UNAVAILABLE') return ['Retry-After', RETRY_AFTER]
  return []
}

/** The error for a call without a valid key. */
export function unauthorized({ kind }: Auth): TRPCError {
  const message =
    kind === 'missing'
      ? 'The API key is missing: send the header "Authorization: Bearer <API_KEY>"'
      : 'The API key is invalid: the header must be "Authorization: Bearer <API_KEY>" with a key of this service'
  return problem('UNAUTHORIZED', message)
}

export const readOnlyKey = (): TRPCError =>
  problem('FORBIDDEN', 'The API key may only read: this call needs one that may write')

/** The error for JSON, or tRPC's encoding of an input, that cannot be read. */
export const malformed = (cause: unknown): TRPCError =>
  problem('PARSE_ERROR', 'The request is not well-formed: its JSON cannot be read', cause)

export const payloadTooLarge = (): TRPCError =>
  problem('PAYLOAD_TOO_LARGE', `The body must have at most ${MAX_BODY} bytes`)

export const unsupportedMediaType = (): TRPCError =>
  problem(
    'UNSUPPORTED_MEDIA_TYPE',
    'The body must be of the type application/json, in UTF-8, and not compressed',
  )

/** The error for more than `limit` calls a minute; `seconds` later there may be more. */
export const tooManyRequests = (limit: number, seconds: number): TRPCError =>
  problem(
    'TOO_MANY_REQUESTS',
    `There were more than ${limit} calls in a minute; try again in ${seconds} seconds`,
  )

/** What answers a request that did not arrive in time. */
export const REQUEST_TIMEOUT = toApiError(problem('TIMEOUT', 'The request did not arrive in time'))

/** What answers an address or headers beyond the limit; tRPC has no code for this status. */
export const HEADERS_TOO_LARGE: ApiError = {
  code: 'BAD_REQUEST',
  message: `The address and the headers must have at most ${MAX_HEADERS} bytes, in at most ${MAX_HEADER_COUNT} headers`,
  status: 431,
}

export const notFound = (): TRPCError => problem('NOT_FOUND', 'There is nothing at this address')

/** The error for a method that an address does not serve; `allow` is what its Allow header says. */
export function methodNotSupported(method: string, allow: string): TRPCError {
  const message = `${method} is not supported here: use ${allow.replace(/, (?=[^,]*$)/, ' or ')}`
  return problem('METHOD_NOT_SUPPORTED', message)
}

/** Why a call is given up whose client does not wait any more. Nobody is told, so one will do for all. */
export const CLIENT_GONE = problem('CLIENT_CLOSED_REQUEST', 'The client has gone')

/** What is wrong with an input, as one sentence that names each field. */
export function sentence({ issues }: ZodError): string {
  return issues
    .map(({ path, message }) => `${path.length > 0 ? path.join('.') : 'The input'} ${message}`)
    .join('; ')
}

export const unavailable = (cause?: unknown): TRPCError =>
  problem(
    'SERVICE_UNAVAILABLE',
    'The service cannot use its database right now; try again later',
    cause,
  )

/** The error for a bug. */
export const internal = (cause?: unknown): TRPCError =>
  problem('INTERNAL_SERVER_ERROR', 'Internal server error', cause)
