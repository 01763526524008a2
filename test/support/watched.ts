/** Variables that let a process tell what it does inside, where that is a promise. */
import path from 'node:path'
import { pathToFileURL } from 'node:url'

const preload = (file: string) => {
  const { href } = pathToFileURL(path.join(import.meta.dirname, file))
  return { NODE_OPTIONS: `--import=${href}` }
}

/** Each statement is told on stderr: `sqlite [journal_mode,synchronous,busy_timeout] STATEMENT`. */
export const watchedSqlite = (pragma = ''): Record<string, string> => ({
  ...preload('watch-sqlite.ts'),
  WATCHED_PRAGMA: pragma,
})

/** The folder of the migrations cannot be read the first time that it is. */
export const failingFolder = (): Record<string, string> => preload('fail-folder.ts')
