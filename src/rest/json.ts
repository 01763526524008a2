/**
 * JSON without rounding: integers come in as `bigint` and go out digit for digit.
 * It rests on JSON.parse's source text and JSON.rawJSON (tc39/proposal-json-parse-with-source).
 */
import { malformed } from '../errors.ts'

declare global {
  interface JSON {
    rawJSON(text: string): object // not yet in TypeScript's library
  }
}

/**
 * The value of a JSON text, with every number that is an integer (`7`, `7.0`, `7e0`) as `bigint`.
 * One that is none but would round to one is NaN, which no schema takes for an integer.
 * Throws PARSE_ERROR for a text that is not JSON, or is nested too deep to be read.
 */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text, (_key, value, context?: { source?: string }) => {
      if (typeof value !== 'number' || !context?.source) return value
      return integer(context.source) ?? (Number.isInteger(value) ? Number.NaN : value)
    })
  } catch (cause) {
    throw malformed(cause)
  }
}

/** The most digits before which an exponent still makes sense: int64 has 19. */
const MAX_EXPONENT = 400

function integer(source: string): bigint | undefined {
  const [mantissa = '', exponentText = '0'] = source.toLowerCase().split('e')
  const [whole = '', fraction = ''] = mantissa.split('.')
  const digits = whole + fraction
  if (!/[1-9]/.test(digits)) return 0n
  const exponent = Number(exponentText)
  if (Math.abs(exponent) > MAX_EXPONENT) return undefined
  const zeros = exponent - fraction.length
  if (zeros >= 0) return BigInt(digits + '0'.repeat(zeros))
  // What an exponent below zero, or a fraction, cuts off must be zeros.
  if (/[^0]/.test(digits.slice(zeros))) return undefined
  return BigInt(digits.slice(0, zeros))
}

/**
 * The same value, fit for JSON.stringify: a bigint becomes a number, or, where a number would
 * round, raw JSON. Plain numbers are the faster ones by far, so they are kept where they are safe.
 */
export function toJson(value: unknown): unknown {
  if (typeof value === 'bigint') {
    const number = Number(value)
    return Number.isSafeInteger(number) ? number : JSON.rawJSON(String(value))
  }
  if (Array.isArray(value)) return value.map(toJson)
  if (value === null || typeof value !== 'object') return value
  const copy: Record<string, unknown> = {}
  for (const key in value) copy[key] = toJson(value[key as keyof typeof value])
  return copy
}
