/** The Idempotency-Key header (draft-ietf-httpapi-idempotency-key-header-07). */
import { Problem } from '../errors/problem.ts'
import type { Call } from '../procedure/call.ts'

const MAX_LENGTH = 255

// A string in quotes (RFC 9651, section 3.3.3), or without quotes, as many clients send it. By codes,
// because generated programs have the pattern of the document in quotes.
/** Printable ASCII but for the quote and the backslash. */
const QUOTED = '[\\x20\\x21\\x23-\\x5b\\x5d-\\x7e]'
/** Printable ASCII but for the space, the quote, the comma and the semicolon. */
const BARE = '[\\x21\\x23-\\x2b\\x2d-\\x3a\\x3c-\\x7e]'
const PATTERN = new RegExp(
  `^(?:\\x22((?:${QUOTED}|\\x5c[\\x22\\x5c]){1,${MAX_LENGTH}})\\x22|(${BARE}{1,${MAX_LENGTH}}))$`,
)

/**
 * The header as a parameter of an operation in the OpenAPI document. Its pattern is narrower than that of the
 * service, for tools that make strings of it: of some, a repeated alternative takes all time, and others read
 * `\x22` as three letters, or the length alone.
 */
export const idempotencyParameter = {
  in: 'header',
  name: 'Idempotency-Key',
  schema: {
    type: 'string',
    minLength: 1,
    maxLength: MAX_LENGTH,
    pattern: `^(?:\\x22${QUOTED}{1,${MAX_LENGTH - 2}}\\x22|${BARE}{1,${MAX_LENGTH}})$`,
  },
  description: `A string of up to ${MAX_LENGTH} printable ASCII characters that you choose for this request, best a UUID, never undefined, null, NaN or None, in quotes (draft-ietf-httpapi-idempotency-key-header-07). Between the quotes, the service accepts more than the pattern: the escapes \`\\"\` and \`\\\\\`, and ${MAX_LENGTH} characters. Another API key may use the same value, except one that replaces yours by rotation: both keys share it. A key is kept for a day, unless the operator chose otherwise.`,
} as const

/**
 * Returns the key of a call with its scope: the actor, where a middleware names one, and a holder that has no API key. No
 * two scopes of a key have one text: a key has no NUL. Throws BAD_REQUEST without a valid header, TypeError for an actor
 * that is no string.
 */
export function scopedKeyOf({ idempotencyHeader, actor, caller: { holder } }: Call): string {
  const key = parseIdempotencyKey(idempotencyHeader)
  if (actor !== undefined && typeof actor !== 'string') {
    throw new TypeError('ctx.actor must be a string')
  }
  if (typeof holder === 'string') return `${key}\0${JSON.stringify([actor ?? null, holder])}`
  return actor === undefined ? key : `${key}\0${JSON.stringify(actor)}`
}

function parseIdempotencyKey(header = ''): string {
  const [, quoted, bare] = PATTERN.exec(header) ?? []
  const key = quoted?.replaceAll(/\\(.)/g, '$1') ?? bare
  // JavaScript and Python write a missing value so: all such requests would have the same key.
  if (key !== undefined && !/^(undefined|null|NaN|None)$/.test(key)) return key
  const message = `The header Idempotency-Key must be one string of 1 to ${MAX_LENGTH} ASCII characters, such as "8e03978e-40d5-43e8-bc93-6894a57f9324", and not undefined, null, NaN or None`
  throw new Problem('BAD_REQUEST', message)
}
