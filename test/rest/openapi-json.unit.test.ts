/** openapi.json, the document as it is published. */
import { execFileSync } from 'node:child_process'
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

test('passes the recommended rules of redocly without a warning', () => {
  const redocly = ['node_modules/@redocly/cli/bin/cli.js', 'lint', 'openapi.json']
  const flags = ['--extends=recommended', '--max-problems=0', '--format=json']
  const output = execFileSync(process.execPath, [...redocly, ...flags], {
    encoding: 'utf8',
    env: { ...process.env, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' },
    stdio: 'pipe',
  })
  expect(JSON.parse(output).totals).toMatchObject({ errors: 0, warnings: 0 })
})
