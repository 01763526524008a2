/** Packages that a process does not load: no HTTP client in the service, no database for --help. */
import { expect, test } from 'vitest'
import { newDatabase } from '../support/database.ts'
import { programs, runServer, runToEnd } from '../support/process.ts'
import { keyedFetch } from '../support/rest.ts'
import { createKey } from '../support/service.ts'
import { packagesIn, runFirst, tellPackages } from '../support/watched.ts'

/** Logs at the exit of the process whether Node's own HTTP client was loaded. */
const tellAtExit = `process.once('exit', () => {
  const isLoaded = process.moduleLoadList.some((name) => name.includes('undici'))
  console.error(JSON.stringify({ msg: 'loaded', isLoaded }))
})`

test.each([
  ['a service does not load undici', '', false],
  ['a call of fetch loads undici, so this test would notice', 'await fetch("data:,"); ', true],
])('%s', async (_, before, isLoaded) => {
  const database = await newDatabase()
  const key = await createKey(database.url)
  const server = await runServer({
    DATABASE_URL: database.url,
    METRICS_PORT: '0',
    ...runFirst(before + tellAtExit),
  })
  try {
    for (const path of ['/v1/pets', '/trpc/listPets', '/readyz']) {
      expect((await keyedFetch(server.origin, key)(path)).status).toBe(200)
    }
  } finally {
    await server.end('SIGTERM')
    await database.remove()
  }
  expect(server.entries()).toContainEqual({ msg: 'loaded', isLoaded })
})

test.each<[what: string, program: keyof typeof programs, words: string[], variables: object]>([
  ['keys --help', 'keys', ['--help'], {}],
  ['keys, mistyped', 'keys', ['rotate', 'shop'], {}],
  ['migrate, mistyped', 'migrate', ['--dry-run'], {}],
  ['seed, mistyped', 'seed', ['--dry-run'], {}],
  ['restore, mistyped', 'restore', [], {}],
  ['backup, mistyped', 'backup', [], {}],
  ['a wrong variable', 'server', [], { PORT: 'abc' }],
])('%s loads neither a database driver nor a server', async (_, program, words, variables) => {
  const { stderr } = await runToEnd(programs[program], { ...tellPackages, ...variables }, words)
  const names = packagesIn(stderr)
  expect(names).toContain('zod') // parses the configuration
  const others = names.filter((name) => /^(kysely|mysql2|express|node:sqlite)(\/|$)/.test(name))
  expect(others).toEqual([])
})

test('keys list loads a database driver, so these tests would notice', async () => {
  const { code, stderr } = await runToEnd(programs.keys, tellPackages, ['list'])
  expect(code).toBe(0)
  expect(packagesIn(stderr)).toEqual(expect.arrayContaining(['kysely', 'node:sqlite']))
})
