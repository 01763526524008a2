/**
 * Schemas for exact decimals, such as prices. They are strings on both surfaces, because parsers may
 * round JSON numbers (RFC 8259, section 6).
 */
import { z } from 'zod'
import { type Documentation, type InputDocumentation, required } from './field.ts'

/** The size of a decimal, as in SQL's `decimal(precision, scale)`. */
interface Size {
  /** All digits: at most 18, so that `unitsOf` returns an int64. */
  precision: number
  /** Digits after the decimal point: at least one, and fewer than `precision`. Without any, see `int64`. */
  scale: number
  /** Whether negative decimals are valid. */
  signed?: boolean
}

// The format `decimal` of OpenAPI's registry is omitted: strict validators reject unknown formats.
const jsonSchema = ({ precision, scale, signed }: Size, fraction: string) => ({
  type: 'string' as const,
  minLength: 1,
  maxLength: precision + 1 + (signed ? 1 : 0),
  pattern: `^${signed ? '-?' : ''}(?:0|[1-9]\\d{0,${precision - scale - 1}})${fraction}$`,
})

/**
 * Returns the schema of an input: a decimal with up to `scale` digits after the point. Its output has
 * exactly `scale` of them: for scale 2, `2.5` becomes `2.50`. Throws TypeError for an invalid size.
 */
export function decimalInput(meta: InputDocumentation, size: Size) {
  const { precision, scale, signed } = size
  if (scale < 1 || scale >= precision || precision > 18) {
    throw new TypeError(
      'A decimal has at most 18 digits, and at least one on each side of the point',
    )
  }
  const schema = jsonSchema(size, `(?:\\.\\d{1,${scale}})?`)
  const kind = signed ? 'a decimal number' : 'a decimal number of at least 0'
  const rule = `must be ${kind} in a string, such as "${decimalOf(250n, scale)}", with at most ${precision - scale} digits before the point and ${scale} after it`
  return z
    .string({ error: required(rule) })
    .regex(new RegExp(schema.pattern), { error: rule, abort: true })
    .overwrite((text) => decimalOf(unitsOf(text, scale), scale))
    .meta({ ...meta, override: schema })
}

/** Returns the schema of an output: a decimal with exactly `scale` digits after the point. */
export const decimalOutput = (meta: Documentation, size: Size) =>
  z.string().meta({ ...meta, override: jsonSchema(size, `\\.\\d{${size.scale}}`) })

/**
 * Returns a decimal as an int64, in units of its last digit: for scale 2, `2.50` is 250. A column of
 * int64 is exact and sorts alike on every engine.
 */
export function unitsOf(decimal: string, scale: number): bigint {
  const [whole, fraction = ''] = decimal.split('.')
  return BigInt(whole + fraction.padEnd(scale, '0'))
}

/** Returns the decimal of an int64 from `unitsOf`: for scale 2, 250 is `2.50`. */
export function decimalOf(units: bigint, scale: number): string {
  const digits = String(units < 0n ? -units : units).padStart(scale + 1, '0')
  const sign = units < 0n ? '-' : ''
  return `${sign}${digits.slice(0, -scale)}.${digits.slice(-scale)}`
}
