/**
 * Installs what the third party uses, once. It is kept apart, and installed while other tests run, so
 * that nobody else has to wait for it.
 */
import { execFile } from 'node:child_process'
import { mkdtempSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import type { TestProject } from 'vitest/node'

declare module 'vitest' {
  export interface ProvidedContext {
    /** A file that is there when the installation has ended; what went wrong is in it, if anything. */
    thirdPartyInstalled: string
  }
}

export default function setup(project: TestProject): () => Promise<void> {
  const cwd = import.meta.dirname
  const folder = mkdtempSync(path.join(tmpdir(), 'petstore-third-party-'))
  const file = path.join(folder, 'installed')
  project.provide('thirdPartyInstalled', file)
  const ended = (problem: string) => {
    writeFileSync(`${file}.begun`, problem)
    renameSync(`${file}.begun`, file) // read whole, or not at all
  }
  const abort = new AbortController()
  const time = (file: string) => statSync(`${cwd}/${file}`, { throwIfNoEntry: false })?.mtimeMs ?? 0
  const { promise: done, resolve } = Promise.withResolvers<void>()
  if (time('node_modules/.package-lock.json') >= time('package-lock.json')) {
    ended('')
    resolve()
  } else {
    const args = ['ci', '--no-audit', '--no-fund', '--prefer-offline', '--ignore-scripts']
    execFile('npm', args, { cwd, signal: abort.signal }, (error, _, stderr) => {
      ended(error ? stderr || error.message : '')
      resolve()
    })
  }
  return async () => {
    abort.abort() // where no test was left that waits for it
    await done
    rmSync(folder, { recursive: true, force: true })
  }
}
