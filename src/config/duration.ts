/** Lengths of time as people write them. */
const milliseconds = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** No key outlives a century. */
const MAX = 36_525 * milliseconds.d

/** The milliseconds of a text such as `500ms`, `30s`, `15m`, `24h` or `90d`; undefined for any other text. */
export function parseDuration(text: string): number | undefined {
  const [, number, unit] = text.match(/^(\d{1,9})(ms|[smhd])$/) ?? []
  if (number === undefined) return undefined
  const duration = Number(number) * milliseconds[unit as keyof typeof milliseconds]
  return duration <= MAX ? duration : undefined
}
