/** JSON with exact numbers. kinds.once.test.ts has the numbers. */
import { expect, test } from 'vitest'
import { z } from 'zod'
import * as json from '../../../src/surface/rest/exact-json.ts'
import { readerOf } from '../../../src/surface/rest/readers.ts'

test('each process marks numbers in its own way, so that no client can send a text that is read as one', async () => {
  const again = '../../../src/surface/rest/exact-json.ts?again' // another instance of the module
  const other: typeof json = await import(again)
  const [marked, foreign] = [json, other].map(({ parseJson }) => parseJson('7.0'))
  const { read } = readerOf(z.string(), 'It')
  expect(read(marked)).toBe(7)
  expect([read(foreign), typeof foreign]).toEqual([foreign, 'string'])
})
