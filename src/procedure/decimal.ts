/**
 * Decimals such as prices: exact, as a text on both surfaces, because what reads a JSON number may
 * round it (RFC 8259, section 6).
 */
import { z } from 'zod'

/** The digits that a decimal may have, as in SQL's `decimal(precision, scale)`. */
interface Size {
  /** All digits together, 18 at most, so that the units of a decimal fit an int64. */
  precision: number
  /** Digits after the point. */
  scale: number
  /** Whether it may be less than 0. */
  signed?: boolean
}

interface Documentation {
  description?: string
  examples?: string[]
}

// Without the format `decimal` of OpenAPI's registry: strict validators refuse formats that they do not know.
const jsonSchema = ({ precision, scale, signed }: Size, fraction: string) => ({
  type: 'string' as const,
  minLength: 1,
  maxLength: precision + (scale > 0 ? 1 : 0) + (signed ? 1 : 0),
  pattern: `^${signed ? '-?' : ''}(?:0|[1-9]\\d{0,${precision - scale - 1}})${fraction}$`,
})

/**
 * A decimal that comes in, with as many digits after the point as it likes to have, up to `scale`.
 * Gives one with exactly `scale` of them: `2.5` is `2.50`. Throws TypeError for a size that cannot be.
 */
export function decimalInput(meta: Documentation & { description: string }, size: Size) {
  const { precision, scale, signed } = size
  if (scale < 0 || scale >= precision || precision > 18) {
    throw new TypeError('A decimal has at most 18 digits, and at least one before the point')
  }
  const schema = jsonSchema(size, scale > 0 ? `(?:\\.\\d{1,${scale}})?` : '')
  const kind = signed ? 'a decimal number' : 'a decimal number of at least 0'
  const rule = `must be ${kind} in a string, such as "${decimalOf(250n, scale)}", with at most ${precision - scale} digits before the point and ${scale} after it`
  return z
    .string({ error: ({ input }) => (input === undefined ? 'is required' : rule) })
    .regex(new RegExp(schema.pattern), { error: rule, abort: true })
    .overwrite((text) => decimalOf(unitsOf(text, scale), scale))
    .meta({ ...meta, override: schema })
}

/** A decimal that goes out: what `decimalInput` let in. */
export const decimalOutput = (meta: Documentation, size: Size) =>
  z.string().meta({
    ...meta,
    override: jsonSchema(size, size.scale > 0 ? `\\.\\d{${size.scale}}` : ''),
  })

/**
 * A decimal in units of its last digit, as a column of 64 bits keeps it, exact and in order on every
 * engine: `2.50` of the scale 2 is 250.
 */
export function unitsOf(decimal: string, scale: number): bigint {
  const [whole, fraction = ''] = decimal.split('.')
  return BigInt(whole + fraction.padEnd(scale, '0'))
}

/** The decimal of so many units: of the scale 2, 250 is `2.50`. */
export function decimalOf(units: bigint, scale: number): string {
  const digits = String(units < 0n ? -units : units).padStart(scale + 1, '0')
  const sign = units < 0n ? '-' : ''
  if (scale === 0) return sign + digits
  return `${sign}${digits.slice(0, -scale)}.${digits.slice(-scale)}`
}
