/** The input of a procedure: that of its schemas, which are one where there are several. */
import { z } from 'zod'
import type { RestMeta } from './meta.ts'

/** The input of a procedure without a schema: as in tRPC, undefined for whatever a client sends. */
const NONE = z.unknown().transform(() => undefined)

/** Returns whether a procedure with this input has one, so that a client may send fields. */
export const hasInput = (input: z.ZodType): boolean => input !== NONE && input.def.type !== 'void'

/**
 * Returns the input of a procedure with these schemas, of several the merged object. Throws TypeError for what is no
 * schema of zod, and for several that cannot be merged.
 */
export function inputOf(name: string, schemas: unknown[], rest: RestMeta | undefined): z.ZodType {
  function need(condition: unknown, what: string): asserts condition {
    if (!condition) throw new TypeError(`The procedure ${name} ${what}`)
  }
  /** Returns an object with the fields and the checks of both. */
  function merge(before: z.ZodObject, schema: z.ZodType): z.ZodObject {
    need(isPlain(schema), MERGED)
    const twice = Object.keys(schema.shape).find((field) => field in before.shape)
    need(twice === undefined, `has the field ${twice} in two inputs`)
    // The checks of an object are of its type, which the merged one extends.
    const checks = (schema.def.checks ?? []) as Parameters<typeof before.check>
    return before.safeExtend(schema.shape).check(...checks)
  }
  need(
    schemas.every((schema): schema is z.ZodType => schema instanceof z.ZodType),
    'has an input that is no schema of zod',
  )
  const [first = NONE, ...others] = schemas as z.ZodType[]
  const id = rest?.inputId
  need(others.length > 0 || id === undefined, 'has an inputId, but its one input has an id')
  if (others.length === 0) return first
  need(isPlain(first), MERGED)
  const merged = others.reduce(merge, first)
  return id === undefined ? merged : merged.meta({ id })
}

const MERGED =
  'has several inputs, so each must be z.object(…), without strict, loose, optional or a transform'

const isPlain = (schema: z.ZodType): schema is z.ZodObject =>
  schema instanceof z.ZodObject && schema.def.catchall === undefined
