/**
 * The codec of REST: from text and JSON to inputs, and from outputs to JSON, by the schemas of the
 * operation. An int64 stays exact. Unknown fields are dropped, and values of other types are left to
 * the schema. A schema that REST cannot encode is an error at the start.
 */
import { randomBytes } from 'node:crypto'
import type { z } from 'zod'
import { OUT_OF_RANGE, parseDateTime } from '../../procedure/dates.ts'

/** The type of a value in HTTP: it decides how the value is read and written. */
export type Kind =
  | { type: 'int64' | 'integer' | 'number' | 'boolean' | 'date' | 'string' | 'nothing' }
  | { type: 'list'; item: Kind }
  | { type: 'object'; fields: [name: string, kind: Kind][] }
  | { type: 'nullable'; inner: Kind }

const simple: Record<string, Kind> = {
  bigint: { type: 'int64' },
  boolean: { type: 'boolean' },
  string: { type: 'string' },
  void: { type: 'nothing' },
  undefined: { type: 'nothing' },
}

/** Schemas that wrap another one without an effect on its kind. */
const wrappers = ['optional', 'default', 'prefault', 'readonly', 'nonoptional', 'catch']

/**
 * Returns the kind of a schema; `io` is the side of a transformation. Throws TypeError for a schema
 * that REST cannot encode. `place` names it in the message.
 */
export function kindOf(schema: z.core.$ZodType, io: 'input' | 'output', place: string): Kind {
  // zod has the parts of a schema in `def`, whose type differs for each class of schemas.
  const { def } = (schema as z.ZodType)._zod as unknown as { def: Definition }
  const unsupported = (what: string) =>
    new TypeError(`${place} ${what}, which REST cannot encode: change its schema`)
  if (wrappers.includes(def.type)) return kindOf(def.innerType, io, place)
  switch (def.type) {
    case 'number':
      return { type: isInteger(def) ? 'integer' : 'number' }
    case 'date':
      // A tRPC client can send a Date of any year, and REST could not write it in RFC 3339.
      if (
        io === 'input' &&
        OUT_OF_RANGE.some((date) => (schema as z.ZodType).safeParse(date).success)
      ) {
        throw unsupported('accepts more years than dateTimeInput(…)')
      }
      return { type: 'date' }
    case 'nullable':
      return { type: 'nullable', inner: kindOf(def.innerType, io, place) }
    case 'pipe':
      return kindOf(io === 'input' ? def.in : def.out, io, place)
    case 'array':
      return { type: 'list', item: kindOf(def.element, io, `${place}[]`) }
    case 'enum':
    case 'literal': {
      const values = def.values ?? Object.values(def.entries)
      if (values.every((value) => typeof value === 'string')) return { type: 'string' }
      throw unsupported('allows values that are not strings')
    }
    case 'union': {
      const kind = common(def.options.map((option) => kindOf(option, io, place)))
      if (!kind) throw unsupported('mixes types')
      return kind
    }
    case 'object': {
      if (def.catchall !== undefined) throw unsupported('has a rule for unknown fields')
      const fields = Object.entries(def.shape).map(([name, field]): [string, Kind] => [
        name,
        kindOf(field, io, `${place}.${name}`),
      ])
      return { type: 'object', fields }
    }
  }
  const kind = simple[def.type]
  if (!kind) throw unsupported(`is of the type ${def.type}`)
  return kind
}

interface Definition {
  type: string
  format?: string
  checks?: { _zod: { def: { format?: string } } }[]
  innerType: z.core.$ZodType
  in: z.core.$ZodType
  out: z.core.$ZodType
  element: z.core.$ZodType
  options: z.core.$ZodType[]
  shape: Record<string, z.core.$ZodType>
  catchall?: z.core.$ZodType
  values?: unknown[]
  entries: Record<string, unknown>
}

const isInteger = ({ format, checks = [] }: Definition) =>
  [format, ...checks.map((check) => check._zod.def.format)].some((name) => name?.includes('int'))

