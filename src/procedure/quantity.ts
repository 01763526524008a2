/** Quantities: how many there are of something, as an integer of 32 bits that is not negative. */
import { z } from 'zod'

/** The greatest int32. */
const MAXIMUM = 2 ** 31 - 1

interface Documentation {
  description?: string
  examples?: number[]
}

/** A quantity that comes in, of at most `maximum`, which is an int32. */
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

/** A quantity that goes out. */
export const quantityOutput = (meta: Documentation = {}, maximum: number = MAXIMUM) =>
  z
    .int()
    .min(0)
    .max(maximum)
    .meta({ ...meta })
