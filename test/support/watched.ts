/** Variables that let a process tell what it does inside, where that is a promise, or make it fail there. */
import path from 'node:path'
import { pathToFileURL } from 'node:url'

const preload = (href: string) => ({ NODE_OPTIONS: `--import=${href}` })

const preloadFile = (file: string) =>
  preload(pathToFileURL(path.join(import.meta.dirname, file)).href)

/** A process runs this code, which may import and await, before its program. */
export const runFirst = (code: string) =>
  preload(`data:text/javascript,${encodeURIComponent(code)}`)

/**
 * A process resolves what it imports by `resolve`, the body of a function of `specifier`, `context`
 * and `next` that sees what `before` declares:
 * https://nodejs.org/api/module.html#customization-hooks
 */
export const withHooks = (resolve: string, before = '') =>
  runFirst(`
    import { registerHooks } from 'node:module'
    import { writeSync } from 'node:fs'
    ${before}
    registerHooks({ resolve(specifier, context, next) { ${resolve} } })`)

/** Each package that is loaded is told on stderr, and SQLite. */
export const tellPackages = withHooks(`
  const isPackage = /^(@|[a-z][^:]*$|node:sqlite)/.test(specifier)
  const entry = { msg: 'loaded', pid: process.pid, name: specifier }
  if (isPackage) writeSync(2, JSON.stringify(entry) + '\\n')
  return next(specifier, context)`)

/** The packages that were told of on stderr, by any process or by this one. */
export const packagesIn = (stderr: string, pid?: number): string[] =>
  stderr
    .split('\n')
    .filter((line) => line.startsWith('{"msg":"loaded"'))
    .map((line) => JSON.parse(line))
    .filter((entry) => pid === undefined || entry.pid === pid)
    .map(({ name }) => name)

/** Each statement is told on stderr: `sqlite [journal_mode,synchronous,busy_timeout] STATEMENT`. */
export const watchedSqlite = (pragma = ''): Record<string, string> => ({
  ...preloadFile('watch-sqlite.ts'),
  WATCHED_PRAGMA: pragma,
})

/** The folder of the migrations cannot be read the first time that it is. */
export const failingFolder = (): Record<string, string> => preloadFile('fail-folder.ts')
