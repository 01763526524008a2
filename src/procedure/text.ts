/** Schemas for text, with the same rules in every resource. */
import { z } from 'zod'
import { type Documentation, type InputDocumentation, required } from './field.ts'

/** Characters (Unicode code points) of a column `varchar(255)`. */
const MAX_LENGTH = 255

const jsonSchema = (maxLength: number) =>
  ({
    type: 'string',
    minLength: 1,
    maxLength,
    // Not \u0000: some languages do not parse it, and some generators write the character itself.
    pattern: '^[^\\x00]*[^\\s\\x00][^\\x00]*$',
  }) as const

/**
 * Returns the schema of an input: a string of 1 to `maxLength` characters (Unicode code points), by
 * default 255. It must not be blank, and must not contain NUL or an unpaired surrogate. The document
 * has these rules except the last, which JSON Schema cannot express.
 */
export const textInput = (meta: InputDocumentation, maxLength = MAX_LENGTH) =>
  z
    .string({ error: required('must be a string') })
    .refine((text) => text !== '', { error: 'must not be empty', abort: true })
    // MySQL and JSON Schema count code points, and `length` counts UTF-16 code units.
    .refine((text) => text.length <= maxLength || [...text].length <= maxLength, {
      error: `must have at most ${maxLength} characters`,
      abort: true,
    })
    .refine((text) => /\S/.test(text), { error: 'must not be blank' })
    .refine((text) => text.isWellFormed(), { error: 'must not contain an unpaired surrogate' })
    .refine((text) => !text.includes('\0'), { error: 'must not contain the character NUL' })
    .meta({ ...meta, override: jsonSchema(maxLength) })

/** Returns the schema of an output. The document has the rules of `textInput`; nothing checks them again. */
export const textOutput = (meta: Documentation, maxLength = MAX_LENGTH) =>
  z.string().meta({ ...meta, override: jsonSchema(maxLength) })
