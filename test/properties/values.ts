/** Edge cases: strings from all planes of Unicode, integers around powers of two, unusual JSON. */
import fc from 'fast-check'

/** Integers around the powers of two and of ten, within 64 bits and beyond. */
export const integer = fc
  .tuple(
    fc.oneof(
      fc.nat(66).map((exponent) => 2n ** BigInt(exponent)),
      fc.nat(21).map((exponent) => 10n ** BigInt(exponent)),
      fc.constantFrom(0n, 10n ** 400n),
    ),
    fc.bigInt({ min: -2n, max: 2n }),
    fc.constantFrom(1n, -1n),
  )
  .map(([edge, step, sign]) => sign * edge + step)

/** The integers within 64 bits. */
export const int64 = integer.filter((value) => BigInt.asIntN(64, value) === value)

/** Characters with different numbers of bytes, UTF-16 units and escapes. */
export const character = fc.constantFrom(
  'x',
  'é',
  '猫',
  '\u{1f436}',
  '\u{10ffff}',
  '\u0001',
  '\\',
  '"',
)
const blank = fc.constantFrom(' ', '\t', '\n', '\u00a0', '\u2028', '\u3000', '\ufeff', '\u180e')

// The unit `binary` of fast-check builds a table of a million characters, which takes a second.
const codePoint = fc.nat(0x10ffff - 0x800).map(
  (number) => String.fromCodePoint(number < 0xd800 ? number : number + 0x800),
  // fast-check uses it to include dangerous strings, such as `__proto__`.
  (text) => {
    if (typeof text !== 'string' || !/^\P{Cs}$/u.test(text)) throw new Error('No code point')
    const point = text.codePointAt(0) ?? 0
    return point < 0xd800 ? point : point - 0x800
  },
)

/** Strings of any code points except surrogates. */
export const wellFormed = fc.oneof(
  fc.string({ unit: codePoint }),
  fc.string({ unit: 'grapheme' }),
  fc.string({ unit: blank }),
  fc.string({ unit: fc.oneof(blank, fc.constantFrom('a', '\0')), maxLength: 5 }),
  fc.constantFrom('Rex', 'constructor', 'toString', 'null', '</script>', `' or 1=1 --`),
)

/** Strings at the limits of a valid name. */
export const name = fc.oneof(
  { arbitrary: wellFormed, weight: 4 },
  // The maximum length of a name, and one character more.
  fc.tuple(character, fc.constantFrom(1, 254, 255, 256)).map(([text, count]) => text.repeat(count)),
  fc.string({ unit: fc.nat(0xffff).map((unit) => String.fromCharCode(unit)) }),
  fc.constantFrom('R\ud83d', '\udc36x', '\udc36\ud83d'),
)

/** An integer beyond the safe ones, as a bigint of the value that the number has. */
const exact = (value: unknown): unknown => {
  if (typeof value === 'number')
    return Number.isInteger(value) && !Number.isSafeInteger(value) ? BigInt(value) : value
  if (Array.isArray(value)) return value.map(exact)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, exact(item)]))
}

/** Any JSON without the name `__proto__`, which whole-answers.once.test.ts covers. */
export const oddJson = fc.oneof(
  fc
    .jsonValue({ maxDepth: 3 })
    .filter((value) => !JSON.stringify(value).includes('__proto__'))
    .map(exact),
  fc.constantFrom<unknown>(null, true, '', '7', 7.5, -0.5, 1e-7, [], {}, [7], { id: 7 }),
  integer,
  fc.double({ noNaN: true, noDefaultInfinity: true }).map(exact),
)

/** Strings that are not integers in a URL. */
export const noInteger = fc
  .oneof(
    wellFormed,
    fc.constantFrom('', ' 7', '7 ', '+7', '7.0', '1e1', '0x7', '１', '٧', '-', '--7', '1_0', 'NaN'),
  )
  .filter((text) => !/^-?\d+$/.test(text))

/** Date-times of RFC 3339 in the years 0000 to 9999 (UTC), of at most 35 characters, without leap seconds. */
export const dateTime = fc
  .record({
    date: fc.date({
      min: new Date('0000-01-02T00:00:00.000Z'),
      max: new Date('9999-12-30T00:00:00.000Z'),
      noInvalidDate: true,
    }),
    fraction: fc.constantFrom('', '.5', '.678', '.123456789'),
    offset: fc.constantFrom('Z', 'z', '+00:00', '-23:59', '+05:30'),
    separator: fc.constantFrom('T', 't'),
  })
  .map(({ date, fraction, offset, separator }) => {
    const [day, time = ''] = date.toISOString().split('T')
    return `${day}${separator}${time.slice(0, 8)}${fraction}${offset}`
  })

/** Strings that are no date-times. */
export const noDateTime = fc.oneof(
  wellFormed.filter((text) => !/^\d{4}-/.test(text)),
  fc.constantFrom(
    ...['2026-02-30T00:00:00Z', '2026-01-02', '2026-01-02T03:04:05', '2026-1-2T3:4:5Z'],
    ...['2026-01-02 03:04:05Z', '2026-01-02T24:00:00Z', '2026-01-02T03:04:05+24:00', 'now', ''],
    ...['20260102T030405Z', '12026-01-02T03:04:05Z', '2026-01-02T03:04:05Z\n', '1767323045'],
  ),
)
