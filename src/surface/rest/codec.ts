/** The codecs of REST: from text and JSON to inputs, and from outputs to JSON, by their schemas. */
import type { z } from 'zod'
import { OUT_OF_RANGE, parseDateTime } from '../../procedure/dates.ts'
import { exactInteger, isMarked, rawInteger, unmarked } from './json.ts'

/** How REST reads and writes the values of a schema. */
export interface Codec {
  type: string
  /** The codecs of the fields of an object, or of all objects of a union. */
  fields?: Field[]
  /** The codec of a list's items, or of a value that is not null. */
  inner?: Codec
  /**
   * Converts a parameter of the path or the query: an array if it occurs several times. Undefined for a
   * type that no URL can have.
   */
  readText: ((texts: string | string[] | undefined) => unknown) | undefined
  /** Converts a value from `parseJson`. */
  read(value: unknown): unknown
  /** Converts an output for JSON.stringify; undefined if it needs no conversion. */
  write: ((value: unknown) => unknown) | undefined
}

type Field = [name: string, codec: Codec]

/** The schemas of an object's fields. A name may be missing. */
type Shape = Readonly<Record<string, z.ZodType | undefined>>

/** Returns the codec of a scalar. Its readers leave all other values unchanged, for the schema to reject. */
const scalar = (
  type: string,
  convert: (text: string) => unknown,
  read: Codec['read'] = unmarked,
  write?: Codec['write'],
): Codec => ({
  type,
  readText: (texts) => (typeof texts === 'string' ? convert(texts) : texts),
  read,
  write,
})

const dateOf = (text: string) => parseDateTime(text) ?? text

const INTEGER = /^-?\d+$/
const NUMBER = /^-?\d+(\.\d+)?([eE][+-]?\d+)?$/

const int64 = scalar(
  'int64',
  (text) => (INTEGER.test(text) ? BigInt(text) : text),
  (value) => {
    if (isMarked(value)) return exactInteger(value) ?? NaN
    return Number.isSafeInteger(value) ? BigInt(value as number) : value
  },
  (value) => rawInteger(value as bigint), // the output's schema returns a bigint
)
const integer = scalar(
  'integer',
  (text) => (INTEGER.test(text) ? Number(text) : text),
  (value) => (isMarked(value) ? Number(exactInteger(value) ?? NaN) : value),
)
const number = scalar('number', (text) => (NUMBER.test(text) ? Number(text) : text))
const date = scalar('date', dateOf, (value) =>
  typeof value === 'string' ? dateOf(value) : unmarked(value),
)
const string = scalar('string', (text) => text)
const boolean = scalar('boolean', (text) =>
  text === 'true' ? true : text === 'false' ? false : text,
)
const nothing: Codec = { type: 'nothing', readText: undefined, read: unmarked, write: undefined }

const nullable = (inner: Codec): Codec => {
  const { read, write } = inner
  return {
    type: 'nullable',
    inner,
    readText: undefined, // no text in a URL is null
    read,
    write: write && ((value) => (value === null ? null : write(value))),
  }
}

const list = (inner: Codec): Codec => {
  const { readText, read, write } = inner
  return {
    type: 'list',
    inner,
    readText:
      readText &&
      ((texts) => (texts === undefined ? undefined : [texts].flat().map((text) => readText(text)))),
    read: (value) => (Array.isArray(value) ? value.map(read) : unmarked(value)),
    write: write && ((items) => (items as unknown[]).map(write)),
  }
}

/** Returns the codec of an object, whose reader drops all other fields. */
export function object(fields: Field[]): Codec {
  const readers = fields.map(([name, { read }]) => ({ name, read }))
  const writers = fields.flatMap(([name, { write }]) => (write ? [{ name, write }] : []))
  const writeFields = (value: unknown) => {
    const copy: Record<string, unknown> = { ...(value as object) }
    for (const { name, write } of writers) {
      if (copy[name] !== undefined) copy[name] = write(copy[name])
    }
    return copy
  }
  return {
    type: 'object',
    fields,
    readText: undefined,
    read(value) {
      if (typeof value !== 'object' || value === null || Array.isArray(value))
        return unmarked(value)
      const copy: Record<string, unknown> = {}
      for (const { name, read } of readers) {
        // Every object inherits fields such as `constructor`.
        if (Object.hasOwn(value, name)) copy[name] = read(value[name as keyof typeof value])
      }
      return copy
    },
    write: writers.length > 0 ? writeFields : undefined,
  }
}

/**
 * Returns the codec of a union. The reader of objects keeps the fields of all options, and the schema then
 * drops those of the others.
 */
