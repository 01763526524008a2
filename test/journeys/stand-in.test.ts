/** The stand-in for tests of frontends returns the same outcomes as the service for the same calls. */
import { once } from 'node:events'
import { cpSync, readFileSync } from 'node:fs'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import express from 'express'
import { build } from 'rolldown'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startBrowser } from '../support/browser.ts'
import type { Project } from '../support/client-package.ts'
import { keys, serviceForFile } from '../support/service.ts'
import { newFrontend } from './frontend.ts'

let project: Project
const load = (file: string) => import(pathToFileURL(path.join(project.folder, file)).href)

const service = await serviceForFile()
let apiKeys: { valid: string; readOnly: string; invalid: string }
let real: [string, string][]
beforeAll(async () => {
  const readOnly = await keys.create(service.databaseUrl, 'reader', undefined, true)
  apiKeys = { valid: service.key, readOnly: readOnly.key, invalid: 'petstore_wrong' }
  project = newFrontend()
  cpSync(path.join(import.meta.dirname, 'client-package'), project.folder, { recursive: true })
  const { outcomes } = await load('calls.ts')
  real = await outcomes(`${service.origin}/trpc`, apiKeys)
})
afterAll(() => project.remove())

test('the calls have outcomes of every kind', () => {
  const text = JSON.stringify(real)
  expect(real.length).toBeGreaterThan(60)
  for (const code of [
    'BAD_REQUEST',
    'UNAUTHORIZED',
    'FORBIDDEN',
    'NOT_FOUND',
    'UNPROCESSABLE_CONTENT',
  ]) {
    expect(text).toContain(code)
  }
})

test('the stand-in works in Node', async () => {
  const { standIn } = await load('stand-in.ts')
  expect(await standIn(apiKeys)).toEqual(real)
  // A second stand-in has its own data.
  expect(await standIn(apiKeys)).toEqual(real)
})

test('the stand-in works in a browser', async () => {
  const { folder } = project
  await build({
    cwd: folder,
    input: 'stand-in-page.ts',
    platform: 'browser',
    output: { file: path.join(folder, 'site/page.js') },
  })
  const worker = path.join(folder, 'node_modules/msw/lib/mockServiceWorker.js')
  cpSync(worker, path.join(folder, 'site/mockServiceWorker.js'))
  const site: Server = express()
    .use(express.static(path.join(folder, 'site')))
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
}, 120_000)

test('the stand-in bundles the router without the server and the database', () => {
  const built = 'node_modules/@petstore-catalogue/petstore/dist/client/src/testing.js'
  const text = readFileSync(path.join(project.folder, built), 'utf8')
  const imported = [...text.matchAll(/^import .* from "(.*)";$/gm)].map(([, name]) => name)
  expect(imported.length).toBeGreaterThan(2)
  for (const name of imported) expect(name).toMatch(/^(msw|devalue|@trpc\/server(\/.*)?)$/)
  for (const name of ['zod', 'trpc-to-openapi'])
    expect(text).toContain(`Parts of ${name}:\n\nMIT License`)
  expect(text.match(/^(import|require).*/gm)).toHaveLength(imported.length)
})

test('a strict project with the stand-in compiles', async () => {
  expect(
    await project.compile(['stand-in.ts', 'calls.ts'], {
      allowImportingTsExtensions: true,
      skipLibCheck: true,
      types: [],
    }),
  ).toEqual([])
})

test('initial pets are validated like those of the service', async () => {
  const { petstoreHandlers } = await load(
    'node_modules/@petstore-catalogue/petstore/dist/client/src/testing.js',
  )
  const url = 'https://pets.example/trpc'
  expect(() => petstoreHandlers({ url, pets: [{ name: '', categoryId: 1 }] })).toThrow(
    'must not be empty',
  )
})
