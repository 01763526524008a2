/** Inputs without their defaults. */
import { stringify } from 'devalue'
import type { z } from 'zod'

/** The fields of an object: the schema of each, and its default in devalue's encoding if it has one. */
type Fields = Map<string, { schema: z.core.$ZodType; usual: string | undefined }>

const known = new WeakMap<z.core.$ZodType, Fields>()

/** Returns the fields of an object's schema, which it parses once: an error of zod is slow. */
function fieldsOf(object: z.core.$ZodType, shape: z.core.$ZodShape): Fields {
  const before = known.get(object)
  if (before) return before
  const fields: Fields = new Map()
  for (const [name, schema] of Object.entries(shape)) {
    const { success, data } = (schema as z.ZodType).safeParse(undefined)
    fields.set(name, { schema, usual: success ? stringify(data) : undefined })
  }
  known.set(object, fields)
  return fields
}

/**
 * Returns a parsed input without the fields that have their defaults, also in objects and lists inside it.
 * So it stays the same when a later release adds a field with a default.
 */
export function withoutDefaults(schema: z.core.$ZodType, value: unknown): unknown {
  // zod's union of its own schemas; no case names any other.
  const { def } = (schema as z.core.$ZodTypes)._zod
  switch (def.type) {
    case 'optional':
    case 'nullable':
    case 'default':
    case 'prefault':
    case 'readonly':
      return withoutDefaults(def.innerType, value)
    case 'array':
      return Array.isArray(value) ? value.map((item) => withoutDefaults(def.element, item)) : value
    case 'object': {
      if (typeof value !== 'object' || value === null) return value
      const fields = fieldsOf(schema, def.shape)
      const given = Object.entries(value).flatMap(([name, inner]) => {
        const field = fields.get(name)
        if (!field) return [[name, inner]]
        const isUsual = field.usual !== undefined && field.usual === stringify(inner)
        return isUsual ? [] : [[name, withoutDefaults(field.schema, inner)]]
      })
      return Object.fromEntries(given)
    }
    default:
      return value
  }
}
