/** The errors of the interface, for both surfaces: each knows its code, message, status and headers. */
import { TRPCError } from '@trpc/server'
import { getHTTPStatusCodeFromError } from '@trpc/server/http'
import { type TRPC_ERROR_CODE_KEY, TRPC_ERROR_CODES_BY_KEY } from '@trpc/server/rpc'
import { ZodError } from 'zod'
import { transformer } from '../../client/src/encoding.ts'
import { DatabaseUnavailableError } from '../../db/errors.ts'
import { MAX_BODY, MAX_HEADER_COUNT, MAX_HEADERS } from '../config/limits.ts'
import { withoutKeys } from '../keys/format.ts'

/** The Error of the interface document; `status` repeats the HTTP status code. */
export interface ApiError {
  code: TRPC_ERROR_CODE_KEY
  message: string
  status: number
}

/** Seconds after which a client is asked to try again when the service is not available. */
const RETRY_AFTER = '5'

/** The headers of an error of a code, where it brings no others. */
const usualHeaders: Partial<Record<TRPC_ERROR_CODE_KEY, readonly string[]>> = {
  UNAUTHORIZED: ['WWW-Authenticate', 'Bearer'],
  // RFC 6750, section 3.1
  FORBIDDEN: ['WWW-Authenticate', 'Bearer error="insufficient_scope"'],
  SERVICE_UNAVAILABLE: ['Retry-After', RETRY_AFTER],
}

/** An error with a message that is fit for the client; its cause is for the log alone. */
export class Problem extends TRPCError {
  /** The HTTP status code. */
  readonly status: number
  /** The headers of its answer, names and values in turn. */
  readonly headers: readonly string[]

  constructor(
    code: TRPC_ERROR_CODE_KEY,
    message: string,
    {
      cause,
      headers = usualHeaders[code] ?? [],
    }: { cause?: unknown; headers?: readonly string[] } = {},
  ) {
    // Some messages repeat what was sent, which may be an API key in the wrong place.
    super({ code, message: withoutKeys(message), cause })
    this.status = getHTTPStatusCodeFromError(this)
    this.headers = headers
  }

  /** What is wrong with each field of an input, by its name; undefined where no input is refused. */
  get fields(): Record<string, string> | undefined {
    return fieldErrors(this)
  }
}

const problem = (code: TRPC_ERROR_CODE_KEY, message: string, cause?: unknown): Problem =>
  new Problem(code, message, { cause })

/**
 * The error to answer for anything that was thrown: its code and message are fit for the client, and
 * tell nothing about the inside. `cause` keeps what was thrown, for the log.
 */
export function toProblem(thrown: unknown): Problem {
  if (thrown instanceof Problem && thrown.code !== 'INTERNAL_SERVER_ERROR') return thrown
  if (thrown instanceof DatabaseUnavailableError) return unavailable(thrown)
  if (!(thrown instanceof TRPCError)) return internal(thrown)
  const { code, cause } = thrown
  // tRPC wraps what a resolver threw in an INTERNAL_SERVER_ERROR with the same message.
  if (code === 'INTERNAL_SERVER_ERROR') {
    return cause instanceof DatabaseUnavailableError
      ? unavailable(cause)
      : internal(cause ?? thrown)
  }
  if (code === 'BAD_REQUEST' && cause instanceof ZodError) return problemOfInput(cause)
  if (code === 'BAD_REQUEST' && cause instanceof SyntaxError) return malformed(cause)
  return problem(code, thrown.message, cause)
}

/** The body that answers an error, on REST. */
export const toApiError = ({ code, message, status }: Problem): ApiError => ({
  code,
  message,
  status,
})

/** The shape of an error that tRPC's clients expect; `fields` says what is wrong with each field. */
export function errorShape(error: ApiError & { fields?: Record<string, string> | undefined }) {
  const { code, message, status, fields } = error
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
  code: error.code,
  message: error.message,
  status: error.status,
  error: transformer.serialize(errorShape(error)),
})

