/** The readers of inputs, by their schemas: of texts in a path or a query, and of JSON. */
import type { z } from 'zod'
import { parseDateTime } from '../../procedure/fields.ts'
import { exactInteger, isMarked, unmarked } from './exact-json.ts'

/** How values of a schema are read. What cannot be read is left for the schema to reject. */
interface Reader {
  /** Converts a parameter of the path or the query. Undefined for a type that no URL can have. */
  readText?: (text: string) => unknown
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

/** Returns the reader of an object, which drops all other fields. */
function object(fields: NonNullable<Reader['fields']>): Reader {
  const all = Object.entries(fields)
  const read = (value: unknown) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return unmarked(value)
    const copy: Record<string, unknown> = {}
    for (const [name, { read }] of all) {
      if (name in value) copy[name] = read(value[name as keyof typeof value])
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
    case 'pipe':
      return readerOf(def.in, place)
    case 'union': // of `int64Input`: a bigint and a number
      return readerOf(def.options[0] as z.core.$ZodType, place)
    case 'array': {
      const { read } = readerOf(def.element, `${place}[]`)
      return { read: (value) => (Array.isArray(value) ? value.map(read) : unmarked(value)) }
    }
    case 'object': {
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
