/** What takes long to install, and is installed while other tests run, once for all who need it. */
import { mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { vi } from 'vitest'

/** Milliseconds that an installation may take, from a slow registry too. */
export const INSTALLATION = 300_000

/** An installation that has begun. */
export interface Installation {
  /** A file that is there when the installation has ended; what went wrong is in it, if anything. */
  file: string
  /** Waits for its end, which comes soon where no test was left that waits for it. */
  remove(): Promise<void>
}

/** Begins to install; `install` throws what went wrong, and ends early when it is told to abort. */
export function beginInstallation(install: (abort: AbortSignal) => Promise<void>): Installation {
  const folder = mkdtempSync(path.join(tmpdir(), 'petstore-installation-'))
  const file = path.join(folder, 'ended')
  const ended = (problem: string) => {
    writeFileSync(`${file}.begun`, problem)
    renameSync(`${file}.begun`, file) // read whole, or not at all
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

/** Waits until an installation has ended, known by its file. Throws what went wrong. */
export async function installed(file: string): Promise<void> {
  const problem = await vi.waitFor(() => readFileSync(file, 'utf8'), {
    timeout: INSTALLATION,
    interval: 100,
  })
  if (problem) throw new Error(problem)
}
