/**
 * Installs the third-party tools once, in a separate project and during other tests, so that these do
 * not wait for them.
 */
import { statSync } from 'node:fs'
import type { TestProject } from 'vitest/node'
import { run } from '../../support/client-package.ts'
import { beginInstallation } from '../../support/installation.ts'

declare module 'vitest' {
  export interface ProvidedContext {
    /** The file that exists after the installation. */
    thirdPartyInstalled: string
  }
}

export default function setup(project: TestProject): () => Promise<void> {
  const cwd = import.meta.dirname
  const time = (file: string) => statSync(`${cwd}/${file}`, { throwIfNoEntry: false })?.mtimeMs ?? 0
  const { file, remove } = beginInstallation(async (abort) => {
    if (time('node_modules/.package-lock.json') >= time('package-lock.json')) return
    const flags = ['--no-audit', '--no-fund', '--prefer-offline', '--ignore-scripts']
    const { code, output } = await run('npm', ['ci', ...flags], cwd, abort)
    if (code !== 0) throw new Error(output)
  })
  project.provide('thirdPartyInstalled', file)
  return remove
}
