/** What a process loads, and when: no HTTP client, no database for --help, no generator of the document. */
import { expect, onTestFinished, test } from 'vitest'
import { startInstance } from '../support/instance.ts'
import { programs, runToEnd } from '../support/process.ts'
import { packagesIn, tellPackages, withHooks } from '../support/watched.ts'

/**
 * Logs when the generator of the document is loaded, and whether Node's own HTTP client was loaded before the
 * end, and is after a call of fetch.
 */
const hooks = withHooks(
  `
    if (specifier === 'trpc-to-openapi') tell('loaded')
    return next(specifier, context)`,
  `const tell = (msg) => {
     const hasClient = process.moduleLoadList.some((name) => name.includes('undici'))
     writeSync(2, JSON.stringify({ msg, hasClient }) + '\\n')
   }
   process.once('exit', () => {
     tell('ended')
     void fetch('data:,')
     tell('fetched')
   })`,
)

test('a service loads neither the generator of its document nor an HTTP client', async () => {
  const { program, fetch, stop } = await startInstance(hooks)
  onTestFinished(async () => void (await stop()))
  const paths = ['/v1/pets', '/trpc/listPets', '/readyz', '/docs', '/docs/', '/v1/openapi.json']
  const statuses = await Promise.all(paths.map(async (path) => (await fetch(path)).status))
  expect(statuses).toEqual([200, 200, 200, 302, 200, 200])
  expect(await program.end('SIGTERM')).toBe(0)
  const told = program.entries().filter(({ msg }) => /^(loaded|ended|fetched)$/.test(`${msg}`))
  expect(told).toEqual([
    { msg: 'ended', hasClient: false },
    { msg: 'fetched', hasClient: true },
  ])
})

test('a mistyped program loads neither a database driver nor a server', async () => {
  const loadedBy = async (program: keyof typeof programs, words: string[], variables = {}) => {
    const { stderr } = await runToEnd(programs[program], { ...tellPackages, ...variables }, words)
    return packagesIn(stderr).filter((name) => /^(mysql2|express|node:sqlite|zod)$/.test(name))
  }
  expect(new Set(await loadedBy('keys', ['--help']))).toEqual(new Set(['zod']))
  expect(new Set(await loadedBy('keys', ['rotate', 'shop']))).toEqual(new Set(['zod']))
  expect(new Set(await loadedBy('migrate', ['--dry-run']))).toEqual(new Set(['zod']))
  expect(new Set(await loadedBy('server', [], { PORT: 'abc' }))).toEqual(new Set(['zod']))
  // … so that this test would notice.
  expect(await loadedBy('keys', ['list'])).toContain('node:sqlite')
})

test('a warning of Node is an entry of the log; that node:sqlite is experimental, as in Node 24.4 to 24.11, is none', async () => {
  const warnings = withHooks(`
    if (specifier === 'node:sqlite') {
      process.emitWarning('SQLite is an experimental feature', 'ExperimentalWarning')
      process.emitWarning('Something is deprecated', 'DeprecationWarning')
    }
    return next(specifier, context)`)
  const { code, stderr } = await runToEnd(programs.migrate, warnings)
  expect({ code, stderr }).toEqual({
    code: 0,
    stderr: 'DeprecationWarning: Something is deprecated\n',
  })
  const { program, stop } = await startInstance(warnings)
  onTestFinished(async () => void (await stop()))
  expect(await program.end('SIGTERM')).toBe(0)
  const warned = program.entries().filter(({ level }) => level === 'warn')
  expect(warned).toMatchObject([
    { err: { name: 'DeprecationWarning', message: 'Something is deprecated' } },
  ])
})
