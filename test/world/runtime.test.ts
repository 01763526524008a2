/** The service on the Node version of the image, which is newer than the one that npm brings. */
import path from 'node:path'
import { expect, onTestFinished } from 'vitest'
import { emptyProject, run } from '../support/client-package.ts'
import { imageNode } from '../support/image.ts'
import { trial } from './trial.ts'

const root = path.resolve(import.meta.dirname, '../..')

trial(`Node ${imageNode}, as in the image`, async () => {
  const project = emptyProject()
  onTestFinished(project.remove)
  project.write('package.json', '{ "allowScripts": { "node": true } }')
  await project.install([`node@${imageNode}`])
  const node = path.join(project.folder, 'node_modules/node/bin/node')
  const version = await run(node, ['--version'], root)
  expect(version.code, version.output).toBe(0)
  // The service and Vitest run on the Node that runs this command.
  const files = ['test/surface', 'test/process', 'test/properties', 'test/repository/documents']
  const args = ['run', '--project', 'sqlite', '--reporter', 'dot', ...files]
  const { code, output } = await run(node, ['node_modules/vitest/vitest.mjs', ...args], root)
  expect(code, output).toBe(0)
  return {
    version: version.output.trim().slice(1),
    result: 'starts, stops, and keeps the contract of both surfaces (SQLite)',
  }
})
