/** Schemas for quantities: integers of 32 bits from 0, which are a `number` in TypeScript. */
import { z } from 'zod'
import { type Documentation, type InputDocumentation, required } from './field.ts'

/** The greatest int32. */
const MAXIMUM = 2 ** 31 - 1

/** Returns the schema of an input: an integer from 0 to `maximum`, by default the greatest int32. */
export const quantityInput = (meta: InputDocumentation<number>, maximum = MAXIMUM) =>
  z
    .int({ error: required(`must be an integer from 0 to ${maximum}`), abort: true })
    .min(0, 'must be at least 0')
    .max(maximum, `must be at most ${maximum}`)
    .meta({ ...meta })

/** Returns the schema of an output: an integer from 0 to `maximum`, by default the greatest int32. */
export const quantityOutput = (meta: Documentation<number> = {}, maximum = MAXIMUM) =>
  z
    .int()
    .min(0)
    .max(maximum)
    .meta({ ...meta })
