/** Pagination by cursor, for any resource. */
import { z } from 'zod'
import { int64Input } from './fields.ts'

/** The maximum of `limit`, and so of the items of a page. */
export const MAX_LIMIT = 100

/** A page of a list: what the resolver of a paged operation returns. */
export interface Page<Item = unknown> {
  items: Item[]
  /** The value of the input `cursor` for the next page; undefined for the last page. */
  next: unknown
}

/**
 * Returns the schemas of `limit` (1 to 100, by default 20) and `cursor`, the inputs of every paged
 * operation. `noun` is the plural of the listed resource.
 */
export const pagingInputs = (noun: string) => ({
  limit: z
    .int({ error: `must be an integer from 1 to ${MAX_LIMIT}`, abort: true })
    .min(1, `must be at least 1`)
    .max(MAX_LIMIT, `must be at most ${MAX_LIMIT}`)
    .default(20)
    .meta({ description: `Maximum number of ${noun} returned.`, override: { format: 'int32' } }),
  cursor: int64Input({
    description: `The \`id\` of the last of the ${noun} seen: the page begins after it.`,
  }).optional(),
})

/** The schemas of the items, by the outputs that `paged` has made. */
const schemasOfItems = new WeakMap<z.ZodType, z.ZodType>()

/**
 * Returns the output of a paged operation, whose resolver returns a page. `items` is the schema of its list,
 * which callers get; REST has the next cursor in the `Link` header (RFC 8288).
 */
export function paged<Item extends z.ZodType>(items: z.ZodArray<Item>) {
  const page = z.custom<Page<z.input<Item>>>()
  const output = page.transform(({ items }) => items).pipe(items)
  schemasOfItems.set(output, items)
  return output
}

/** Returns the schema of the items, for an output that `paged` has made. */
export const itemsOf = (output: z.ZodType): z.ZodType | undefined => schemasOfItems.get(output)
