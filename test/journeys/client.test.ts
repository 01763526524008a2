/**
 * The packed client in another project, with the packages that its README names: compiled, run against
 * the service, and its stand-in compared with the service.
 */
import { once } from 'node:events'
import { cpSync, existsSync, readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import express from 'express'
import { build } from 'rolldown'
import { afterAll, expect, inject, test } from 'vitest'
import { startBrowser } from '../support/browser.ts'
import { bin, emptyProject, run } from '../support/client-package.ts'
import { blocksOf, packagesIn } from '../support/documents.ts'
import { storePets } from '../support/pets.ts'
import { keys, serviceForFile } from '../support/service.ts'

const README = blocksOf('client/README.md')
const TRPC = blocksOf('README.md', '## tRPC', '## Configuration')

const tarball = inject('clientPackage')
const project = emptyProject()
afterAll(project.remove)
/** Whether this repository has a package, in the version of its lock file. */
const isHere = (name: string) => existsSync(`node_modules/${name}`)
project.link(tarball, packagesIn(README).filter(isHere))
cpSync(path.join(import.meta.dirname, 'client'), project.folder, { recursive: true })
const load = (file: string) => import(pathToFileURL(path.join(project.folder, file)).href)
const BUILT = 'node_modules/@petstore-catalogue/petstore/dist/client/src'
const built = (file: string) => readFileSync(path.join(project.folder, BUILT, file), 'utf8')

const service = await serviceForFile()

test('the declarations have the texts of the OpenAPI document, which an editor shows', () => {
  const { paths, components } = JSON.parse(readFileSync('openapi.json', 'utf8'))
  const text = built('interface.d.ts').replaceAll(/\s+(\* )?/g, ' ')
  const [list, create, get] = [paths['/pets'].get, paths['/pets'].post, paths['/pets/{petId}'].get]
  const { Pet, NewPet } = components.schemas
  const described = [Pet, NewPet].flatMap(({ properties }) => Object.values<Described>(properties))
  const texts = [
    ...[list, create, get].map(({ summary }) => summary),
    ...[...list.parameters, ...get.parameters, ...described].map(({ description }) => description),
  ].filter((each) => each !== undefined) // the status of a pet refers to a schema
  expect(texts.length).toBeGreaterThan(10)
  // The document names the default of a body in its text, and an editor shows it apart.
  const shown = (each: string) => each.replace(/ Default: `.+`\.$/, '').replaceAll(/\s+/g, ' ')
  for (const each of texts) expect(text).toContain(shown(each))
  expect(text).toContain('From 1 to 100. @default 20')
  expect(text).toContain('Availability of the new animal. @default "available"')
  expect(text).toMatch(/@deprecated It ends on 5 December 2030: use `listPets`/)
  expect(text).not.toMatch(/Link header|`Idempotency-Key`|`GET /)
})

interface Described {
  description?: string
}

test('a strict project compiles with the package, including its declarations, and each wrong use is an error in its line', async () => {
  const lines = readFileSync(path.join(project.folder, 'mistakes.ts'), 'utf8').split('\n')
  const wrong = lines.flatMap((line, index) => (line.endsWith('// wrong') ? [index + 1] : []))
  expect(wrong.length).toBeGreaterThan(0)
  const errors = await project.compile(['consumer.ts', 'mistakes.ts'])
  expect(errors).toEqual(wrong.map((line) => expect.stringMatching(`^mistakes\\.ts\\(${line},`)))
})

test('the package works in Node against the service', async () => {
  const { visit } = await load('consumer.ts')
  expect(await visit(`${service.origin}/trpc`, service.key)).toEqual([
    'Rex 9007199254740993 pending',
    'true true 1 1',
    'BAD_REQUEST 400 must not be empty',
    '[{"petId":1}]',
  ])
})

test.each([
  ['publint', ['--strict']],
  ['attw', ['--profile', 'esm-only']],
])('%s finds no problems', async (tool, flags) => {
  const { code, output } = await run(bin(tool), [tarball, ...flags], project.folder)
  expect(code, output).toBe(0)
})

const snippetsOf = (blocks: typeof README) =>
  blocks.filter(({ language }) => language === 'ts').map(({ code }) => code)
const importsOf = (code: string) =>
  [...code.matchAll(/(?: from|^import) ['"]((?:@[^/'"]+\/)?[^./'"][^/'"]*)/gm)].map(
    ([, name]) => `${name}`,
  )

test('the snippets of both READMEs compile, with the packages that these install, and a project with the stand-in', async () => {
  for (const [name, blocks] of Object.entries({ README, TRPC })) {
    expect(blocks.map(({ code }) => code).join()).toMatch(/npm install \S+petstore-[\d.]+\.tgz/)
    const there = ['@petstore-catalogue/petstore', '@trpc/client', '@trpc/server']
    const frameworks = ['next'] // only its projects use its snippet
    const needed = snippetsOf(blocks).flatMap(importsOf)
    expect([...there, ...frameworks, ...packagesIn(blocks)], name).toEqual(
      expect.arrayContaining(needed),
    )
  }
  // test/world compiles those that need the persister, Next.js or SvelteKit.
  const here = snippetsOf([...TRPC, ...README]).filter(
    (code) => importsOf(code).every(isHere) && !code.includes("'./$types'"),
  )
  const files = here.map((code, index) => {
    project.write(`snippet-${index}.ts`, code)
    return `snippet-${index}.ts`
  })
  // The declarations of some packages need further ones, such as those of React.
  const options = { allowImportingTsExtensions: true, skipLibCheck: true }
  expect(await project.compile([...files, 'stand-in.ts', 'calls.ts'], options)).toEqual([])
})

test.each(Object.entries({ README, TRPC }))(
  'the first snippet of %s lists two pages of one status',
  async (name, blocks) => {
    await service.sql('delete from pets')
    const pet = { name: 'Rex', categoryId: 1n }
    const pair = [{ ...pet, status: 'available' } as const, { ...pet, status: 'sold' } as const]
    await storePets(service.sql, Array(65).fill(pair).flat())
    const snippet = `${snippetsOf(blocks)[0]}`
      .replace(/https?:\/\/[^/]+(?=\/trpc)/, service.origin)
      .replace('petstore_…', service.key)
    project.write(`${name}.ts`, `${snippet}\nexport { more, pets }\n`)
    const { pets, more } = await load(`${name}.ts`)
    expect([pets.length, more.length]).toEqual([50, 15])
    const seen = [...pets, ...more]
    expect(new Set(seen.map(({ id }) => id)).size).toBe(65)
    expect(new Set(seen.map(({ status }) => status))).toEqual(new Set(['available']))
  },
)

test('the fetch of the README ends each request that gets no answer', async () => {
  const code = `${snippetsOf(README).find((text) => text.includes('// timeout.ts'))}`
  project.write('timeout.ts', code.replace('10_000', '100'))
  const { fetchInTime } = await load('timeout.ts')
  const { createPetstoreClient } = await load(`${BUILT}/client.js`)
  const silent = createServer().listen(0, '127.0.0.1')
  await once(silent, 'listening')
  const { port } = silent.address() as AddressInfo // not a path
  const options = { url: `http://127.0.0.1:${port}/trpc`, apiKey: 'any', fetch: fetchInTime }
  const { createPet, listPets } = createPetstoreClient(options)
  const rex = { name: 'Rex', categoryId: 1 }
  const calls = [
    ...[listPets.query(), listPets.query(undefined, { signal: new AbortController().signal })],
    ...[createPet.mutate(rex), createPet.mutate(rex, { context: { idempotencyKey: 'one' } })],
  ]
  for (const { reason } of (await Promise.allSettled(calls)) as PromiseRejectedResult[]) {
    expect(reason).toMatchObject({ cause: { name: 'TimeoutError' } })
  }
  silent.closeAllConnections()
  silent.close()
})

test('the functions of the README for a cache keep bigints, and the message of an Error', async () => {
  project.write('cache.ts', `${snippetsOf(README).find((text) => text.includes('// cache.ts'))}`)
  const { deserialize, serialize } = await load('cache.ts')
  const paused = (failureReason: Error) => ({ variables: { categoryId: 2n ** 60n }, failureReason })
  const read = deserialize(
    serialize([paused(new TypeError('Failed to fetch')), paused(new Error())]),
  )
  expect(read).toEqual([paused(new Error('Failed to fetch')), paused(new Error())])
})

test('the stand-in of the README has the pets of its snippet', async () => {
  const code = snippetsOf(README).find((text) => text.includes('/testing'))
  project.write('testing.ts', `${code}\nexport { pets }\n`)
  expect((await load('testing.ts')).pets).toEqual([
    { id: 1n, name: 'Rex', categoryId: 3n, status: 'available' },
    { id: 2n, name: 'Bella', categoryId: 1n, status: 'sold' },
  ])
})

test('the stand-in returns what a service returns, in Node and in a browser', async () => {
  const { origin, databaseUrl, key } = await serviceForFile()
  const readOnly = await keys.create(databaseUrl, 'reader', undefined, true)
  const apiKeys = { valid: key, readOnly: readOnly.key, invalid: 'petstore_wrong' }
  const real = await (await load('calls.ts')).outcomes(`${origin}/trpc`, apiKeys)
  expect(real.length).toBeGreaterThan(60)
  for (const code of ['BAD_REQUEST', 'UNAUTHORIZED', 'FORBIDDEN', 'NOT_FOUND', 'UNPROCESSABLE'])
    expect(JSON.stringify(real)).toContain(code)

  const { standIn } = await load('stand-in.ts')
  expect(await standIn(apiKeys)).toEqual(real)
  expect(await standIn(apiKeys)).toEqual(real) // a second one has its own data

  const folder = path.join(project.folder, 'site')
  const output = { file: path.join(folder, 'page.js') }
  await build({ cwd: project.folder, input: 'stand-in-page.ts', platform: 'browser', output })
  const worker = 'node_modules/msw/lib/mockServiceWorker.js'
  cpSync(worker, path.join(folder, 'mockServiceWorker.js'))
  const site = express()
    .use(express.static(folder))
    .get('/', (_req, res) => res.send('<script type="module" src="page.js"></script>'))
    .listen(0, '127.0.0.1')
  await once(site, 'listening')
  const { port } = site.address() as AddressInfo // the address of a TCP server
  const browser = await startBrowser()
  try {
    for (const url of ['https://pets.example/trpc', '/trpc']) {
      const page = await browser.newPage()
      await page.goto(`http://localhost:${port}/`)
      await page.waitForFunction('"run" in window')
      const seen = await page.evaluate(`run(${JSON.stringify(url)}, ${JSON.stringify(apiKeys)})`)
      expect(seen).toEqual(real)
    }
  } finally {
    await browser.close()
    site.close()
  }
})

test('the package imports what it declares, and its stand-in bundles the rest with its licenses', () => {
  const [client, text] = [
    built('client.js') + built('../../src/wire/encoding.js'),
    built('testing.js'),
  ]
  expect(new Set(importsOf(client))).toEqual(new Set(['@trpc/client', '@trpc/server', 'devalue']))
  expect(new Set(importsOf(text))).toEqual(new Set(['msw', '@trpc/server', 'devalue']))
  for (const name of ['zod', 'trpc-to-openapi'])
    expect(text).toContain(`Parts of ${name}:\n\nMIT License`)
  expect(text, 'Babel makes it Math.pow, which takes no bigint').not.toMatch(/\dn \*\* \d/)
  expect(
    built('client.d.ts') + built('testing.d.ts') + built('../../src/wire/encoding.d.ts'),
    'no such files',
  ).not.toContain(".ts'")
})

test('initial pets are validated like those of the service', async () => {
  const { petstoreHandlers } = await load(`${BUILT}/testing.js`)
  const url = 'https://pets.example/trpc'
  expect(() => petstoreHandlers({ url, pets: [{ name: '', categoryId: 1 }] })).toThrow(
    'must not be empty',
  )
})
