/** What a process loads, and when: no HTTP client, no database for --help, the document on request. */
import { expect, onTestFinished, test } from 'vitest'
import { startInstance } from '../support/instance.ts'
import { programs, runToEnd } from '../support/process.ts'
import { packagesIn, tellPackages, withHooks } from '../support/watched.ts'

/**
 * Makes the first build of document and page fail, and logs when trpc-to-openapi is loaded, and whether
 * Node's own HTTP client was loaded before, and is after a call of fetch.
 */
const hooks = withHooks(
  `
    if (specifier === 'trpc-to-openapi') tell('loaded')
    const isMaker = /(openapi\\/document|surface\\/docs)\\.ts$/.test(specifier)
    if (isMaker && !failed.has(specifier)) {
      failed.add(specifier)
      throw new Error('No file can be opened')
    }
    return next(specifier, context)`,
  `const failed = new Set()
   const tell = (msg) => {
     const hasClient = process.moduleLoadList.some((name) => name.includes('undici'))
     writeSync(2, JSON.stringify({ msg, hasClient }) + '\\n')
   }
   process.once('exit', () => {
     void fetch('data:,')
     tell('fetched')
   })`,
)

test('document and page are built on request, again after a failure, and once for concurrent requests', async () => {
  const { program, fetch, stop } = await startInstance(hooks)
  onTestFinished(async () => void (await stop()))
  const ask = async (path: string) => (await fetch(path)).status
  const entries = (text: string) => program.entries().filter(({ msg }) => msg === text)
  const paths = ['/v1/pets', '/trpc/listPets', '/readyz', '/docs']
  expect(await Promise.all(paths.map(ask))).toEqual([200, 200, 200, 302])
  expect(entries('loaded')).toEqual([])
  expect(await ask('/docs/')).toBe(500)
  const many = Array(5).fill(['/v1/openapi.json', '/docs/']).flat().map(ask)
  expect(new Set(await Promise.all(many))).toEqual(new Set([200]))
  expect(await program.end('SIGTERM')).toBe(0)
  expect(entries('loaded')).toEqual([{ msg: 'loaded', hasClient: false }])
  expect(entries('fetched')).toEqual([{ msg: 'fetched', hasClient: true }])
  const causes = entries('Internal server error').map(({ err }) => err)
  expect(causes).toMatchObject([{ message: 'No file can be opened' }])
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
