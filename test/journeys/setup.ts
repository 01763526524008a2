/** The client for tests of consumers, packed once. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import type { TestProject } from 'vitest/node'

declare module 'vitest' {
  export interface ProvidedContext {
    /** The file of the packed client. */
    clientPackage: string
  }
}

export default function setup(project: TestProject): () => void {
  const cwd = path.resolve(import.meta.dirname, '../..')
  const folder = mkdtempSync(path.join(tmpdir(), 'petstore-packed-'))
  const args = ['pack', '--workspace', 'client', '--pack-destination', folder]
  // Packing builds the client. `npm test` has built it a moment ago, in its check.
  if (process.env.npm_lifecycle_event === 'test') args.push('--ignore-scripts')
  execFileSync('npm', args, { cwd, stdio: 'pipe' })
  const [name = ''] = readdirSync(folder)
  project.provide('clientPackage', path.join(folder, name))
  return () => rmSync(folder, { recursive: true, force: true })
}
