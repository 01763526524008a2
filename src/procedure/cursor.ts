/** The position in a cursor that is opaque text, for orders by several columns or by a text. */
import { writePosition } from '../../client/src/encoding.ts'
import type { Order, OrderedColumn, Position } from '../../db/order.ts'
import { INT64_MAX, INT64_MIN } from './int64.ts'

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
