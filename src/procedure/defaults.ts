/** Inputs without their defaults. */
import { stringify } from 'devalue'
import type { z } from 'zod'

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
      const fields = Object.entries(value).flatMap(([name, field]) => {
        const own = def.shape[name]
        if (!own) return [[name, field]]
        const omitted = (own as z.ZodType).safeParse(undefined)
        const isDefault = omitted.success && stringify(omitted.data) === stringify(field)
        return isDefault ? [] : [[name, withoutDefaults(own, field)]]
      })
      return Object.fromEntries(fields)
    }
    default:
      return value
  }
}
