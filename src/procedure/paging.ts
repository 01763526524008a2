/** Pagination by cursor, for any resource. */
import { z } from 'zod'
import { int64Input, MAX_LENGTH, textInput } from './fields.ts'

/** The maximum of `limit`, and so of the items of a page. */
export const MAX_LIMIT = 100

/** The items of a page without `limit`. */
export const DEFAULT_LIMIT = 20

/** A page of a list: what the resolver of a paged operation returns. */
export interface Page<Item = unknown> {
  items: Item[]
  /** The value of the input `cursor` for the next page; undefined for the last page. */
  next: unknown
}

/**
 * Returns the schemas of `limit` (1 to `MAX_LIMIT`, by default `DEFAULT_LIMIT`) and `cursor`, the inputs of every paged
 * operation. `noun` is the plural of the listed resource.
 */
export const pagingInputs = (noun: string) => ({
  limit: z
    .int({ error: `must be an integer from 1 to ${MAX_LIMIT}`, abort: true })
    .min(1, `must be at least 1`)
    .max(MAX_LIMIT, `must be at most ${MAX_LIMIT}`)
    .default(DEFAULT_LIMIT)
    .meta({ description: `Maximum number of ${noun} returned.`, override: { format: 'int32' } }),
  cursor: int64Input({})
    .optional()
    .meta({ description: `The \`id\` of the last of the ${noun} seen: the page begins after it.` }),
})

/** An id, a space, and a text. */
const TEXT_CURSOR = /^(\d{1,19}) (.+)$/s

/** Characters of an id and a space. */
const BEFORE_TEXT = 20

const LAST_ID = (1n << 63n) - 1n

/**
 * Returns the schema of the `cursor` of a list by a text field and then by id, in place of that of `pagingInputs`:
 * id and text of the last one seen, such as `7 Graz`, which clients of tRPC write too. `maxLength` is that of the
 * text. Its output is what a list `by` the text needs: see db/plans/pages.ts.
 * @public Lists by a text need it, such as that of owners in test/visits.
 */
export function textCursor(noun: string, field: string, maxLength = MAX_LENGTH) {
  const length = maxLength + BEFORE_TEXT
  const pattern = '^[0-9]{1,19} [^\\x00]+$'
  return textInput({}, length)
    .refine((text) => TEXT_CURSOR.test(text), {
      error: `must be the id, a space and the ${field} of one of the ${noun}`,
    })
    .transform((text) => {
      const [, digits = '', value = ''] = TEXT_CURSOR.exec(text) ?? []
      const id = BigInt(digits)
      return { id: id < LAST_ID ? id : LAST_ID, value }
    })
    .meta({ override: { type: 'string', minLength: 3, maxLength: length, pattern } })
    .optional()
    .meta({
      description: `The \`id\`, a space, and the \`${field}\` of the last of the ${noun} seen: the page begins after it.`,
    })
}

/**
 * Returns the output of a paged operation, whose resolver returns a page. `items` is the schema of its list,
 * which callers get; REST has the next cursor in the `Link` header (RFC 8288).
 */
export const paged = <Item extends z.ZodType>(items: z.ZodArray<Item>) =>
  z
    .custom<Page<z.input<Item>>>()
    .transform(({ items }) => items)
    .pipe(items)
