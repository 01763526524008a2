/** Schemas of times: on REST a date-time of RFC 3339, on tRPC a `Date`. */
import { z } from 'zod'
import { type Documentation, type InputDocumentation, required } from './fields.ts'

// zod's pattern knows the days of each month (RFC 3339, section 5.7).
const DAY = z.regexes.date.source.slice(1, -1).replaceAll('\\d', '[0-9]')
const TIME = '(?:[01][0-9]|2[0-3]):[0-5][0-9]'
// RFC 3339, section 5.6: T and Z may be lower case. A Date has no leap seconds, so 60 is excluded.
// Not \d: in some languages that read the document, it has the digits of all scripts.
const DATE_TIME = `^${DAY}[Tt]${TIME}:[0-5][0-9](?:\\.[0-9]+)?(?:[Zz]|[+-]${TIME})$`
const dateTimePattern = new RegExp(DATE_TIME)

/** Characters of a date-time: enough for nanoseconds and an offset. */
const MAX_LENGTH = 35

// RFC 3339 has years of four digits, and responses are in UTC.
const FIRST = new Date('0000-01-01T00:00:00.000Z')
const LAST = new Date('9999-12-31T23:59:59.999Z')

/**
 * Returns the Date of a date-time of RFC 3339, truncated to milliseconds. Undefined for any other text,
 * for a day that does not exist, and for a leap second. The year in UTC may be out of range because of
 * the offset: the schemas below reject it.
 */
export function parseDateTime(text: string): Date | undefined {
  const isDateTime = text.length <= MAX_LENGTH && dateTimePattern.test(text)
  return isDateTime ? new Date(text.toUpperCase()) : undefined
}

const DATE_TIME_RULE =
  'must be a date and time in the years 0000 to 9999 (UTC), such as 2026-01-02T03:04:05Z'

const LEAP_SECOND = 'must not be a leap second: send the second before it'

const range = z
  .date({
    error(issue) {
      const { input } = issue
      const isLeapSecond = typeof input === 'string' && /T\d\d:\d\d:60/i.test(input)
      return isLeapSecond ? LEAP_SECOND : required(DATE_TIME_RULE)(issue)
    },
  })
  .min(FIRST, DATE_TIME_RULE)
  .max(LAST, DATE_TIME_RULE)

/**
 * Returns the schema of an input: on REST a `date-time` of at most 35 characters, on tRPC a `Date`.
 * @public Resources with times need it, such as test/visits.
 */
export const dateTimeInput = (meta: InputDocumentation) =>
  range.meta({
    ...meta,
    override: { type: 'string', format: 'date-time', maxLength: MAX_LENGTH, pattern: DATE_TIME },
  })

/**
 * Returns the schema of an output: on REST a `date-time` in UTC with milliseconds, on tRPC a `Date`.
 * @public As `dateTimeInput`.
 */
export const dateTimeOutput = (meta: Documentation = {}) =>
  range.meta({ ...meta, override: { type: 'string', format: 'date-time', maxLength: 24 } })
