/** The codecs of REST: from text and JSON to inputs, and from outputs to JSON, by their schemas. */
import type { z } from 'zod'
import { parseDateTime } from '../../procedure/dates.ts'
import { exactInteger, isMarked, rawInteger, unmarked } from './json.ts'

/** How REST reads and writes the values of a schema. A reader leaves what it cannot read for the schema to reject. */
export interface Codec {
  /** Converts a parameter of the path or the query. Undefined for a type that no URL can have. */
  readText?: ((text: string) => unknown) | undefined
  /** Converts a value from `parseJson`. */
  read(value: unknown): unknown
  /** Converts an output for JSON.stringify. Undefined if the output needs no conversion. */
  write?: ((value: unknown) => unknown) | undefined
  /** The codecs of the fields of an object. */
  fields?: Field[]
}

type Field = [name: string, codec: Codec]

const INTEGER = /^-?\d+$/
const NUMBER = /^-?\d+(\.\d+)?([eE][+-]?\d+)?$/

const int64: Codec = {
  readText: (text) => (INTEGER.test(text) ? BigInt(text) : text),
  read(value) {
    if (isMarked(value)) return exactInteger(value) ?? NaN
    return Number.isSafeInteger(value) ? BigInt(value as number) : value
  },
  write: (value) => rawInteger(value as bigint), // the output's schema returns a bigint
}
const integer: Codec = {
  readText: (text) => (INTEGER.test(text) ? Number(text) : text),
  read: (value) => (isMarked(value) ? Number(exactInteger(value) ?? NaN) : value),
}
const number: Codec = {
  readText: (text) => (NUMBER.test(text) ? Number(text) : text),
  read: unmarked,
}
const boolean: Codec = {
  readText: (text) => (text === 'true' ? true : text === 'false' ? false : text),
  read: unmarked,
}
const string: Codec = { readText: (text) => text, read: unmarked }
const dateOf = (text: string) => parseDateTime(text) ?? text
const date: Codec = {
  readText: dateOf,
  read: (value) => (typeof value === 'string' ? dateOf(value) : unmarked(value)),
}

/** The codec of no output. */
export const nothing: Codec = { read: unmarked }

const nullable = ({ read, write }: Codec): Codec => ({
  read,
  write: write && ((value) => (value === null ? null : write(value))),
})

const list = ({ read, write }: Codec): Codec => ({
  read: (value) => (Array.isArray(value) ? value.map(read) : unmarked(value)),
  write: write && ((items) => (items as unknown[]).map(write)),
})

/** Returns the codec of an object, whose reader drops all other fields. */
export function object(fields: Field[]): Codec {
  const writers = fields.flatMap(([name, { write }]) => (write ? [{ name, write }] : []))
  return {
    fields,
    read(value) {
      if (typeof value !== 'object' || value === null || Array.isArray(value))
        return unmarked(value)
      const copy: Record<string, unknown> = {}
      for (const [name, { read }] of fields) {
        // Every object inherits fields such as `constructor`.
        if (Object.hasOwn(value, name)) copy[name] = read(value[name as keyof typeof value])
      }
      return copy
    },
    write:
      writers.length === 0
        ? undefined
        : (value) => {
            const copy: Record<string, unknown> = { ...(value as object) }
            for (const { name, write } of writers) {
              if (copy[name] !== undefined) copy[name] = write(copy[name])
            }
            return copy
          },
  }
}

/**
 * Returns the codec of a schema; `io` is the side of a transformation. Throws TypeError for a schema
 * that REST cannot encode, with `place` in its message.
 */
export function codecOf(schema: z.core.$ZodType, io: 'input' | 'output', place: string): Codec {
  // https://zod.dev/packages/core has `_zod.def` for libraries. $ZodTypes are all schemas of zod.
  const { def } = (schema as z.core.$ZodTypes)._zod
  switch (def.type) {
    case 'optional':
    case 'default':
    case 'prefault':
      return codecOf(def.innerType, io, place)
    case 'nullable':
      return nullable(codecOf(def.innerType, io, place))
    case 'pipe':
      return codecOf(io === 'input' ? def.in : def.out, io, place)
    case 'array':
      return list(codecOf(def.element, io, `${place}[]`))
    case 'object':
      return object(
        Object.entries(def.shape).map(([name, field]) => [
          name,
          codecOf(field, io, `${place}.${name}`),
        ]),
      )
    case 'union': // `int64Input` is a union of a bigint and a number
      if (def.options.some(({ _zod }) => _zod.def.type === 'bigint')) return int64
      break
    case 'bigint':
      return int64
    case 'number':
      return (schema as z.ZodNumber).format?.includes('int') ? integer : number
    case 'boolean':
      return boolean
    case 'string':
    case 'enum':
      return string
    case 'date':
      return date
    case 'void':
      return nothing
  }
  throw new TypeError(`${place} is of the type ${def.type}, which REST cannot encode`)
}
