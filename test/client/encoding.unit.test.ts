/** The encoding that the client and the service share. */
import { expect, test } from 'vitest'
import { transformer, writePosition } from '../../client/src/encoding.ts'

test.each([
  ['~~~???~~~', 7],
  ['ÿþ😀?>~', -(2n ** 63n)],
  ['ÿÿÿÿ', 1n],
  ['a', new Date('2026-01-02T03:04:05.678Z')],
])('a cursor after %j and %s is base64url of JSON', (text, value) => {
  const last = value instanceof Date ? '1767323045678' : String(value)
  const expected = Buffer.from(JSON.stringify([text, last])).toString('base64url')
  expect(writePosition([text, value])).toBe(expected)
})

test('the transformer throws SyntaxError for a text that is not in its encoding', () => {
  for (const text of ['', '{', '{}', '[1', '[["BigInt",7]]', '[["BigInt","0x7"]]']) {
    expect(() => transformer.deserialize(text), text).toThrow(
      new SyntaxError('The input is not in the encoding of devalue'),
    )
  }
})
