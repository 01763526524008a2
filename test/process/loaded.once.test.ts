/** What a process does not load: an HTTP client where it serves, a database where it need not ask. */
import { expect, test } from 'vitest'
import { newDatabase } from '../support/database.ts'
import { programs, runServer, runToEnd } from '../support/process.ts'
import { createKey } from '../support/service.ts'
import { packagesIn, runFirst, tellPackages } from '../support/watched.ts'

/** Tells the log, when the process ends, whether Node's own client was loaded. */
const tellAtExit = `process.once('exit', () => {
  const isLoaded = process.moduleLoadList.some((name) => name.includes('undici'))
  console.error(JSON.stringify({ msg: 'loaded', isLoaded }))
})`

test.each([
  ['a service that answers', '', false],
  ['one that asks others, so that this test notices', 'await fetch("data:,"); ', true],
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
      const answer = await fetch(server.origin + path, {
        headers: { authorization: `Bearer ${key}` },
      })
      expect(answer.status).toBe(200)
    }
  } finally {
    server.child.kill('SIGTERM')
    await server.exited
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
  ['backup', 'backup', ['copy.db'], { DATABASE_URL: 'sqlite:missing.db' }],
  ['a wrong variable', 'server', [], { PORT: 'abc' }],
])(
  '%s is told without what speaks to databases or serves',
  async (_, program, words, variables) => {
    const { stderr } = await runToEnd(programs[program], { ...tellPackages, ...variables }, words)
    const names = packagesIn(stderr)
    expect(names).toContain('zod') // by which the configuration is read
    const others = names.filter((name) => /^(kysely|mysql2|express|node:sqlite)(\/|$)/.test(name))
    expect(others).toEqual([])
  },
)

test('what is done loads it, so that these tests notice', async () => {
  const { code, stderr } = await runToEnd(programs.keys, tellPackages, ['list'])
  expect(code).toBe(0)
  expect(packagesIn(stderr)).toEqual(expect.arrayContaining(['kysely', 'node:sqlite']))
})
