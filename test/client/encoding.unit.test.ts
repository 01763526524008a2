/** The encoding that the client and the service share. */
import { expect, test } from 'vitest'
import { transformer } from '../../src/wire/encoding.ts'

test('the transformer throws SyntaxError for a text that is not in its encoding', () => {
  for (const text of ['', '{', '{}', '[1', '[["BigInt",7]]', '[["BigInt","0x7"]]']) {
    expect(() => transformer.deserialize(text), text).toThrow(
      new SyntaxError('The input is not in the encoding of devalue'),
    )
  }
})
