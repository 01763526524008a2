/** Schemas for quantities: integers of 32 bits from 0, which are a `number` in TypeScript. */
import { z } from 'zod'

/** The greatest int32. */
const MAXIMUM = 2 ** 31 - 1

interface Documentation {
  description?: string
  examples?: number[]
}

/** Returns the schema of an input: an integer from 0 to `maximum`, by default the greatest int32. */
export const quantityInput = (
  meta: Documentation & { description: string },
  maximum: number = MAXIMUM,
) =>
  z
    .int({
      error: ({ input }) =>
        input === undefined ? 'is required' : `must be an integer from 0 to ${maximum}`,
      abort: true,
    })
    .min(0, 'must be at least 0')
    .max(maximum, `must be at most ${maximum}`)
    .meta({ ...meta })

/** Returns the schema of an output: an integer from 0 to `maximum`, by default the greatest int32. */
export const quantityOutput = (meta: Documentation = {}, maximum: number = MAXIMUM) =>
  z
    .int()
    .min(0)
    .max(maximum)
    .meta({ ...meta })
