/** Packs the client once for all its consumers, who run at the same time: packing builds it anew. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import type { TestProject } from 'vitest/node'
import { packClient } from '../support/client-package.ts'

declare module 'vitest' {
  export interface ProvidedContext {
    /** The file of the packed client. */
    clientPackage: string
  }
}

export default async function setup(project: TestProject): Promise<() => void> {
  const folder = mkdtempSync(path.join(tmpdir(), 'petstore-packed-'))
  project.provide('clientPackage', await packClient(folder))
  return () => rmSync(folder, { recursive: true, force: true })
}
