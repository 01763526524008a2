/** An error as both surfaces return it: code, message, status and headers. */
import { TRPCError } from '@trpc/server'
import { getHTTPStatusCodeFromError } from '@trpc/server/http'
import { type TRPC_ERROR_CODE_KEY, TRPC_ERROR_CODES_BY_KEY } from '@trpc/server/rpc'
import { ZodError } from 'zod'
import { transformer } from '../../client/src/encoding.ts'
import { withoutKeys } from '../keys/key.ts'

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
  /** Names and values in turn. */
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
