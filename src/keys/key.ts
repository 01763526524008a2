/** API keys: their format, what the database stores of them, and how a request carries one. */
import { hash, randomBytes } from 'node:crypto'
import { NAME } from '../config/product.ts'

const PREFIX = `${NAME}_`

/** Milliseconds that a valid key stays in the cache: a revoked key may still work for this long. */
export const KEY_LIFETIME = 10_000

/** The caller of a request, in most cases by its API key. */
export interface Caller {
  /** The id of the API key; undefined for a caller without one. */
  keyId?: bigint | undefined
  /** The name of the key, for people: two keys may have the same, so rights follow the holder. */
  name: string
  /**
   * Who has the rights, the Idempotency-Keys and, without an API key, the rate: a text that an authenticator of the
   * product gives, or what the keys that follow from one another by rotation have in common.
   */
  holder: bigint | string
  readOnly: boolean
}

/** A caller with a valid API key. */
export interface KeyCaller extends Caller {
  keyId: bigint
}

/**
 * Returns the bearer token of an Authorization header (RFC 6750, section 2.1). The scheme is case-insensitive
 * (RFC 9110, section 11.1). Undefined without a header, empty if the header is not one bearer token: several headers,
 * which are joined by commas, are none.
 */
export function tokenOf(authorization: string | undefined): string | undefined {
  if (authorization === undefined) return undefined
  return /^bearer +([\w.~+/-]+=*) *$/i.exec(authorization)?.[1] ?? ''
}

/** Marks a read-only key for people. The service trusts only the database. */
const READ_ONLY = 'read_'

/** Visible characters of the 43 of a secret, by which people distinguish keys. */
const VISIBLE = 6

const WHOLE = new RegExp(`^(${PREFIX}(?:${READ_ONLY})?)[\\w-]{43}$`)
// In a text a slash may split the key at any place, and its prefix may be in capitals.
const GAP = '[^\\w\\s"-]*'
const split = (text: string) => [...text].join(GAP)
const START = `(${split(PREFIX)}(?:${GAP}${split(READ_ONLY)})?)`
const ANY = new RegExp(`${START}(?:${GAP}[\\w-]){43}`, 'gi')
const CUT_OFF = new RegExp(`${START}(?:${GAP}[\\w-]){${VISIBLE + 1},42}$`, 'i')

/** Returns a new key, of 32 random bytes in base64url. */
export const newKey = (readOnly: boolean): string =>
  (readOnly ? PREFIX + READ_ONLY : PREFIX) + randomBytes(32).toString('base64url')

/** Whether a key is marked as read-only. */
export const isReadOnlyKey = (key: string): boolean => key.startsWith(PREFIX + READ_ONLY)

/** Returns the SHA-256 of a key in hexadecimal: keys are random, so a slow hash would add nothing. */
export const hashKey = (key: string): string => hash('sha256', key)

/** Returns a text with each key in it shortened to its prefix, for logs and error messages. */
export const withoutKeys = (text: string): string => text.replaceAll(ANY, '$1…')

/** Returns a text with the start of a key at its end shortened, too: a `?` splits a key in a URL. */
export const withoutKeyAtEnd = (text: string): string => withoutKeys(text).replace(CUT_OFF, '$1…')

/** Returns the visible prefix of a key; undefined for a text that has not the format of a key. */
export function visiblePrefix(text: string): string | undefined {
  const [key, start = ''] = WHOLE.exec(text) ?? []
  return key?.slice(0, start.length + VISIBLE)
}