/** Returns the one kind of all options. `int64Input` also accepts a number, and is an int64. */
function common(kinds: Kind[]): Kind | undefined {
  const types = new Set(kinds.map(({ type }) => type))
  if (types.size === 2 && types.has('int64') && types.has('integer')) return { type: 'int64' }
  return types.size === 1 ? kinds[0] : undefined
}

/** Converts a parameter of the path or the query: an array if it occurs several times. */
type TextReader = (texts: string | string[] | undefined) => unknown

/**
 * Returns the reader of a parameter. It converts text in the format of the kind, and returns all other
 * text unchanged, for the schema to reject. Throws TypeError for an object, which no URL can have.
 */
export function textReader(kind: Kind, place: string): TextReader {
  if (kind.type === 'nullable') return textReader(kind.inner, place)
  if (kind.type === 'list') {
    const read = textReader(kind.item, place)
    return (texts) => (texts === undefined ? undefined : [texts].flat().map((text) => read(text)))
  }
  const convert = textConverters[kind.type]
  if (!convert) throw new TypeError(`${place} is of the type ${kind.type}, which no URL can have`)
  return (texts) => (typeof texts === 'string' ? convert(texts) : texts)
}

const textConverters: Partial<Record<Kind['type'], (text: string) => unknown>> = {
  int64: (text) => (/^-?\d+$/.test(text) ? BigInt(text) : text),
  integer: (text) => (/^-?\d+$/.test(text) ? Number(text) : text),
  number: (text) => (/^-?\d+(\.\d+)?([eE][+-]?\d+)?$/.test(text) ? Number(text) : text),
  boolean: (text) => (text === 'true' ? true : text === 'false' ? false : text),
  date: (text) => dateOf(text),
  string: (text) => text,
}

/** Converts a value from `parseJson`. */
type JsonReader = (value: unknown) => unknown

/** Returns the reader of a body. It leaves values of other kinds unchanged, for the schema to reject. */
export function jsonReader(kind: Kind): JsonReader {
  switch (kind.type) {
    case 'int64':
      return (value) => (isMarked(value) ? (exactInteger(sourceOf(value)) ?? NaN) : fromSafe(value))
    case 'integer':
      return (value) => (isMarked(value) ? Number(exactInteger(sourceOf(value)) ?? NaN) : value)
    case 'date':
      return (value) => (typeof value === 'string' ? dateOf(value) : unmarked(value))
    case 'nullable':
      return jsonReader(kind.inner)
    case 'list': {
      const read = jsonReader(kind.item)
      return (value) => (Array.isArray(value) ? value.map(read) : unmarked(value))
    }
    case 'object': {
      const fields = kind.fields.map(([name, field]) => ({ name, read: jsonReader(field) }))
      return (value) => {
        if (typeof value !== 'object' || value === null || Array.isArray(value))
          return unmarked(value)
        const object: Record<string, unknown> = {}
        for (const { name, read } of fields) {
          // Every object inherits fields such as `constructor`.
          if (Object.hasOwn(value, name)) object[name] = read(value[name as keyof typeof value])
        }
        return object
      }
    }
    default:
      return unmarked
  }
}

const fromSafe = (value: unknown) => (Number.isSafeInteger(value) ? BigInt(value as number) : value)

const dateOf = (text: string) => parseDateTime(text) ?? text

/** Levels of nesting in a body. */
const MAX_DEPTH = 500

/**
 * Returns the value of a JSON text without rounded numbers. JSON.parse rounds numbers. Its reviver has
 * their source text, but takes 40 times as long as the rest of the parsing. So only a text with a
 * number that may be rounded is parsed again, with each such number in a marked string, which the
 * readers convert. Throws SyntaxError for malformed JSON, and for more than 500 levels.
 */
export function parseJson(text: string): unknown {
  if (text.length > MAX_DEPTH && isTooDeep(text))
    throw new SyntaxError('The JSON is nested too deeply')
  const value: unknown = JSON.parse(text)
  return /\d(?:[.eE]|\d{15})/.test(text)
    ? JSON.parse(
        text.replace(STRING_OR_NUMBER, (token) =>
          token.startsWith('"') ? token : `${MARK_OPEN}${token}"`,
        ),
      )
    : value
}

