/** The Idempotency-Key header (draft-ietf-httpapi-idempotency-key-header-07). */
import { TRPCError } from '@trpc/server'
import { z } from 'zod'

const MAX_LENGTH = 255

/** The header, for the OpenAPI document. */
export const IdempotencyHeaders = z.object({
  'Idempotency-Key': z
    .string()
    .min(1)
    .meta({
      description: `A string of up to ${MAX_LENGTH} ASCII characters that you choose for this creation, best a UUID, in quotes (draft-ietf-httpapi-idempotency-key-header-07). It counts for your API key alone and is kept for a day, unless the operator chose otherwise.`,
      examples: ['"8e03978e-40d5-43e8-bc93-6894a57f9324"'],
    })
    .optional(),
})

/**
 * The key of a header: a string in quotes (RFC 9651, section 3.3.3) or, as many clients send it,
 * without. Undefined when there is no header; throws BAD_REQUEST when it is something else.
 */
export function parseIdempotencyKey(header: string | undefined): string | undefined {
  if (header === undefined) return undefined
  const quoted = /^"((?:[ !#-[\]-~]|\\["\\])*)"$/.exec(header)?.[1]?.replaceAll(/\\(.)/g, '$1')
  const key = quoted ?? /^[!#-+\--:<-~]+$/.exec(header)?.[0]
  if (key === undefined || key === '' || key.length > MAX_LENGTH) {
    const message = `The header Idempotency-Key must be one string of 1 to ${MAX_LENGTH} ASCII characters, such as "8e03978e-40d5-43e8-bc93-6894a57f9324"`
    throw new TRPCError({ code: 'BAD_REQUEST', message })
  }
  return key
}

/** The error for a key that is in use at this moment, or was used for another request. */
export function idempotencyError(reason: 'running' | 'different'): TRPCError {
  return reason === 'running'
    ? new TRPCError({
        code: 'CONFLICT',
        message: 'A request with this Idempotency-Key is still running; try again in a moment',
      })
    : new TRPCError({
        code: 'UNPROCESSABLE_CONTENT',
        message: 'This Idempotency-Key was used for another body; take a new one',
      })
}
