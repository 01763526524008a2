/** Text: its rules are the same for any resource. */
import { z } from 'zod'

/** Characters (Unicode code points) that a column `varchar(255)` holds. */
const MAX_LENGTH = 255

const jsonSchema = (maxLength: number) =>
  ({
    type: 'string',
    minLength: 1,
    maxLength,
    // Not \u0000, which some languages do not read and some generators write out as the character.
    pattern: '^[^\\x00]*[^\\s\\x00][^\\x00]*$',
  }) as const

interface Documentation {
  description?: string
  examples?: string[]
}

/**
 * A text of 1 to `maxLength` characters (Unicode code points), not blank, well-formed, without NUL.
 * The document says the same in JSON Schema, as far as that can.
 */
export const textInput = (meta: Documentation & { description: string }, maxLength = MAX_LENGTH) =>
  z
    .string({ error: ({ input }) => (input === undefined ? 'is required' : 'must be a string') })
    .refine((text) => text !== '', { error: 'must not be empty', abort: true })
    // MySQL and JSON Schema count code points, while a string's length counts UTF-16 units.
    .refine((text) => text.length <= maxLength || [...text].length <= maxLength, {
      error: `must have at most ${maxLength} characters`,
      abort: true,
    })
    .refine((text) => /\S/.test(text), { error: 'must not be blank' })
    .refine((text) => text.isWellFormed(), { error: 'must not hold half of a surrogate pair' })
    .refine((text) => !text.includes('\0'), { error: 'must not hold the character NUL' })
    .meta({ ...meta, override: jsonSchema(maxLength) })

/** A text that goes out: what `textInput` let in. The document says so; nothing checks it again. */
export const textOutput = (meta: Documentation, maxLength = MAX_LENGTH) =>
  z.string().meta({ ...meta, override: jsonSchema(maxLength) })
