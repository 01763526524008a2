/** An installation in a folder whose name has characters that are special in URLs. */
import { cpSync, symlinkSync } from 'node:fs'
import path from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { until } from '../support/instance.ts'
import { newFolder, programs, runProgram } from '../support/process.ts'

const root = path.join(import.meta.dirname, '../..')

test('in a folder named "c# 50%25 what?", the service starts on a new database, and serves all files', async () => {
  const { folder, remove } = newFolder()
  const installed = path.join(folder, 'c# 50%25 what?')
  for (const name of ['src', 'db', 'client', 'docs-page', 'package.json']) {
    cpSync(path.join(root, name), path.join(installed, name), { recursive: true })
  }
  symlinkSync(path.join(root, 'node_modules'), path.join(installed, 'node_modules'))
  const copied = path.relative(root, path.join(installed, programs.server))
  const program = runProgram(copied, { PORT: '0' }, [], installed)
  onTestFinished(async () => {
    await program.end()
    remove()
  })
  const origin = () => /http:\/\/localhost:\d+/.exec(program.stdout)?.[0]
  await until('it runs', () => origin() !== undefined || program.child.exitCode !== null)
  for (const file of ['/docs/', '/docs/docs.js', '/v1/openapi.json', '/readyz']) {
    expect([file, (await fetch(`${origin()}${file}`)).status]).toEqual([file, 200])
  }
  expect(await program.end('SIGTERM')).toBe(0)
})
