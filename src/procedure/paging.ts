/** Pagination by cursor, for any resource. */
import { z } from 'zod'
import type { Page } from '../../db/index.ts'
import { int64Input, MAX_LENGTH, textInput, UTC_TIME } from './fields.ts'

export type { Page }

/** The maximum of `limit`, and so of the items of a page. */
export const MAX_LIMIT = 100

/** The items of a page without `limit`. */
export const DEFAULT_LIMIT = 20

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

/** The position of the last item seen in a list by a column: its id, and its value of the column. */
export interface Position<Value> {
  id: bigint
  value: Value
}

/** An id, a space, and a text. */
const TEXT_CURSOR = /^(\d{1,19}) (.+)$/s

/** Characters of an id and a space. */
const BEFORE_TEXT = 20

const LAST_ID = (1n << 63n) - 1n

/** Returns the int64 of digits; the nearest one, for those of a greater integer. */
function int64Of(digits: string): bigint {
  const value = BigInt(digits)
  return value > LAST_ID ? LAST_ID : value < -LAST_ID - 1n ? -LAST_ID - 1n : value
}

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
    .transform((text): Position<string> => {
      const [, digits = '', value = ''] = TEXT_CURSOR.exec(text) ?? []
      return { id: int64Of(digits), value }
    })
    .meta({ override: { type: 'string', minLength: 3, maxLength: length, pattern } })
    .optional()
    .meta({
      description: `The \`id\`, a space, and the \`${field}\` of the last of the ${noun} seen: the page begins after it.`,
    })
}

/**
 * Returns the schema of the `cursor` of a list by a time and then by id: both of the last one seen, as answers have
 * them, such as `2026-01-02T03:04:05.678Z 7`. Clients of tRPC write it, too: `${item.at.toISOString()} ${item.id}`. Its
 * output has the time in milliseconds, as the column. `timeCursorOf` writes it.
 * @public Lists by a time need it, such as that of tours in test/visits.
 */
export const timeCursor = (noun: string, field: string) =>
  valueCursor(noun, field, UTC_TIME, 24, (time) => BigInt(Date.parse(time)))

/**
 * Returns the cursor of the page after an item with this time, in milliseconds, and this id.
 * @public As `timeCursor`.
 */
export const timeCursorOf = (time: bigint, id: bigint): string =>
  `${new Date(Number(time)).toISOString()} ${id}`

/**
 * Returns the schema of the `cursor` of a list by an int64 and then by id: both of the last one seen, such as
 * `-12 7`. Clients of tRPC write it, too: `${item.weight} ${item.id}`.
 * @public Lists by an integer need it.
 */
export const int64Cursor = (noun: string, field: string) =>
  valueCursor(noun, field, '-?[0-9]{1,19}', 20, int64Of)

/** Returns the schema of a cursor of a value, which has this pattern, a space, and an id. */
function valueCursor(
  noun: string,
  field: string,
  ofValue: string,
  maxLengthOfValue: number,
  read: (value: string) => bigint,
) {
  const pattern = `^${ofValue} [0-9]{1,19}$`
  const error = `must be the ${field}, a space and the id of one of the ${noun}`
  return z
    .string({ error })
    .regex(new RegExp(pattern), { error })
    .transform((text): Position<bigint> => {
      const [value = '', id = ''] = text.split(' ')
      return { id: int64Of(id), value: read(value) }
    })
    .meta({ override: { type: 'string', maxLength: maxLengthOfValue + BEFORE_TEXT, pattern } })
    .optional()
    .meta({
      description: `The \`${field}\`, a space, and the \`id\` of the last of the ${noun} seen: the page begins after it.`,
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
