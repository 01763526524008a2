/** The patch of tRPC: taken, still needed, and the same as what it replaces. */
import { globSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
// @ts-expect-error It is JavaScript, which the Node of `npm ci` can run.
import * as patch from '../patches/trpc.mjs'

const { folder, published, replacement } = patch as {
  folder: string
  published: RegExp
  replacement: string
}
const texts = globSync('*.mjs', { cwd: folder }).map((name) =>
  readFileSync(`${folder}/${name}`, 'utf8'),
)

test('tRPC still has the helper, and it is replaced: if not, patches/trpc.mjs is to be mended or removed', () => {
  expect(texts.filter((text) => text.includes(replacement))).toHaveLength(1)
  expect(texts.filter((text) => published.test(text))).toEqual([])
})

test('what replaces it spreads as `...` does', () => {
  const spread = new Function(`${replacement}; return _objectSpread2`)() as typeof Object.assign
  const symbol = Symbol('symbol')
  const parts = [{}, { a: 1, b: 2 }, undefined, null, { b: undefined, [symbol]: 3 }] as const
  expect(spread(...parts)).toEqual({ ...parts[1], ...parts[4] })
  expect(Object.hasOwn(spread({}, { b: undefined }), 'b')).toBe(true)
})
