/** The errors that both surfaces return: code, message, status and headers of each. */
import { TRPCError } from '@trpc/server'
import { getHTTPStatusCodeFromError } from '@trpc/server/http'
import { type TRPC_ERROR_CODE_KEY, TRPC_ERROR_CODES_BY_KEY } from '@trpc/server/rpc'
import { ZodError } from 'zod'
import { transformer } from '../../client/src/encoding.ts'
import { DatabaseUnavailableError } from '../../db/errors.ts'
import { MAX_BODY, MAX_HEADER_COUNT, MAX_HEADERS } from '../config/limits.ts'
import { withoutKeys } from '../keys/key.ts'

/** The Error of the interface document; `status` repeats the HTTP status code. */
export interface ApiError {
  code: TRPC_ERROR_CODE_KEY
  message: string
  status: number
}

/** `Retry-After` of 503, in seconds. */
const RETRY_AFTER = '5'

/** The headers of the response by code, unless the error has its own. */
const usualHeaders: Partial<Record<TRPC_ERROR_CODE_KEY, readonly string[]>> = {
  UNAUTHORIZED: ['WWW-Authenticate', 'Bearer'],
  // RFC 6750, section 3.1
  FORBIDDEN: ['WWW-Authenticate', 'Bearer error="insufficient_scope"'],
  SERVICE_UNAVAILABLE: ['Retry-After', RETRY_AFTER],
}

/** An error whose message the client may see. Only the log contains its cause. */
export class Problem extends TRPCError {
  /** The HTTP status code. */
  readonly status: number
  /** The headers of the response: names and values in turn. */
  readonly headers: readonly string[]

  constructor(
    code: TRPC_ERROR_CODE_KEY,
    message: string,
    {
      cause,
      headers = usualHeaders[code] ?? [],
    }: { cause?: unknown; headers?: readonly string[] } = {},
  ) {
    // Some messages quote the request, which may contain an API key in the wrong place.
    super({ code, message: withoutKeys(message), cause })
    this.status = getHTTPStatusCodeFromError(this)
    this.headers = headers
  }

  /**
   * The first error of each field of a rejected input, by the path of the field; the path of the
   * input itself is `''`. Undefined for all other problems.
   */
  get fields(): Record<string, string> | undefined {
    // The cause of a 500 may be the errors of an output.
    if (this.code !== 'BAD_REQUEST' || !(this.cause instanceof ZodError)) return undefined
    const fields = this.cause.issues.map(({ path, message }) => [path.join('.'), message])
    return Object.fromEntries(fields.reverse())
  }
}

const problem = (code: TRPC_ERROR_CODE_KEY, message: string, cause?: unknown): Problem =>
  new Problem(code, message, { cause })

/**
 * Returns the error to respond with, for any thrown value. Its code and message disclose nothing
 * internal; its `cause` is the thrown value, for the log.
 */
export function toProblem(thrown: unknown): Problem {
  if (thrown instanceof Problem && thrown.code !== 'INTERNAL_SERVER_ERROR') return thrown
  if (thrown instanceof DatabaseUnavailableError) return unavailable(thrown)
  if (!(thrown instanceof TRPCError)) return internal(thrown)
  const { code, cause } = thrown
  // tRPC wraps the error of a resolver in an INTERNAL_SERVER_ERROR with the same message.
  if (code === 'INTERNAL_SERVER_ERROR') {
    return cause instanceof DatabaseUnavailableError
      ? unavailable(cause)
      : internal(cause ?? thrown)
  }
  if (code === 'BAD_REQUEST' && cause instanceof ZodError) return problemOfInput(cause)
  if (code === 'BAD_REQUEST' && cause instanceof SyntaxError) return malformed(cause)
  return problem(code, thrown.message, cause)
}

/** Returns the body of an error on REST: a Problem has more fields. */
export const toApiError = ({ code, message, status }: ApiError): ApiError => ({
  code,
  message,
  status,
})

/** Returns an error in the shape that tRPC's clients expect, with the errors of the input's fields. */
export function errorShape(error: ApiError & { fields?: Record<string, string> | undefined }) {
  const { code, message, status, fields } = error
  return {
    message,
    code: TRPC_ERROR_CODES_BY_KEY[code],
    data: { code, httpStatus: status, ...(fields && { fields }) },
  }
}

/** The error for a request that is rejected before its surface is known. */
export interface Refusal extends ApiError {
  /** The same error in the encoding of tRPC's clients. */
  error: string
}

