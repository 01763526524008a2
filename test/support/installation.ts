/** A slow installation that runs during other tests, once for all test files that need it. */
import { mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { vi } from 'vitest'

/** The timeout of an installation in milliseconds, for a slow registry. */
export const INSTALLATION = 300_000

/** An installation that has begun. */
export interface Installation {
  /** The path of a file that exists after the installation; it has the error message, or is empty. */
  file: string
  /** Aborts the installation if it still runs, and removes the file. */
  remove(): Promise<void>
}

/** Begins an installation. `install` throws its error, and stops at the abort signal. */
export function beginInstallation(install: (abort: AbortSignal) => Promise<void>): Installation {
  const folder = mkdtempSync(path.join(tmpdir(), 'petstore-installation-'))
  const file = path.join(folder, 'ended')
  const ended = (problem: string) => {
    writeFileSync(`${file}.begun`, problem)
    renameSync(`${file}.begun`, file) // atomic
  }
  const abort = new AbortController()
  const done = install(abort.signal).then(
    () => ended(''),
    ({ message }) => ended(message || 'The installation failed'),
  )
  return {
    file,
    async remove() {
      abort.abort()
      await done
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** Waits for the file of an installation. Throws its error. */
export async function installed(file: string): Promise<void> {
  const problem = await vi.waitFor(() => readFileSync(file, 'utf8'), {
    timeout: INSTALLATION,
    interval: 100,
  })
  if (problem) throw new Error(problem)
}
