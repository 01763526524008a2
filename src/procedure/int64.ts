/** Schemas for integers of 64 bits, which are a `bigint` in TypeScript. */
import { z } from 'zod'
import { type InputDocumentation, required } from './field.ts'

/** The range of an int64. */
export const INT64_MIN = -(2n ** 63n)
export const INT64_MAX = 2n ** 63n - 1n

// zod has no JSON Schema for a bigint. This one is https://spec.openapis.org/registry/format/int64
// The document adds the range later (see surface/rest/openapi/document.ts), because zod would round it.
const jsonSchema = { type: 'integer', format: 'int64' } as const

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
        Object.assign(generated, jsonSchema, examples && { examples })
      },
    })

/** Returns the schema of an output: an int64, as a bigint. */
export const int64Output = (documentation: InputDocumentation<number>) =>
  z.bigint().meta({ ...documentation, override: jsonSchema })
