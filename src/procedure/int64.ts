/** Integers of 64 bits: exact from the database to the client, a `bigint` in TypeScript. */
import { z } from 'zod'

/** The range of an int64. */
export const INT64_MIN = -(2n ** 63n)
export const INT64_MAX = 2n ** 63n - 1n

// zod knows no JSON Schema for a bigint; this is OpenAPI's: https://spec.openapis.org/registry/format/int64
// The document adds the range, which zod's JSON Schema could only hold rounded.
const jsonSchema = { type: 'integer', format: 'int64' } as const
const message = `must be an integer from ${INT64_MIN} to ${INT64_MAX}`

interface Documentation {
  description: string
  examples?: number[]
}

/**
 * An int64 that comes in: a bigint, or a number that is a safe integer (a greater one has lost
 * digits before it got here). Gives a bigint.
 */
export const int64Input = ({ description, examples }: Documentation) =>
  z
    // Aborting checks leave the words to the union; others it would pass on as they are.
    .union(
      [
        z.bigint().min(INT64_MIN, { abort: true }).max(INT64_MAX, { abort: true }),
        z.int({ abort: true }),
      ],
      {
        error: ({ input }) =>
          Number.isInteger(input) && !Number.isSafeInteger(input)
            ? 'is a number too great to be exact: pass a bigint'
            : input === undefined
              ? 'is required'
              : message,
      },
    )
    .transform(BigInt)
    .meta({
      description,
      // zod leaves out the examples of what is transformed, so they are put back here.
      override({ jsonSchema: generated }) {
        delete generated.anyOf
        Object.assign(generated, jsonSchema, examples && { examples })
      },
    })

/** An int64 that goes out. */
export const int64Output = (documentation: Documentation) =>
  z.bigint().meta({ ...documentation, override: jsonSchema })
