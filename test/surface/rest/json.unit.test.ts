/** JSON with exact numbers. kinds.once.test.ts has the numbers. */
import { expect, test } from 'vitest'
import * as json from '../../../src/surface/rest/json.ts'

test('each process marks numbers in its own way, so that no client can send a text that is read as one', async () => {
  const again = '../../../src/surface/rest/json.ts?again' // another instance of the module
  const other: typeof json = await import(again)
  const [marked, foreign] = [json, other].map(({ parseJson }) => parseJson('7.0'))
  expect([json.isMarked(marked), json.unmarked(marked)]).toEqual([true, 7])
  expect([json.isMarked(foreign), json.unmarked(foreign)]).toEqual([false, foreign])
})
