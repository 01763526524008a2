/** Environment variables with which a process reports internal events or fails on purpose. */

/** The process runs this code before its program. The code may import and await. */
export const runFirst = (code: string) => ({
  NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(code)}`,
})

/**
 * The process resolves its imports by `resolve`, the body of a function of `specifier`, `context`
 * and `next`, in the scope of the code `before`:
 * https://nodejs.org/api/module.html#customization-hooks
 */
export const withHooks = (resolve: string, before = '') =>
  runFirst(`
    import { registerHooks } from 'node:module'
    import { writeSync } from 'node:fs'
    ${before}
    registerHooks({ resolve(specifier, context, next) { ${resolve} } })`)

/** The process writes the name of each package that it loads to stderr, including node:sqlite. */
export const tellPackages = withHooks(`
  const isPackage = /^(@|[a-z][^:]*$|node:sqlite)/.test(specifier)
  const entry = { msg: 'loaded', name: specifier }
  if (isPackage) writeSync(2, JSON.stringify(entry) + '\\n')
  return next(specifier, context)`)

/** The packages that stderr has. */
export const packagesIn = (stderr: string): string[] =>
  stderr
    .split('\n')
    .filter((line) => line.startsWith('{"msg":"loaded"'))
    .map((line) => JSON.parse(line).name)

/** The variables of a process whose clock is ahead by these milliseconds, or behind if they are negative. */
export const clockAhead = (milliseconds: number): Record<string, string> =>
  runFirst(`
    const { now } = Date
    globalThis.Date = class extends Date {
      static now() { return now() + ${milliseconds} }
      constructor(...given) { given.length > 0 ? super(...given) : super(now() + ${milliseconds}) }
    }`)
