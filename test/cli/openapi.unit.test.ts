/** openapi.json, the published document; test/world checks it with linters. */
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { newFolder } from '../support/database.ts'
import { runToEnd } from '../support/process.ts'

test('openapi.json is up to date: npm run openapi would not change it', async () => {
  const folder = newFolder()
  const { code } = await runToEnd('src/cli/openapi.ts', {}, [], folder)
  expect(code).toBe(0)
  const written = readFileSync(`${folder}/openapi.json`, 'utf8')
  expect(readFileSync('openapi.json', 'utf8')).toBe(written)
})