function union(options: Codec[], place: string): Codec {
  const types = new Set(options.map(({ type }) => type))
  const inners = options.map((option) => option.inner ?? option)
  const fields = options.flatMap((option) => option.fields ?? [])
  const [first] = options
  if (types.isSubsetOf(new Set(['object', 'union']))) {
    const byName = [...Map.groupBy(fields, ([name]) => name)].map(([name, same]): Field => {
      const codecs = same.map(([, codec]) => codec)
      return [name, union(codecs, `${place}.${name}`)]
    })
    return { ...object(byName), type: 'union' }
  }
  if (!first || types.size > 1) throw unsupported(place, 'mixes types')
  if (first.type === 'list') return list(union(inners, `${place}[]`))
  return first.type === 'nullable' ? nullable(union(inners, place)) : first
}

const unsupported = (place: string, what: string) =>
  new TypeError(`${place} ${what}, which REST cannot encode: change its schema`)

/** Returns whether the value of `catch` has a bigint, which zod cannot write into the document. */
function hasBigint(caught: (context: never) => unknown): boolean {
  let found = false
  try {
    JSON.stringify(caught(undefined as never), (_name, value) => {
      found ||= typeof value === 'bigint'
      return found ? null : value
    })
  } catch {
    // The value depends on the input: the document has none.
  }
  return found
}

/**
 * Returns the codec of a schema; `io` is the side of a transformation. Throws TypeError for a schema
 * that REST cannot encode. `place` names it in the message, and `around` has the objects that it is in.
 */
export function codecOf(
  schema: z.core.$ZodType,
  io: 'input' | 'output',
  place: string,
  around: readonly object[] = [],
): Codec {
  // zod's union of its own schemas; any other has a type that no case names.
  const { def } = (schema as z.core.$ZodTypes)._zod
  switch (def.type) {
    case 'optional':
    case 'default':
    case 'prefault':
    case 'readonly':
    case 'nonoptional':
      return codecOf(def.innerType, io, place, around)
    case 'catch':
      if (hasBigint(def.catchValue)) throw unsupported(place, 'has a bigint in catch(…)')
      return codecOf(def.innerType, io, place, around)
    case 'bigint':
      return int64
    case 'boolean':
      return boolean
    case 'string':
      return string
    case 'void':
    case 'undefined':
      return nothing
    case 'number':
      return (schema as z.ZodNumber).format?.includes('int') ? integer : number
    case 'date': {
      // A tRPC client can send a Date of any year, and REST could not write it in RFC 3339.
      const accepts = (value: Date) => (schema as z.ZodType).safeParse(value).success
      if (io === 'output' || !OUT_OF_RANGE.some(accepts)) return date
      throw unsupported(place, 'accepts more years than dateTimeInput(…)')
    }
    case 'nullable':
      return nullable(codecOf(def.innerType, io, place, around))
    case 'pipe':
      return codecOf(io === 'input' ? def.in : def.out, io, place, around)
    case 'array':
      return list(codecOf(def.element, io, `${place}[]`, around))
    case 'enum':
    case 'literal': {
      const values = 'values' in def ? def.values : Object.values(def.entries)
      if (values.every((value) => typeof value === 'string')) return string
      throw unsupported(place, 'allows values that are not strings')
    }
    case 'union': {
      const options = def.options.map((option) => codecOf(option, io, place, around))
      // `int64Input` also accepts a number.
      const isInt64 = options.some(({ type }) => type === 'int64')
      const isInteger = options.every(({ type }) => type === 'int64' || type === 'integer')
      return isInt64 && isInteger ? int64 : union(options, place)
    }
    case 'object': {
      if (around.includes(def)) throw unsupported(place, 'contains itself')
      if (def.catchall !== undefined) throw unsupported(place, 'has a rule for unknown fields')
      const fields = Object.entries(def.shape).map(([name, field]): Field => {
        const here = `${place}.${name}`
        // Without the field, zod would read the inherited property.
        if (name in Object.prototype) throw unsupported(here, 'has a name that all objects inherit')
        return [name, codecOf(field, io, here, [...around, def])]
      })
      return object(fields)
    }
    default:
      throw unsupported(place, `is of the type ${def.type}`)
  }
}

/**
 * Returns the schemas of the fields of an object, or of each object of a union; empty for any other
 * schema. `io` is the side of a transformation.
 */
export function shapesOf(schema: z.core.$ZodType, io: 'input' | 'output'): Shape[] {
  const { def } = (schema as z.core.$ZodTypes)._zod
  if (def.type === 'object') return [def.shape as Shape]
  if (def.type === 'union') return def.options.flatMap((option) => shapesOf(option, io))
  if (def.type === 'pipe') return shapesOf(io === 'input' ? def.in : def.out, io)
  return 'innerType' in def ? shapesOf(def.innerType, io) : []
}
