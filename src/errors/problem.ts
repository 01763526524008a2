/** The errors of the service by their names, as both surfaces return them: code, message, status and headers. */
import { TRPCError } from '@trpc/server'
import { getHTTPStatusCodeFromError } from '@trpc/server/http'
import { type TRPC_ERROR_CODE_KEY, TRPC_ERROR_CODES_BY_KEY } from '@trpc/server/rpc'
import { ZodError } from 'zod'
import { DatabaseUnavailableError } from '../../db/errors.ts'
import { MAX_BODY, MAX_HEADER_COUNT, MAX_HEADERS } from '../config/product.ts'
import { withoutKeys } from '../keys/key.ts'
import { transformer } from '../wire/encoding.ts'

/** The headers of the response by code, unless the error has its own. */
const usualHeaders: Partial<Record<TRPC_ERROR_CODE_KEY, readonly string[]>> = {
  UNAUTHORIZED: ['WWW-Authenticate', 'Bearer'],
  FORBIDDEN: ['WWW-Authenticate', 'Bearer error="insufficient_scope"'], // RFC 6750, section 3.1
  SERVICE_UNAVAILABLE: ['Retry-After', '5'], // seconds
}

interface Options {
  cause?: unknown
  /** The HTTP status code, if it is not that of the code. */
  status?: number
  /** Each name, then its value. */
  headers?: readonly string[]
}

/** An error whose message the client may see. Only the log contains its cause. */
export class Problem extends TRPCError {
  readonly status: number
  readonly headers: readonly string[]

  constructor(code: TRPC_ERROR_CODE_KEY, message: string, options: Options = {}) {
    // Some messages quote the request, which may contain an API key in the wrong place.
    super({ code, message: withoutKeys(message), cause: options.cause })
    this.status = options.status ?? getHTTPStatusCodeFromError(this)
    this.headers = options.headers ?? usualHeaders[code] ?? []
  }

  /** The body on REST: the Error of the interface document. */
  get body() {
    const { code, message, status } = this
    return { code, message, status }
  }

  /**
   * The form that tRPC's clients expect. For a rejected input, `fields` has the first error of each field
   * by its path; the path of the input itself is `''`.
   */
  get shape() {
    const { code, message, status, cause } = this
    // The cause of a 500 may be the errors of an output.
    const isInput = code === 'BAD_REQUEST' && cause instanceof ZodError
    const errors = isInput ? cause.issues.map(({ path, message }) => [path.join('.'), message]) : []
    const fields: Record<string, string> = Object.fromEntries(errors.reverse())
    const data = { code, httpStatus: status, ...(isInput && { fields }) }
    return { message, code: TRPC_ERROR_CODES_BY_KEY[code], data }
  }

  /** The body for a request that is rejected before its surface is known: clients of both can parse it. */
  get refusal() {
    return { ...this.body, error: transformer.serialize(this.shape) }
  }
}