// Numbers that JSON.parse may round have at least 16 digits, a fraction, or an exponent.
const STRING_OR_NUMBER = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+(?:[eE][+-]?\d+)?|[eE][+-]?\d+)|-?\d{16,}/g

// The mark is random: a client that knew it could send a string that is read as a number.
const MARK = `number ${randomBytes(16).toString('hex')} `
const MARK_OPEN = `"${MARK}`

const isMarked = (value: unknown): value is string =>
  typeof value === 'string' && value.startsWith(MARK)
const sourceOf = (value: string) => value.slice(MARK.length)
const unmarked = (value: unknown) => (isMarked(value) ? Number(sourceOf(value)) : value)

function isTooDeep(text: string): boolean {
  let depth = 0
  let inString = false
  for (let index = 0; index < text.length; index++) {
    const character = text[index]
    if (inString) {
      if (character === '\\') index++
      else inString = character !== '"'
    } else if (character === '"') inString = true
    else if (character === '[' || character === '{') {
      if (++depth > MAX_DEPTH) return true
    } else if (character === ']' || character === '}') depth--
  }
  return false
}

/** The limit of an exponent, in either direction: greater ones would make BigInt slow. */
const MAX_EXPONENT = 400

/** Returns the integer of a JSON number in any notation; undefined if its value is no integer. */
function exactInteger(source: string): bigint | undefined {
  const [mantissa = '', exponentText = '0'] = source.toLowerCase().split('e')
  const [whole = '', fraction = ''] = mantissa.split('.')
  const digits = whole + fraction
  if (!/[1-9]/.test(digits)) return 0n
  const exponent = Number(exponentText)
  if (Math.abs(exponent) > MAX_EXPONENT) return undefined
  const zeros = exponent - fraction.length
  if (zeros >= 0) return BigInt(digits + '0'.repeat(zeros))
  // The digits after the decimal point must be zeros.
  if (/[^0]/.test(digits.slice(zeros))) return undefined
  return BigInt(digits.slice(0, zeros))
}

/** Returns the function that writes outputs of a kind as JSON, with every digit of an int64. */
export function jsonWriter(kind: Kind): (value: unknown) => string {
  const convert = converter(kind)
  return convert ? (value) => JSON.stringify(convert(value)) : (value) => JSON.stringify(value)
}

type Converter = (value: unknown) => unknown

/** Returns the conversion of a kind for JSON.stringify; undefined if it needs none. */
function converter(kind: Kind): Converter | undefined {
  switch (kind.type) {
    case 'int64':
      return (value) => rawInteger(value as bigint) // the output's schema returns a bigint
    case 'nullable': {
      const convert = converter(kind.inner)
      return convert && ((value) => (value === null ? null : convert(value)))
    }
    case 'list': {
      const convert = converter(kind.item)
      return convert && ((items) => (items as unknown[]).map(convert))
    }
    case 'object': {
      const fields = kind.fields.flatMap(([name, field]) => {
        const convert = converter(field)
        return convert ? [{ name, convert }] : []
      })
      if (fields.length === 0) return undefined
      return (value) => {
        const copy: Record<string, unknown> = { ...(value as object) }
        for (const { name, convert } of fields) {
          if (copy[name] !== undefined) copy[name] = convert(copy[name])
        }
        return copy
      }
    }
  }
  return undefined
}

// JSON.stringify writes numbers much faster than raw JSON, so safe integers are numbers.
function rawInteger(value: bigint): unknown {
  const number = Number(value)
  return Number.isSafeInteger(number) ? number : JSON.rawJSON(String(value))
}

declare global {
  interface JSON {
    /** https://tc39.es/proposal-json-parse-with-source/ (not yet in TypeScript's library) */
    rawJSON(text: string): object
  }
}