/** Returns a body that clients of both surfaces can parse. */
export const refusalOf = (error: ApiError): Refusal => ({
  ...toApiError(error),
  error: transformer.serialize(errorShape(error)),
})

/** Returns the error for a request without a valid API key. */
export function unauthorized(kind: 'missing' | 'invalid'): Problem {
  // RFC 6750, section 3
  const challenge = kind === 'invalid' ? 'Bearer error="invalid_token"' : 'Bearer'
  const message =
    kind === 'missing'
      ? 'The API key is missing: send the header "Authorization: Bearer <API_KEY>"'
      : 'The API key is invalid: the header must be "Authorization: Bearer <API_KEY>" with a key of this service'
  return new Problem('UNAUTHORIZED', message, { headers: ['WWW-Authenticate', challenge] })
}

/** Returns the error for a mutation with a read-only API key. */
export const readOnlyKey = (): Problem =>
  problem('FORBIDDEN', 'The API key may only read: this call needs one that may write')

/** Returns the error for malformed JSON, and for an input that is not in tRPC's encoding. */
export const malformed = (cause: unknown): Problem =>
  problem('PARSE_ERROR', 'The request is not well-formed: its JSON cannot be read', cause)

/** Returns the error for a body of more than `MAX_BODY` bytes. */
export const payloadTooLarge = (): Problem =>
  problem('PAYLOAD_TOO_LARGE', `The body must have at most ${MAX_BODY} bytes`)

/** Returns the error for an input of tRPC whose short text stands for a long value. */
export const inputTooLarge = (): Problem =>
  problem('PAYLOAD_TOO_LARGE', `The input must have at most ${MAX_BODY} characters and values`)

/** Returns the error for a body that is not uncompressed JSON in UTF-8. */
export const unsupportedMediaType = (): Problem =>
  problem(
    'UNSUPPORTED_MEDIA_TYPE',
    'The body must be of the type application/json, in UTF-8, and not compressed',
  )

/** Returns the error for more than `limit` calls a minute. The limit resets after `seconds`. */
export const tooManyRequests = (limit: number, seconds: number): Problem =>
  new Problem(
    'TOO_MANY_REQUESTS',
    `There were more than ${limit} calls in a minute; try again in ${seconds} seconds`,
    { headers: ['Retry-After', String(seconds)] },
  )

/** The error for a request that does not arrive within the timeout. */
export const REQUEST_TIMEOUT = toApiError(problem('TIMEOUT', 'The request did not arrive in time'))

/** The error for a URL and headers beyond the limits. tRPC has no code for status 431. */
export const HEADERS_TOO_LARGE: ApiError = {
  code: 'BAD_REQUEST',
  message: `The URL and the headers must have at most ${MAX_HEADERS} bytes, in at most ${MAX_HEADER_COUNT} headers`,
  status: 431,
}

/** The message for a URL that cannot be parsed, with 400. */
export const INVALID_URL = 'The URL of the request is not valid'

/** Returns the error for a URL that the service does not have. */
export const notFound = (): Problem => problem('NOT_FOUND', 'There is nothing at this URL')

/** Returns the error for a method that a URL does not support; `allow` is the value of `Allow`. */
export function methodNotSupported(method: string, allow: string): Problem {
  const message = `${method} is not supported here: use ${allow.replace(/, (?=[^,]*$)/, ' or ')}`
  return new Problem('METHOD_NOT_SUPPORTED', message, { headers: ['Allow', allow] })
}

/** The error of a call whose client closes the connection. It is never sent, so all calls share one. */
export const CLIENT_GONE = problem('CLIENT_CLOSED_REQUEST', 'The client has closed the connection')

/** Returns the error for an input that its schema rejects. */
export const problemOfInput = (error: ZodError): Problem =>
  problem('BAD_REQUEST', sentence(error), error)

/** Returns the errors of an input as one sentence, which names each field. */
export function sentence({ issues }: Pick<ZodError, 'issues'>): string {
  return issues
    .map(({ path, message }) => `${path.length > 0 ? path.join('.') : 'The input'} ${message}`)
    .join('; ')
}

/** Returns the error for a database that the service cannot use. */
export const unavailable = (cause?: unknown): Problem =>
  problem(
    'SERVICE_UNAVAILABLE',
    'The service cannot use its database right now; try again later',
    cause,
  )

/** Returns the error for a bug. Only the log contains its cause. */
export const internal = (cause?: unknown): Problem =>
  problem('INTERNAL_SERVER_ERROR', 'Internal server error', cause)
