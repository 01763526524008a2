/** Any thrown thing → one error of the interface, `{code, message, status}`, for both surfaces. */
import { TRPCError } from '@trpc/server'
import { getHTTPStatusCodeFromError } from '@trpc/server/http'
import type { TRPC_ERROR_CODE_KEY } from '@trpc/server/rpc'
import { HTTP_STATUS_TRPC_ERROR_CODE } from 'trpc-to-openapi'
import { ZodError } from 'zod'
import { DatabaseUnavailableError } from '../db/errors.ts'
import { withoutKeys } from './keys/format.ts'
import { MAX_BODY } from './limits.ts'

/** The Error of the interface document; `status` repeats the HTTP status code. */
export interface ApiError {
  code: TRPC_ERROR_CODE_KEY
  message: string
  status: number
}

/** Seconds after which a client is asked to try again when the service is not available. */
const RETRY_AFTER = 5

/**
 * The error to answer for a thrown thing: its code and message are fit for the client, and tell
 * nothing about the inside. `cause` keeps what was thrown, for the log.
 */
export function toTRPCError(thrown: unknown): TRPCError {
  if (thrown instanceof DatabaseUnavailableError) return unavailable(thrown)
  if (!(thrown instanceof TRPCError)) return fromHttpError(thrown) ?? internal(thrown)
  const { code, cause } = thrown
  // tRPC wraps what a resolver threw in an INTERNAL_SERVER_ERROR with the same message.
  if (code === 'INTERNAL_SERVER_ERROR') {
    return cause instanceof DatabaseUnavailableError
      ? unavailable(cause)
      : internal(cause ?? thrown)
  }
  if (code === 'BAD_REQUEST' && cause instanceof ZodError) {
    return new TRPCError({ code, message: sentence(cause), cause })
  }
  if (code === 'BAD_REQUEST' && cause instanceof SyntaxError) return malformed(cause)
  // Some of tRPC's messages repeat the path.
  const message = withoutKeys(thrown.message)
  return message === thrown.message ? thrown : new TRPCError({ code, message, cause })
}

/** The body of the answer to a thrown thing, on REST. */
export function toApiError(thrown: unknown): ApiError {
  const error = toTRPCError(thrown)
  return { code: error.code, message: error.message, status: getHTTPStatusCodeFromError(error) }
}

/** The same error without what caused it, for those who would tell the client of the cause. */
export function withoutCause({ code, message }: TRPCError): TRPCError {
  return new TRPCError({ code, message })
}

/** What is wrong with each field of an input, by the field's name; undefined for other errors. */
export function fieldErrors(error: TRPCError): Record<string, string> | undefined {
  if (!(error.cause instanceof ZodError)) return undefined
  const fields = error.cause.issues.map((issue) => [issue.path.join('.'), issue.message])
  return Object.fromEntries(fields.reverse()) // the first of several about one field wins
}

/** The headers that belong to an error, on both surfaces. */
export function errorHeaders({ code }: TRPCError, challenge = 'Bearer'): Record<string, string> {
  if (code === 'UNAUTHORIZED') return { 'WWW-Authenticate': challenge }
  if (code === 'SERVICE_UNAVAILABLE') return { 'Retry-After': String(RETRY_AFTER) }
  return {}
}

/** The error for JSON, or tRPC's encoding of an input, that cannot be read. */
export function malformed(cause: unknown): TRPCError {
  const message = 'The request is not well-formed: its JSON cannot be read'
  return new TRPCError({ code: 'PARSE_ERROR', message, cause })
}

function sentence({ issues }: ZodError): string {
  return issues
    .map(({ path, message }) => `${path.length > 0 ? path.join('.') : 'The input'} ${message}`)
    .join('; ')
}

function unavailable(cause: unknown): TRPCError {
  const message = 'The service cannot use its database right now; try again later'
  return new TRPCError({ code: 'SERVICE_UNAVAILABLE', message, cause })
}

function internal(cause: unknown): TRPCError {
  return new TRPCError({ code: 'INTERNAL_SERVER_ERROR', message: 'Internal server error', cause })
}

// What Express and its parsers throw: https://expressjs.com/en/resources/middleware/body-parser.html#errors
function fromHttpError(thrown: unknown): TRPCError | undefined {
  const { status, type } = (thrown ?? {}) as { status?: unknown; type?: unknown }
  if (typeof status !== 'number' || status < 400 || status > 499) return undefined
  const codes: Record<number, TRPC_ERROR_CODE_KEY> = HTTP_STATUS_TRPC_ERROR_CODE
  const code = codes[status] ?? 'BAD_REQUEST'
  const message = httpMessages[String(type)] ?? 'The request cannot be read'
  return new TRPCError({ code, message, cause: thrown })
}

const httpMessages: Record<string, string> = {
  'entity.too.large': `The body must have at most ${MAX_BODY} bytes`,
  'encoding.unsupported': 'The body must not be compressed',
  'request.aborted': 'The body did not arrive whole',
  'request.size.invalid': 'The body does not have the length that Content-Length says',
}
