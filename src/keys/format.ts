/** What an API key looks like, and what is kept of it. */
import { hash, randomBytes } from 'node:crypto'
import { NAME } from '../product.ts'

const PREFIX = `${NAME}_`

/** Characters of a key that people may see, to tell keys apart: the prefix and six of the secret's 43. */
const VISIBLE = PREFIX.length + 6

const SECRET = '[\\w-]{43}'
const WHOLE = new RegExp(`^${PREFIX}${SECRET}$`)
const ANY = new RegExp(PREFIX + SECRET, 'g')
const SINGLE = new RegExp(`${PREFIX}${SECRET}(?![\\w-])`)

/** A new key: the prefix and 32 random bytes in base64url, with what is stored of it. */
export function newKey(): { key: string; prefix: string; hash: string } {
  const key = PREFIX + randomBytes(32).toString('base64url')
  return { key, prefix: key.slice(0, VISIBLE), hash: hashKey(key) }
}

/** Whether a text has the form of a key, so that it is worth looking for. */
export const isKey = (text: string): boolean => WHOLE.test(text)

/** SHA-256 of a key, in hexadecimal. A key is random: a slow hash would add nothing. */
export const hashKey = (key: string): string => hash('sha256', key)

/** A text without the keys in it, for what people sent in a wrong place and others will read. */
export const withoutKeys = (text: string): string => text.replaceAll(ANY, `${PREFIX}…`)

/** What people may see of the key in a text, to tell it from others; undefined when there is none. */
export const visiblePrefix = (text: string): string | undefined =>
  SINGLE.exec(text)?.[0].slice(0, VISIBLE)
