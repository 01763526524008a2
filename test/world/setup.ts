/** Collects the rows of the trials, and prints their table at the end. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
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
  const table = path.join(folder, 'table')
  writeFileSync(table, '| What | Version | Result | Script |\n|---|---|---|---|\n')
  project.provide('table', table)
  return () => {
    console.log(`${new Date().toISOString().slice(0, 10)}\n${readFileSync(table, 'utf8')}`)
    rmSync(folder, { recursive: true, force: true })
  }
}
