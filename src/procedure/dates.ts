/** Dates and times as RFC 3339 writes them: a point in time is a `Date`, a day of the calendar a text. */
import { z } from 'zod'

// zod's knows how many days a month has (RFC 3339, section 5.7).
const DAY = z.regexes.date.source.slice(1, -1)
const TIME = '(?:[01]\\d|2[0-3]):[0-5]\\d'
// RFC 3339, section 5.6, where T and Z may be lower case. No leap second, because a Date has none.
const DATE_TIME = `^${DAY}[Tt]${TIME}:[0-5]\\d(?:\\.\\d+)?(?:[Zz]|[+-]${TIME})$`
const dateTimePattern = new RegExp(DATE_TIME)

/** Characters of a date-time: room for nanoseconds and an offset. */
const MAX_LENGTH = 35

// Years that RFC 3339 can write, in UTC, as which all answers are.
const FIRST = new Date('0000-01-01T00:00:00.000Z')
const LAST = new Date('9999-12-31T23:59:59.999Z')

/** Points in time right before and after them, which a `Date` can hold all the same. */
export const UNWRITABLE = [new Date(FIRST.getTime() - 1), new Date(LAST.getTime() + 1)]

/**
 * The point in time that a date-time of RFC 3339 names; what is finer than a millisecond is cut off.
 * Undefined for any other text, and for a day that does not exist and a leap second. An offset can
 * lead to a year that RFC 3339 cannot write, which the schemas below refuse.
 */
export function parseDateTime(text: string): Date | undefined {
  const isDateTime = text.length <= MAX_LENGTH && dateTimePattern.test(text)
  return isDateTime ? new Date(text.toUpperCase()) : undefined
}

interface Documentation {
  description?: string
  /** As REST writes them. */
  examples?: string[]
}

const DATE_TIME_RULE =
  'must be a date and time in the years 0000 to 9999 (UTC), such as 2026-01-02T03:04:05Z'

const range = z
  .date({
    error({ input }) {
      if (input === undefined) return 'is required'
      const isLeapSecond = typeof input === 'string' && /T\d\d:\d\d:60/i.test(input)
      return isLeapSecond ? 'must not be a leap second: send the second before it' : DATE_TIME_RULE
    },
  })
  .min(FIRST, DATE_TIME_RULE)
  .max(LAST, DATE_TIME_RULE)

/** A point in time that comes in: on REST a `date-time` of at most 35 characters, on tRPC a `Date`. */
export const dateTimeInput = (meta: Documentation & { description: string }) =>
  range.meta({
    ...meta,
    override: { type: 'string', format: 'date-time', maxLength: MAX_LENGTH, pattern: DATE_TIME },
  })

/** A point in time that goes out: on REST in UTC, with milliseconds. */
export const dateTimeOutput = (meta: Documentation = {}) =>
  range.meta({ ...meta, override: { type: 'string', format: 'date-time', maxLength: 24 } })

const fullDate = {
  type: 'string',
  format: 'date',
  minLength: 10,
  maxLength: 10,
  pattern: z.regexes.date.source,
} as const

/**
 * A day of the calendar that comes in, which exists: a text such as `2026-01-02` (the full-date of
 * RFC 3339) on both surfaces, because a `Date` is another day in another time zone.
 */
export const dateInput = (meta: Documentation & { description: string }) =>
  z
    .string({ error: ({ input }) => (input === undefined ? 'is required' : 'must be a string') })
    .regex(z.regexes.date, 'must be a day of the calendar, such as 2026-01-02')
    .meta({ ...meta, override: fullDate })

/** A day of the calendar that goes out. */
export const dateOutput = (meta: Documentation = {}) =>
  z.string().meta({ ...meta, override: fullDate })
