/** JSON with exact numbers. kinds.once.test.ts has the numbers. */
import { expect, test } from 'vitest'
import { z } from 'zod'
import * as readers from '../../../src/surface/rest/readers.ts'

test('each process marks numbers in its own way, so that no client can send a text that is read as one', async () => {
  const again = '../../../src/surface/rest/readers.ts?again' // another instance of the module
  const other: typeof readers = await import(again)
  const [marked, foreign] = [readers, other].map(({ parseJson }) => parseJson('7.0'))
  const { read } = readers.readerOf(z.string(), 'It')
  expect(read(marked)).toBe(7)
  expect([read(foreign), typeof foreign]).toEqual([foreign, 'string'])
})
