/** Schemas of fields: integers of 64 bits, which are a `bigint` in TypeScript, texts, and times, which are a `Date`. */
import { z } from 'zod'

/** The texts of a field in the document; the examples are in JSON. */
interface Documentation<Example = string> {
  description?: string
  examples?: Example[]
}

/** Returns the error of a field that is missing, or that breaks a rule. */
const required =
  (rule: string) =>
  ({ input }: { input?: unknown }): string =>
    input === undefined ? 'is required' : rule

/** The range of an int64, without `**`, which Babel makes `Math.pow`: that takes no bigint. */
const INT64_MIN = -(1n << 63n)
const INT64_MAX = (1n << 63n) - 1n

// zod has no JSON Schema for a bigint. This one is https://spec.openapis.org/registry/format/int64
// The format says the range: as bounds, many tools would round it to numbers beyond an int64.
const int64 = { type: 'integer', format: 'int64' } as const

/**
 * Returns the schema of an input: a bigint in the range of int64, or a number that is a safe integer
 * (greater numbers may be rounded). Its output is a bigint.
 */
export const int64Input = ({ description, examples }: Documentation<number>) =>
  z
    // zod uses the union's message only if every check aborts. Any other check reports its own.
    .union(
      [
        z.bigint().min(INT64_MIN, { abort: true }).max(INT64_MAX, { abort: true }),
        z.int({ abort: true }),
      ],
      {
        error: (issue) =>
          Number.isInteger(issue.input) && !Number.isSafeInteger(issue.input)
            ? 'is a number too great to be exact: pass a bigint'
            : required(`must be an integer from ${INT64_MIN} to ${INT64_MAX}`)(issue),
      },
    )
    .transform(BigInt)
    .meta({
      description,
      // zod omits the examples of a transformed schema.
      override({ jsonSchema: generated }) {
        delete generated.anyOf
        Object.assign(generated, int64, examples && { examples })
      },
    })

/** Returns the schema of an output: an int64, as a bigint. */
export const int64Output = (documentation: Documentation<number>) =>
  z.bigint().meta({ ...documentation, override: int64 })

/** Characters (Unicode code points) of a column `varchar(255)`. */
export const MAX_LENGTH = 255

/** Text that shows nothing. A text may contain such characters, such as the joiner of an emoji. */
const BLANK = /^[\p{White_Space}\p{Default_Ignorable_Code_Point}\u2800]*$/u

// As much of the rules as means the same in every language: \s does not, and some cannot read \u0000.
const PATTERN = '^[^\\x00]*[^\\x00\\x09-\\x0d\\x20\\x85\\xa0][^\\x00]*$'

/**
 * Returns the schema of an input: a string of 1 to `maxLength` characters (Unicode code points), by
 * default 255. It must not be blank, and must not contain NUL or an unpaired surrogate. The document
 * has as much of these rules as a pattern can say.
 */
export const textInput = (meta: Documentation, maxLength = MAX_LENGTH) =>
  z
    .string({ error: required('must be a string') })
    .refine((text) => text !== '', { error: 'must not be empty', abort: true })
    // MySQL and JSON Schema count code points, and `length` counts UTF-16 code units.
    .refine((text) => text.length <= maxLength || [...text].length <= maxLength, {
      error: `must have at most ${maxLength} characters`,
      abort: true,
    })
    .refine((text) => !BLANK.test(text), { error: 'must not be blank' })
    .refine((text) => text.isWellFormed(), { error: 'must not contain an unpaired surrogate' })
    .refine((text) => !text.includes('\0'), { error: 'must not contain the character NUL' })
    .meta({
      ...meta,
      override: { type: 'string', minLength: 1, maxLength, pattern: PATTERN },
    })

/** Returns the schema of an output. Generated clients check its length alone, some in UTF-16 code units. */
export const textOutput = (meta: Documentation, maxLength = MAX_LENGTH) =>
  z.string().meta({ ...meta, override: { type: 'string', maxLength: 2 * maxLength } })

// zod's pattern knows the days of each month (RFC 3339, section 5.7).
const DAY = z.regexes.date.source.slice(1, -1)
const TIME = '(?:[01][0-9]|2[0-3]):[0-5][0-9]'
// RFC 3339, section 5.6: T and Z may be lower case. A Date has no leap seconds, so 60 is excluded.
const DATE_TIME = new RegExp(`^${DAY}[Tt]${TIME}:[0-5][0-9](?:\\.[0-9]+)?(?:[Zz]|[+-]${TIME})$`)

/** The pattern of a time as answers have it, in UTC with milliseconds. In some languages \\d has the digits of all scripts. */
export const UTC_TIME = `${DAY}T${TIME}:[0-5][0-9]\\.[0-9]{3}Z`.replaceAll('\\d', '[0-9]')

/** Characters of a date-time: enough for nanoseconds and an offset. */
const MAX_DATE_TIME = 35

/**
 * Returns the Date of a date-time of RFC 3339, truncated to milliseconds. Undefined for any other text,
 * for a day that does not exist, and for a leap second. The year in UTC may be out of range because of
 * the offset: the schemas below reject it.
 */
export function parseDateTime(text: string): Date | undefined {
  const isDateTime = text.length <= MAX_DATE_TIME && DATE_TIME.test(text)
  return isDateTime ? new Date(text.toUpperCase()) : undefined
}

const DATE_TIME_RULE =
  'must be a date and time in the years 0000 to 9999 (UTC), such as 2026-01-02T03:04:05Z'

// RFC 3339 has years of four digits, and responses are in UTC.
const range = z
  .date({ error: required(DATE_TIME_RULE) })
  .min(new Date('0000-01-01T00:00:00.000Z'), DATE_TIME_RULE)
  .max(new Date('9999-12-31T23:59:59.999Z'), DATE_TIME_RULE)

// The format alone: code that is generated makes a time of it, to which it cannot apply a length or a pattern.
const dateTime = { type: 'string', format: 'date-time' } as const

/**
 * Returns the schema of an input: on REST a `date-time` of at most 35 characters, on tRPC a `Date`.
 * @public Resources with times need it, such as test/visits.
 */
export const dateTimeInput = (meta: Documentation) => range.meta({ ...meta, override: dateTime })

/**
 * Returns the schema of an output: on REST a `date-time` in UTC with milliseconds, on tRPC a `Date`.
 * @public As `dateTimeInput`.
 */
export const dateTimeOutput = (meta: Documentation = {}) =>
  range.meta({ ...meta, override: dateTime })
