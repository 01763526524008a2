/** Schemas of fields: texts, and integers of 64 bits, which are a `bigint` in TypeScript. */
import { z } from 'zod'

/** The texts of a field in the document; the examples are in JSON. */
export interface Documentation<Example = string> {
  description?: string
  examples?: Example[]
}

/** The texts of an input, which needs a description. */
export type InputDocumentation<Example = string> = Documentation<Example> & { description: string }

/** Returns the error of a field that is missing, or that breaks a rule. */
export const required =
  (rule: string) =>
  ({ input }: { input?: unknown }): string =>
    input === undefined ? 'is required' : rule

/** The range of an int64. */
export const INT64_MIN = -(2n ** 63n)
export const INT64_MAX = 2n ** 63n - 1n

// zod has no JSON Schema for a bigint. This one is https://spec.openapis.org/registry/format/int64
// The format says the range: as bounds, many tools would round it to numbers beyond an int64.
const int64 = { type: 'integer', format: 'int64' } as const

/**
 * Returns the schema of an input: a bigint in the range of int64, or a number that is a safe integer
 * (greater numbers may be rounded). Its output is a bigint.
 */
export const int64Input = ({ description, examples }: InputDocumentation<number>) =>
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
export const int64Output = (documentation: InputDocumentation<number>) =>
  z.bigint().meta({ ...documentation, override: int64 })

/** Characters (Unicode code points) of a column `varchar(255)`. */
const MAX_LENGTH = 255

/** Text that shows nothing. A text may contain such characters, such as the joiner of an emoji. */
const BLANK = /^[\p{White_Space}\p{Default_Ignorable_Code_Point}\u2800]*$/u

// As much of the rules as means the same in every language: \s does not, and some cannot read \u0000.
const PATTERN = '^[^\\x00]*[^\\x00\\x09-\\x0d\\x20\\x85\\xa0][^\\x00]*$'

/**
 * Returns the schema of an input: a string of 1 to `maxLength` characters (Unicode code points), by
 * default 255. It must not be blank, and must not contain NUL or an unpaired surrogate. The document
 * has as much of these rules as a pattern can say.
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
    .refine((text) => !BLANK.test(text), { error: 'must not be blank' })
    .refine((text) => text.isWellFormed(), { error: 'must not contain an unpaired surrogate' })
    .refine((text) => !text.includes('\0'), { error: 'must not contain the character NUL' })
    .meta({
      ...meta,
      override: { type: 'string', minLength: 1, maxLength, pattern: PATTERN },
    })

/** Returns the schema of an output. Nothing checks the rules of `textInput` again: generated clients would. */
export const textOutput = (meta: Documentation, maxLength = MAX_LENGTH) =>
  z.string().meta({ ...meta, override: { type: 'string', maxLength } })
