/** What an API key looks like, and what is kept of it. */
import { hash, randomBytes } from 'node:crypto'
import { NAME } from '../config/product.ts'

const PREFIX = `${NAME}_`

/** Follows the prefix of a key that may only read, so that people see it. What counts is the database. */
const READ_ONLY = 'read_'

/** Characters of the secret's 43 that people may see, to tell keys apart. */
const VISIBLE = 6

const KEY = `(${PREFIX}(?:${READ_ONLY})?)[\\w-]{43}`
const WHOLE = new RegExp(`^${KEY}$`)
const ANY = new RegExp(KEY, 'g')
const SINGLE = new RegExp(`${KEY}(?![\\w-])`)

/** A new key: the prefix and 32 random bytes in base64url, with what is stored of it. */
export function newKey(readOnly: boolean): { key: string; prefix: string; hash: string } {
  const start = readOnly ? PREFIX + READ_ONLY : PREFIX
  const key = start + randomBytes(32).toString('base64url')
  return { key, prefix: key.slice(0, start.length + VISIBLE), hash: hashKey(key) }
}

/** Whether a text has the form of a key, so that it is worth looking for. */
export const isKey = (text: string): boolean => WHOLE.test(text)

/** Whether a key says of itself that it may only read. */
export const isReadOnlyKey = (key: string): boolean => key.startsWith(PREFIX + READ_ONLY)

/** SHA-256 of a key, in hexadecimal. A key is random: a slow hash would add nothing. */
export const hashKey = (key: string): string => hash('sha256', key)

/** A text without the keys in it, for what people sent in a wrong place and others will read. */
export const withoutKeys = (text: string): string => text.replaceAll(ANY, '$1…')

/** What people may see of the key in a text, to tell it from others; undefined when there is none. */
export function visiblePrefix(text: string): string | undefined {
  const [key, start = ''] = SINGLE.exec(text) ?? []
  return key?.slice(0, start.length + VISIBLE)
}