// An input that is no object has its words under `''`.
function fieldErrors({ cause }: TRPCError): Record<string, string> | undefined {
  if (!(cause instanceof ZodError)) return undefined
  const fields = cause.issues.map((issue) => [issue.path.join('.'), issue.message])
  return Object.fromEntries(fields.reverse()) // the first of several about one field wins
}

/** The error for a call without a valid key. */
export function unauthorized(kind: 'missing' | 'invalid'): Problem {
  // RFC 6750, section 3
  const challenge = kind === 'invalid' ? 'Bearer error="invalid_token"' : 'Bearer'
  const message =
    kind === 'missing'
      ? 'The API key is missing: send the header "Authorization: Bearer <API_KEY>"'
      : 'The API key is invalid: the header must be "Authorization: Bearer <API_KEY>" with a key of this service'
  return new Problem('UNAUTHORIZED', message, { headers: ['WWW-Authenticate', challenge] })
}

/** The error for a call that changes something, by a key that may only read. */
export const readOnlyKey = (): Problem =>
  problem('FORBIDDEN', 'The API key may only read: this call needs one that may write')

/** The error for JSON, or tRPC's encoding of an input, that cannot be read. */
export const malformed = (cause: unknown): Problem =>
  problem('PARSE_ERROR', 'The request is not well-formed: its JSON cannot be read', cause)

export const payloadTooLarge = (): Problem =>
  problem('PAYLOAD_TOO_LARGE', `The body must have at most ${MAX_BODY} bytes`)

export const unsupportedMediaType = (): Problem =>
  problem(
    'UNSUPPORTED_MEDIA_TYPE',
    'The body must be of the type application/json, in UTF-8, and not compressed',
  )

/** The error for more than `limit` calls a minute; `seconds` later there may be more. */
export const tooManyRequests = (limit: number, seconds: number): Problem =>
  new Problem(
    'TOO_MANY_REQUESTS',
    `There were more than ${limit} calls in a minute; try again in ${seconds} seconds`,
    { headers: ['Retry-After', String(seconds)] },
  )

/** What answers a request that did not arrive in time. */
export const REQUEST_TIMEOUT = toApiError(problem('TIMEOUT', 'The request did not arrive in time'))

/** What answers an address or headers beyond the limit; tRPC has no code for this status. */
export const HEADERS_TOO_LARGE: ApiError = {
  code: 'BAD_REQUEST',
  message: `The address and the headers must have at most ${MAX_HEADERS} bytes, in at most ${MAX_HEADER_COUNT} headers`,
  status: 431,
}

export const notFound = (): Problem => problem('NOT_FOUND', 'There is nothing at this address')

/** The error for a method that an address does not serve; `allow` is what its Allow header says. */
export function methodNotSupported(method: string, allow: string): Problem {
  const message = `${method} is not supported here: use ${allow.replace(/, (?=[^,]*$)/, ' or ')}`
  return new Problem('METHOD_NOT_SUPPORTED', message, { headers: ['Allow', allow] })
}

/** The reason to give up a call whose client has gone. It is never answered, so one serves all calls. */
export const CLIENT_GONE = problem('CLIENT_CLOSED_REQUEST', 'The client has gone')

/** The error for an input that its schema refuses. */
export const problemOfInput = (error: ZodError): Problem =>
  problem('BAD_REQUEST', sentence(error), error)

/** What is wrong with an input, as one sentence that names each field. */
export function sentence({ issues }: Pick<ZodError, 'issues'>): string {
  return issues
    .map(({ path, message }) => `${path.length > 0 ? path.join('.') : 'The input'} ${message}`)
    .join('; ')
}

export const unavailable = (cause?: unknown): Problem =>
  problem(
    'SERVICE_UNAVAILABLE',
    'The service cannot use its database right now; try again later',
    cause,
  )

/** The error for a bug. */
export const internal = (cause?: unknown): Problem =>
  problem('INTERNAL_SERVER_ERROR', 'Internal server error', cause)
