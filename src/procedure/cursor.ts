/**
 * Cursors as opaque text, for orders by several columns or by a text: JSON in base64url (RFC 4648,
 * section 5).
 */
import type { Order, OrderedColumn, Position } from '../../db/order.ts'
import { INT64_MAX, INT64_MIN } from './int64.ts'

/**
 * Returns the cursor of the page after a row with these values in the ordered columns. A Date is
 * written in milliseconds. Integers are JSON strings, because many parsers round JSON numbers.
 */
export function writePosition(values: readonly (bigint | number | string | Date)[]): string {
  const texts = values.map((value) => String(value instanceof Date ? value.getTime() : value))
  const bytes = new TextEncoder().encode(JSON.stringify(texts))
  const base64 = btoa(String.fromCharCode(...bytes))
  return base64.replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')
}

/** Returns the position in a cursor; undefined for text that `writePosition` does not return for this order. */
export function parsePosition(text: string, { columns }: Order): Position | undefined {
  const values = decode(text)
  if (!Array.isArray(values) || values.length !== columns.length) return undefined
  const position = columns.map((column, index) => valueIn(column, values[index]))
  if (!position.every((value) => value !== undefined)) return undefined
  return writePosition(position) === text ? position : undefined
}

function decode(text: string): unknown {
  try {
    const base64 = text.replaceAll('-', '+').replaceAll('_', '/')
    const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0))
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch {
    return undefined
  }
}

function valueIn({ type }: OrderedColumn, value: unknown): bigint | string | undefined {
  if (typeof value !== 'string') return undefined
  if (type === 'text') return value.isWellFormed() && !value.includes('\0') ? value : undefined
  if (!/^-?\d{1,19}$/.test(value)) return undefined
  const number = BigInt(value)
  return number >= INT64_MIN && number <= INT64_MAX ? number : undefined
}
