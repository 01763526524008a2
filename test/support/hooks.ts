/** Hooks on what a process loads. */

/**
 * The variable that makes a process resolve what it imports by this code, the body of a function of
 * `specifier`, `context` and `next`: https://nodejs.org/api/module.html#customization-hooks
 */
export const withHooks = (resolve: string): { NODE_OPTIONS: string } => {
  const code = `
    import { registerHooks } from 'node:module'
    import { writeSync } from 'node:fs'
    registerHooks({ resolve(specifier, context, next) { ${resolve} } })`
  return { NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(code)}` }
}

/** The variable that makes a process tell on stderr each package that it loads, and SQLite. */
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
