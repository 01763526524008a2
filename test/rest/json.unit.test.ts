/** JSON without rounding. */
import { TRPCError } from '@trpc/server'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { parseJson, toJson } from '../../src/rest/json.ts'

test.each([
  ['7', 7n],
  ['-7', -7n],
  ['7.0', 7n],
  ['7e0', 7n],
  ['7E+2', 700n],
  ['700e-2', 7n],
  ['0.07e2', 7n],
  ['-0', 0n],
  ['-0.0e-5', 0n],
  ['0e999999999', 0n],
  ['9007199254740993', 9007199254740993n],
  ['-9223372036854775808.000', -(2n ** 63n)],
  ['92233720368547758.07e2', 2n ** 63n - 1n],
  ['1e400', 10n ** 400n],
  ['7.5', 7.5],
  ['-5e-3', -0.005],
  ['7.0000000000000000000000001', Number.NaN],
  ['9007199254740993.5', Number.NaN],
  ['1e-999', Number.NaN],
  ['1e999999999', Number.POSITIVE_INFINITY],
])('%s', (text, value) => {
  expect(parseJson(text)).toBe(value)
  expect(parseJson(`{"a":[${text}]}`)).toEqual({ a: [value] })
})

test('an integer is the same with any point and exponent', () => {
  const nonzero = fc.bigInt().filter((integer) => integer !== 0n) // for 000 is not JSON
  const shift = fc.integer({ min: -20, max: 20 })
  fc.assert(
    fc.property(nonzero, shift, (integer, exponent) => {
      const zeros = '0'.repeat(Math.abs(exponent))
      const text = exponent > 0 ? `${integer}${zeros}e-${exponent}` : `${integer}.${zeros}0e0`
      expect(parseJson(text)).toBe(integer)
    }),
  )
})

test.each(['', '{', '{"a":1,}', '01', '+1', '.5', 'NaN', '[1', '"\n"', '['.repeat(100_000)])(
  '%.20s cannot be read',
  (text) => {
    expect(() => parseJson(text)).toThrow(TRPCError)
    expect(() => parseJson(text)).toThrow(expect.objectContaining({ code: 'PARSE_ERROR' }))
  },
)

test('what is written is read as the same', () => {
  const value = fc.letrec((tie) => ({
    any: fc.oneof(
      { maxDepth: 3 },
      fc.bigInt(),
      fc.string({ unit: 'binary' }),
      fc.boolean(),
      fc.constant(null),
      fc.array(tie('any')),
      fc.dictionary(
        fc.string().filter((key) => key !== '__proto__'),
        tie('any'),
        { noNullPrototype: true },
      ),
    ),
  })).any
  fc.assert(
    fc.property(value, (written) => {
      expect(parseJson(JSON.stringify(toJson(written)))).toEqual(written)
    }),
  )
})

test('an integer goes out as its digits alone', () => {
  fc.assert(
    fc.property(fc.bigInt({ min: -(2n ** 64n), max: 2n ** 64n }), (integer) => {
      expect(JSON.stringify(toJson({ integer }))).toBe(`{"integer":${integer}}`)
    }),
  )
})
