/** openapi.json, the document as it is published; test/journeys/third-party has linters look at it. */
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { newFolder, runToEnd } from '../support/process.ts'

test('is up to date: npm run openapi would not change it', async () => {
  const { folder, remove } = newFolder()
  const { code } = await runToEnd('src/cli/openapi.ts', {}, [], folder)
  expect(code).toBe(0)
  const written = readFileSync(`${folder}/openapi.json`, 'utf8')
  remove()
  expect(readFileSync('openapi.json', 'utf8')).toBe(written)
})