const catalogue = {
  missingKey: [
    'UNAUTHORIZED',
    'The API key is missing: send the header "Authorization: Bearer <API_KEY>"',
  ],
  invalidKey: [
    'UNAUTHORIZED',
    'The API key is invalid: the header must be "Authorization: Bearer <API_KEY>" with a key of this service',
    { headers: ['WWW-Authenticate', 'Bearer error="invalid_token"'] }, // RFC 6750, section 3
  ],
  readOnlyKey: ['FORBIDDEN', 'The API key may only read: this call needs one that may write'],
  // Of an authenticator of the product
  readOnlyCaller: ['FORBIDDEN', 'You may only read: this call changes something', { headers: [] }],
  wrongOrigin: [
    'FORBIDDEN',
    'The Origin of the request must be that of the service, or of a page that may call it',
    { headers: [] },
  ],
  malformed: ['PARSE_ERROR', 'The request is not well-formed: its JSON cannot be read'],
  // An input of tRPC that is plain JSON
  plainInput: [
    'PARSE_ERROR',
    "The input must be encoded by the transformer of the service's client package",
  ],
  notUtf8: ['PARSE_ERROR', 'The request is not well-formed: its body must be UTF-8'],
  bodyTooLarge: ['PAYLOAD_TOO_LARGE', `The body must have at most ${MAX_BODY} bytes`],
  // An input of tRPC whose short text stands for a long value
  inputTooLarge: [
    'PAYLOAD_TOO_LARGE',
    `The input must have at most ${MAX_BODY} characters and values`,
  ],
  mediaType: [
    'UNSUPPORTED_MEDIA_TYPE',
    'The body must be of the type application/json, in UTF-8, and not compressed',
  ],
  // tRPC has no code for this status.
  headersTooLarge: [
    'BAD_REQUEST',
    `The URL and the headers must have at most ${MAX_HEADERS} bytes, in at most ${MAX_HEADER_COUNT} headers`,
    { status: 431 },
  ],
  invalidUrl: ['BAD_REQUEST', 'The URL of the request is not valid'],
  invalidHost: ['BAD_REQUEST', 'The request must have one valid Host header'],
  notAnObject: ['BAD_REQUEST', 'The body must be a JSON object'],
  keyRunning: [
    'CONFLICT',
    'A request with this Idempotency-Key is still running; try again in a moment',
  ],
  keyUsed: [
    'UNPROCESSABLE_CONTENT',
    'This Idempotency-Key was used for another request; take a new one',
  ],
  nothingHere: ['NOT_FOUND', 'There is nothing at this URL'],
  timeout: ['TIMEOUT', 'The request did not arrive in time'],
  clientGone: ['CLIENT_CLOSED_REQUEST', 'The client has closed the connection'],
  unavailable: [
    'SERVICE_UNAVAILABLE',
    'The service cannot use its database right now; try again later',
  ],
  late: ['SERVICE_UNAVAILABLE', 'The service could not answer in time; try again later'],
  internal: ['INTERNAL_SERVER_ERROR', 'Internal server error'],
} satisfies Record<string, ConstructorParameters<typeof Problem>>

/** Returns an error of the catalogue. Only the log contains its cause. */
export function problem(name: keyof typeof catalogue, cause?: unknown): Problem {
  const [code, message, options]: ConstructorParameters<typeof Problem> = catalogue[name]
  return new Problem(code, message, { ...options, cause })
}

/** The error of a call whose client has closed the connection. It is never sent, so all calls share one. */
export const CLIENT_GONE = problem('clientGone')

/** Returns the error for a method that a URL does not support; `allow` is the value of `Allow`. */
export function methodNotSupported(method: string, allow: string): Problem {
  const message = `${method} is not supported here: use ${allow.replace(/, (?=[^,]*$)/, ' or ')}`
  return new Problem('METHOD_NOT_SUPPORTED', message, { headers: ['Allow', allow] })
}

/** Returns the error for more than `limit` calls a minute. The limit resets after `seconds`. */
export function tooManyRequests(limit: number, seconds: number): Problem {
  const message = `There were more than ${limit} calls in a minute; try again in ${seconds} seconds`
  return new Problem('TOO_MANY_REQUESTS', message, { headers: ['Retry-After', String(seconds)] })
}

/** Returns the error for an input that its schema rejects: its message names each field. */
export function problemOfInput(error: Pick<ZodError, 'issues'>): Problem {
  const errors = error.issues.map(({ path, message }) => {
    const isSentence = path.length === 0 && /^[A-Z]/.test(message) // of zod: `Invalid input: expected …`
    return isSentence ? message : `${path.join('.') || 'The input'} ${message}`
  })
  return new Problem('BAD_REQUEST', errors.join('; '), { cause: error })
}

/**
 * Returns the error to respond with, for any thrown value. Its code and message disclose nothing
 * internal; its `cause` is the thrown value, for the log.
 */
export function toProblem(thrown: unknown): Problem {
  if (thrown instanceof Problem) return thrown
  if (thrown instanceof DatabaseUnavailableError) return problem('unavailable', thrown)
  // That of `signal` of a deadline, which `fetch` rejects with.
  if (thrown instanceof DOMException && thrown.name === 'TimeoutError')
    return problem('late', thrown)
  if (!(thrown instanceof TRPCError)) return problem('internal', thrown)
  const { code, message, cause } = thrown
  // In the stand-in, tRPC wraps the error of a resolver.
  if (code === 'INTERNAL_SERVER_ERROR') return problem('internal', cause ?? thrown)
  if (code === 'BAD_REQUEST' && cause instanceof ZodError) return problemOfInput(cause)
  return new Problem(code, message, { cause })
}
