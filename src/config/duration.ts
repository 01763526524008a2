/** Durations with a unit. */
const milliseconds = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** A century: the longest life of an API key. */
const MAX = 36_525 * milliseconds.d

/** Returns the milliseconds of a text such as `24h`; undefined for other text, and above a century. */
export function parseDuration(text: string): number | undefined {
  const [, number, unit] = text.match(/^(\d{1,9})(ms|[smhd])$/) ?? []
  if (number === undefined) return undefined
  const duration = Number(number) * milliseconds[unit as keyof typeof milliseconds]
  return duration <= MAX ? duration : undefined
}
