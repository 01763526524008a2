/** JSON with exact numbers, which JSON.parse rounds. */
import { randomBytes } from 'node:crypto'

// Numbers that JSON.parse may round have at least 16 digits, a fraction, or an exponent.
const MAY_BE_ROUNDED = /\d(?:[.eE]|\d{15})/
const STRING_OR_NUMBER = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+(?:[eE][+-]?\d+)?|[eE][+-]?\d+)|-?\d{16,}/g

// The mark is random: a client that knew it could send a string that is read as a number.
const MARK = `number ${randomBytes(16).toString('hex')} `

/**
 * Returns the value of a JSON text, in which a number that may be rounded is a marked string. The
 * reviver of JSON.parse has the text of numbers too, but takes 40 times as long as the rest of the
 * parsing. Throws SyntaxError for malformed JSON.
 */
export function parseJson(text: string): unknown {
  const value: unknown = JSON.parse(text)
  if (!MAY_BE_ROUNDED.test(text)) return value
  const mark = (token: string) => (token.startsWith('"') ? token : `"${MARK}${token}"`)
  return JSON.parse(text.replace(STRING_OR_NUMBER, mark))
}

/** Returns whether a value from `parseJson` is a number that may have been rounded. */
export const isMarked = (value: unknown): value is string =>
  typeof value === 'string' && value.startsWith(MARK)

/** Returns a value from `parseJson` as JSON.parse returns it. */
export const unmarked = (value: unknown): unknown =>
  isMarked(value) ? Number(value.slice(MARK.length)) : value

/** The limit of an exponent, in either direction: greater ones would make BigInt slow. */
const MAX_EXPONENT = 400

/** Returns the integer of a marked number in any notation; undefined if its value is no integer. */
export function exactInteger(marked: string): bigint | undefined {
  const [mantissa = '', exponent = '0'] = marked.slice(MARK.length).toLowerCase().split('e')
  const [whole = '', fraction = ''] = mantissa.split('.')
  const digits = whole + fraction
  if (!/[1-9]/.test(digits)) return 0n
  if (Math.abs(Number(exponent)) > MAX_EXPONENT) return undefined
  const zeros = Number(exponent) - fraction.length
  if (zeros >= 0) return BigInt(digits + '0'.repeat(zeros))
  // The digits after the decimal point must be zeros.
  return /[^0]/.test(digits.slice(zeros)) ? undefined : BigInt(digits.slice(0, zeros))
}

/**
 * Replaces the bigints in a value by what JSON.stringify can write, and returns the value. Objects are changed in
 * place, because new ones cost a page a twentieth more: nothing else may read them.
 */
export function replaceBigints(value: unknown): unknown {
  if (typeof value === 'bigint') {
    // JSON.stringify writes numbers much faster than raw JSON.
    const number = Number(value)
    return Number.isSafeInteger(number) ? number : JSON.rawJSON(String(value))
  }
  if (Array.isArray(value)) return value.map(replaceBigints)
  if (typeof value !== 'object') return value // of a long text, each character would be a field
  const fields = value as Record<string, unknown>
  for (const name in fields) {
    const field = fields[name]
    if (typeof field === 'bigint' || typeof field === 'object') fields[name] = replaceBigints(field)
  }
  return value
}

declare global {
  interface JSON {
    /** https://tc39.es/proposal-json-parse-with-source/ (not yet in TypeScript's library) */
    rawJSON(text: string): object
  }
}
