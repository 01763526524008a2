/**
 * The client for concurrent tests of consumers, packed once, because packing builds it each time;
 * and a project in which the install commands of its README run in order.
 */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import type { TestProject } from 'vitest/node'
import { emptyProject } from '../support/client-package.ts'
import { beginInstallation } from '../support/installation.ts'
import { installs } from './frontend.ts'

declare module 'vitest' {
  export interface ProvidedContext {
    /** The file of the packed client. */
    clientPackage: string
    /** The folder of the project, and the file that exists after its installation. */
    frontend: { folder: string; file: string }
  }
}

export default function setup(project: TestProject): () => Promise<void> {
  const cwd = path.resolve(import.meta.dirname, '../..')
  const folder = mkdtempSync(path.join(tmpdir(), 'petstore-packed-'))
  const args = ['pack', '--workspace', 'client', '--pack-destination', folder]
  execFileSync('npm', args, { cwd, stdio: 'pipe' })
  const [name = ''] = readdirSync(folder)
  const tarball = path.join(folder, name)
  project.provide('clientPackage', tarball)

  const frontend = emptyProject()
  const { file, remove } = beginInstallation(async (abort) => {
    for (const words of installs(tarball, 'client/README.md')) await frontend.install(words, abort)
  })
  project.provide('frontend', { folder: frontend.folder, file })
  return async () => {
    await remove()
    frontend.remove()
    rmSync(folder, { recursive: true, force: true })
  }
}
