/** The readers of inputs, by their schemas: of texts in a path or a query, and of JSON, whose numbers stay exact. */
import { randomBytes } from 'node:crypto'
import type { z } from 'zod'
import { parseDateTime } from '../../procedure/fields.ts'

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
const isMarked = (value: unknown): value is string =>
  typeof value === 'string' && value.startsWith(MARK)

/** Returns a value from `parseJson` as JSON.parse returns it. */
const unmarked = (value: unknown): unknown =>
  isMarked(value) ? Number(value.slice(MARK.length)) : value

/** The limit of an exponent, in either direction: greater ones would make BigInt slow. */
const MAX_EXPONENT = 400

/** Returns the integer of a marked number in any notation; undefined if its value is no integer. */
function exactInteger(marked: string): bigint | undefined {
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

/** How values of a schema are read. What cannot be read is left for the schema to reject. */
interface Reader {
  /** Converts a parameter of the path or the query; of a list, an item. Undefined for a type that no URL can have. */
  readText?: ((text: string) => unknown) | undefined
  /** Whether the value is a list, whose items a query has under one name. */
  isList?: boolean
  /** Converts a value from `parseJson`. */
  read(value: unknown): unknown
  /** The readers of the fields of an object, and their schemas. */
  fields?: Record<string, Reader & { schema: z.core.$ZodType }>
}

const matching = (pattern: RegExp, convert: (text: string) => unknown) => (text: string) =>
  pattern.test(text) ? convert(text) : text

const INTEGER = /^-?\d+$/
const integer: Reader = {
  readText: matching(INTEGER, Number),
  read: (value) => (isMarked(value) ? Number(exactInteger(value) ?? NaN) : value),
}
const string: Reader = { readText: (text) => text, read: unmarked }
const dateOf = (text: string) => parseDateTime(text) ?? text

const scalars: Partial<Record<z.core.$ZodTypeDef['type'], Reader>> = {
  bigint: {
    readText: matching(INTEGER, BigInt),
    read(value) {
      if (isMarked(value)) return exactInteger(value) ?? NaN
      return Number.isSafeInteger(value) ? BigInt(value as number) : value
    },
  },
  boolean: { readText: matching(/^(true|false)$/, (text) => text === 'true'), read: unmarked },
  date: { readText: dateOf, read: (value) => (typeof value === 'string' ? dateOf(value) : value) },
  enum: string,
  number: { readText: matching(/^-?\d+(\.\d+)?([eE][+-]?\d+)?$/, Number), read: unmarked },
  string,
}

const isObject = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const mapFields = (value: object, read: Reader['read']) =>
  Object.fromEntries(Object.entries(value).map(([name, field]) => [name, read(field)]))

/** Returns the reader of an object, which drops all other fields. */
function object(fields: NonNullable<Reader['fields']>): Reader {
  const all = Object.entries(fields)
  const read = (value: unknown) => {
    if (!isObject(value)) return unmarked(value)
    const copy: Record<string, unknown> = {}
    for (const [name, { read: readField }] of all) {
      if (name in value) copy[name] = readField(value[name as keyof typeof value])
    }
    return copy
  }
  return { fields, read }
}

/** Returns the reader of a schema. Throws TypeError for one that REST cannot read, with `place` in its message. */
export function readerOf(schema: z.core.$ZodType, place: string): Reader {
  // https://zod.dev/packages/core has `_zod.def` for libraries. $ZodTypes are all schemas of zod.
  const { def } = (schema as z.core.$ZodTypes)._zod
  switch (def.type) {
    case 'optional':
    case 'default':
    case 'prefault':
      return readerOf(def.innerType, place)
    case 'nullable':
      return { read: readerOf(def.innerType, place).read } // a URL has no null
    case 'pipe': // of z.preprocess: what the document shows, so that its function gets the same on both surfaces
      return readerOf(def.in._zod.def.type === 'transform' ? def.out : def.in, place)
    case 'union': {
      const [first, second, ...more] = def.options as z.core.$ZodTypes[]
      const isInt64 = first?._zod.def.type === 'bigint' && second?._zod.def.type === 'number'
      if (isInt64 && more.length === 0) return readerOf(first, place) // of `int64Input`
      break
    }
    case 'array': {
      const { read, readText, isList = false } = readerOf(def.element, `${place}[]`)
      return {
        readText: isList ? undefined : readText,
        isList: true,
        read: (value) => (Array.isArray(value) ? value.map(read) : unmarked(value)),
      }
    }
    case 'record': {
      const { read } = readerOf(def.valueType, `${place}[]`)
      return { read: (value) => (isObject(value) ? mapFields(value, read) : unmarked(value)) }
    }
    case 'literal':
      // JSON has neither undefined nor bigints. In a URL, trpc-to-openapi describes one text alone.
      if (def.values.some((value) => value === undefined || typeof value === 'bigint')) break
      return def.values.length === 1 && typeof def.values[0] === 'string'
        ? string
        : { read: unmarked }
    case 'object': {
      // The reader drops unknown fields, so on tRPC alone the schema could refuse or keep them.
      const instead = 'use z.object(…), not z.strictObject, z.looseObject or catchall'
      if (def.catchall) throw new TypeError(`${place} must ignore unknown fields: ${instead}`)
      const fields = Object.entries(def.shape)
      const readers = fields.map(([name, schema]) => {
        return [name, { ...readerOf(schema, `${place}.${name}`), schema }] as const
      })
      return object(Object.fromEntries(readers))
    }
  }
  const isInteger = def.type === 'number' && (schema as z.ZodNumber).format?.includes('int')
  const reader = isInteger ? integer : scalars[def.type]
  if (!reader) throw new TypeError(`${place} is of the type ${def.type}, which REST cannot read`)
  return reader
}
