/**
 * Text and JSON to inputs, and outputs to JSON, each by the operation's own schema: int64 exact,
 * numbers, booleans, dates and lists as what they are. Whatever a schema does not ask for is neither
 * converted nor kept. A schema that cannot be carried stops the start.
 */
import { randomBytes } from 'node:crypto'
import type { z } from 'zod'
import { OUT_OF_RANGE, parseDateTime } from '../../procedure/dates.ts'

/** What a value is on its way through HTTP. */
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

/** Schemas around another one, which say nothing about how a value is written. */
const wrappers = ['optional', 'default', 'prefault', 'readonly', 'nonoptional', 'catch']

/**
 * What the values of a schema are; `io` says which side of a transformation counts. Throws
 * TypeError, with the place, for a schema that is not carried.
 */
export function kindOf(schema: z.core.$ZodType, io: 'input' | 'output', place: string): Kind {
  // zod keeps what a schema consists of in `def`; its types are those of the many classes of schemas.
  const { def } = (schema as z.ZodType)._zod as unknown as { def: Definition }
  const refuse = (what: string) =>
    new TypeError(`${place} ${what}, which REST cannot carry: change its schema`)
  if (wrappers.includes(def.type)) return kindOf(def.innerType, io, place)
  switch (def.type) {
    case 'number':
      return { type: isInteger(def) ? 'integer' : 'number' }
    case 'date':
      // On tRPC a Date of any year may come, and REST would have to write it.
      if (
        io === 'input' &&
        OUT_OF_RANGE.some((date) => (schema as z.ZodType).safeParse(date).success)
      ) {
        throw refuse('takes more years than dateTimeInput(…)')
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
      throw refuse('allows other values than texts')
    }
    case 'union':
      return (
        common(def.options.map((option) => kindOf(option, io, place))) ??
        fail(refuse('mixes types'))
      )
    case 'object': {
      if (def.catchall !== undefined) throw refuse('says what is to become of unknown fields')
      const fields = Object.entries(def.shape).map(([name, field]): [string, Kind] => [
        name,
        kindOf(field, io, `${place}.${name}`),
      ])
      return { type: 'object', fields }
    }
  }
  return simple[def.type] ?? fail(refuse(`is of the type ${def.type}`))
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

/** Of an int64 and a number, as inputs of int64 allow both, the int64 counts. */
function common(kinds: Kind[]): Kind | undefined {
  const types = new Set(kinds.map(({ type }) => type))
  if (types.size === 2 && types.has('int64') && types.has('integer')) return { type: 'int64' }
  return types.size === 1 ? kinds[0] : undefined
}

function fail(error: Error): never {
  throw error
}

/** Reads what is written in an address, one text for each time that a parameter occurs. */
export type TextReader = (texts: string | string[] | undefined) => unknown

/**
 * A reader of a path's or a query's parameter. Only what is written as the kind is converted; all
 * else is left as it is, for the schema to refuse. Throws TypeError for kinds no address can hold.
 */
export function textReader(kind: Kind, place: string): TextReader {
  if (kind.type === 'nullable') return textReader(kind.inner, place)
  if (kind.type === 'list') {
    const read = textReader(kind.item, place)
    return (texts) => (texts === undefined ? undefined : [texts].flat().map((text) => read(text)))
  }
  const convert = textConverters[kind.type]
  if (!convert)
    throw new TypeError(`${place} is of the type ${kind.type}, which no address can hold`)
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

/** Converts a part of a JSON body, as `parseJson` gave it. */
export type JsonReader = (value: unknown) => unknown

/** A reader of a body of this kind. What is not of the kind is left for the schema to refuse. */
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
          // Only what the body itself holds counts, because every object has a `constructor`.
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

/** Levels to which a body may be nested. */
const MAX_DEPTH = 500

/**
 * The value of a JSON text in which no digit is lost. JSON.parse rounds numbers, and its reviver,
 * which sees their source, costs 40 times as much as all the rest. So only where a number is written
 * such that it may have been rounded, numbers are put into marked strings, which readers know.
 * Throws SyntaxError for a text that is not JSON, or is nested too deep.
 */
export function parseJson(text: string): unknown {
  if (text.length > MAX_DEPTH && isTooDeep(text))
    throw new SyntaxError('The JSON is nested too deep')
  const value: unknown = JSON.parse(text)
  return /\d(?:[.eE]|\d{15})/.test(text)
    ? JSON.parse(
        text.replace(STRING_OR_NUMBER, (token) =>
          token.startsWith('"') ? token : `${MARK_OPEN}${token}"`,
        ),
      )
    : value
}

// Numbers that may be rounded: those of sixteen digits and more, with a fraction, or an exponent.
const STRING_OR_NUMBER = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+(?:[eE][+-]?\d+)?|[eE][+-]?\d+)|-?\d{16,}/g

// Nobody can guess it, so that no string of a body is taken for a number.
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

/** The most digits before which an exponent still makes sense: int64 has 19. */
const MAX_EXPONENT = 400

/** The integer that a JSON number is, in whatever way it is written; undefined when it is none. */
export function exactInteger(source: string): bigint | undefined {
  const [mantissa = '', exponentText = '0'] = source.toLowerCase().split('e')
  const [whole = '', fraction = ''] = mantissa.split('.')
  const digits = whole + fraction
  if (!/[1-9]/.test(digits)) return 0n
  const exponent = Number(exponentText)
  if (Math.abs(exponent) > MAX_EXPONENT) return undefined
  const zeros = exponent - fraction.length
  if (zeros >= 0) return BigInt(digits + '0'.repeat(zeros))
  // What an exponent below zero, or a fraction, cuts off must be zeros.
  if (/[^0]/.test(digits.slice(zeros))) return undefined
  return BigInt(digits.slice(0, zeros))
}

/** A writer of outputs of this kind as JSON, made once: an int64 is written digit for digit. */
export function jsonWriter(kind: Kind): (value: unknown) => string {
  const convert = converter(kind)
  return convert ? (value) => JSON.stringify(convert(value)) : (value) => JSON.stringify(value)
}

type Converter = (value: unknown) => unknown

/** Makes a value fit for JSON.stringify; undefined where it is fit as it is. */
function converter(kind: Kind): Converter | undefined {
  switch (kind.type) {
    case 'int64':
      return (value) => rawInteger(value as bigint) // the output's schema gave a bigint
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

// Plain numbers are the faster ones by far, so they are used where they are exact.
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
