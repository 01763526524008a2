/** Values at the edges: text over all planes of Unicode, integers around every power of two, odd JSON. */
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

/** Those of 64 bits. */
export const int64 = integer.filter((value) => BigInt.asIntN(64, value) === value)

/** Characters that differ in how many bytes, units and escapes they take. */
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

// Not fast-check's own unit `binary`: for that it makes a table of the million of them, for a second.
const codePoint = fc.nat(0x10ffff - 0x800).map(
  (number) => String.fromCodePoint(number < 0xd800 ? number : number + 0x800),
  // By which fast-check knows that its dangerous texts, such as `__proto__`, are made of these.
  (text) => {
    if (typeof text !== 'string' || !/^\P{Cs}$/u.test(text)) throw new Error('No code point')
    const point = text.codePointAt(0) ?? 0
    return point < 0xd800 ? point : point - 0x800
  },
)

/** Text of any code points, halves of surrogate pairs excepted. */
export const wellFormed = fc.oneof(
  fc.string({ unit: codePoint }),
  fc.string({ unit: 'grapheme' }),
  fc.string({ unit: blank }),
  fc.string({ unit: fc.oneof(blank, fc.constantFrom('a', '\0')), maxLength: 5 }),
  fc.constantFrom('Rex', 'constructor', 'toString', 'null', '</script>', `' or 1=1 --`),
)

/** Texts that may be the name of a pet, or nearly. */
export const name = fc.oneof(
  { arbitrary: wellFormed, weight: 4 },
  // As long as a name may be, and one character more.
  fc.tuple(character, fc.constantFrom(1, 254, 255, 256)).map(([text, count]) => text.repeat(count)),
  fc.string({ unit: fc.nat(0xffff).map((unit) => String.fromCharCode(unit)) }),
  fc.constantFrom('R\ud83d', '\udc36x', '\udc36\ud83d'),
)

/** A number that is an integer, but no longer an exact one, as the integer that it is. */
const exact = (value: unknown): unknown => {
  if (typeof value === 'number')
    return Number.isInteger(value) && !Number.isSafeInteger(value) ? BigInt(value) : value
  if (Array.isArray(value)) return value.map(exact)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, exact(item)]))
}

/** Anything that JSON can say, but for the name `__proto__`: see the differences. */
export const oddJson = fc.oneof(
  fc
    .jsonValue({ maxDepth: 3 })
    .filter((value) => !JSON.stringify(value).includes('__proto__'))
    .map(exact),
  fc.constantFrom<unknown>(null, true, '', '7', 7.5, -0.5, 1e-7, [], {}, [7], { id: 7 }),
  integer,
  fc.double({ noNaN: true, noDefaultInfinity: true }).map(exact),
)

/** Texts that stand where an integer is asked for, and are none as an address writes them. */
export const noInteger = fc
  .oneof(
    wellFormed,
    fc.constantFrom('', ' 7', '7 ', '+7', '7.0', '1e1', '0x7', '１', '٧', '-', '--7', '1_0', 'NaN'),
  )
  .filter((text) => !/^-?\d+$/.test(text))
