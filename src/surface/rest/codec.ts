/** The readers of REST: from text and JSON to inputs, by their schemas. */
import type { z } from 'zod'
import { parseDateTime } from '../../procedure/fields.ts'
import { exactInteger, isMarked, unmarked } from './json.ts'

/** How REST reads the values of a schema. A reader leaves what it cannot read for the schema to reject. */
export interface Codec {
  /** Converts a parameter of the path or the query. Undefined for a type that no URL can have. */
  readText?: (text: string) => unknown
  /** Converts a value from `parseJson`. */
  read(value: unknown): unknown
  /** The codecs of the fields of an object. */
  fields?: Record<string, Codec>
}

const matching = (pattern: RegExp, convert: (text: string) => unknown) => (text: string) =>
  pattern.test(text) ? convert(text) : text

const INTEGER = /^-?\d+$/
const int64: Codec = {
  readText: matching(INTEGER, BigInt),
  read(value) {
    if (isMarked(value)) return exactInteger(value) ?? NaN
    return Number.isSafeInteger(value) ? BigInt(value as number) : value
  },
}
const integer: Codec = {
  readText: matching(INTEGER, Number),
  read: (value) => (isMarked(value) ? Number(exactInteger(value) ?? NaN) : value),
}
const string: Codec = { readText: (text) => text, read: unmarked }
const dateOf = (text: string) => parseDateTime(text) ?? text

/** The codec of no output. */
export const nothing: Codec = { read: unmarked }

const scalars: Partial<Record<z.core.$ZodTypeDef['type'], Codec>> = {
  bigint: int64,
  boolean: { readText: matching(/^(true|false)$/, (text) => text === 'true'), read: unmarked },
  date: {
    readText: dateOf,
    read: (value) => (typeof value === 'string' ? dateOf(value) : unmarked(value)),
  },
  enum: string,
  number: { readText: matching(/^-?\d+(\.\d+)?([eE][+-]?\d+)?$/, Number), read: unmarked },
  string,
  void: nothing,
}

const list = ({ read }: Codec): Codec => ({
  read: (value) => (Array.isArray(value) ? value.map(read) : unmarked(value)),
})

/** Returns the codec of an object, whose reader drops all other fields. */
export function object(fields: Record<string, Codec>): Codec {
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

/** Returns the codec of a schema. Throws TypeError for one that REST cannot encode, with `place` in its message. */
export function codecOf(schema: z.core.$ZodType, place: string): Codec {
  // https://zod.dev/packages/core has `_zod.def` for libraries. $ZodTypes are all schemas of zod.
  const { def } = (schema as z.core.$ZodTypes)._zod
  switch (def.type) {
    case 'optional':
    case 'default':
    case 'prefault':
      return codecOf(def.innerType, place)
    case 'nullable':
      return { read: codecOf(def.innerType, place).read } // a URL has no null
    case 'pipe': // of an input: outputs have none
      return codecOf(def.in, place)
    case 'union': // of `int64Input`: a bigint and a number
      return codecOf(def.options[0] as z.core.$ZodType, place)
    case 'array':
      return list(codecOf(def.element, `${place}[]`))
    case 'object': {
      const fields = Object.entries(def.shape)
      const codecs = fields.map(([name, field]) => [name, codecOf(field, `${place}.${name}`)])
      return object(Object.fromEntries(codecs))
    }
  }
  const isInteger = def.type === 'number' && (schema as z.ZodNumber).format?.includes('int')
  const codec = isInteger ? integer : scalars[def.type]
  if (!codec) throw new TypeError(`${place} is of the type ${def.type}, which REST cannot encode`)
  return codec
}
