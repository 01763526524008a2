/** Packs the client for the trials, and prints their table at the end. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import type { TestProject } from 'vitest/node'

declare module 'vitest' {
  export interface ProvidedContext {
    /** The file that gets a row of the table from each trial. */
    table: string
  }
}

export default function setup(project: TestProject): () => void {
  const folder = mkdtempSync(path.join(tmpdir(), 'petstore-world-'))
  const args = ['pack', '--workspace', 'client', '--pack-destination', folder]
  execFileSync('npm', args, { cwd: path.resolve(import.meta.dirname, '../..'), stdio: 'pipe' })
  const [name = ''] = readdirSync(folder)
  project.provide('clientPackage', path.join(folder, name))
  const table = path.join(folder, 'table')
  writeFileSync(table, '| What | Version | Result | Script |\n|---|---|---|---|\n')
  project.provide('table', table)
  return () => {
    console.log(readFileSync(table, 'utf8'))
    rmSync(folder, { recursive: true, force: true })
  }
}
