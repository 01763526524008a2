/** Tools and generators that read the OpenAPI document. */
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { expect } from 'vitest'
import { serviceForFile } from '../support/service.ts'
import { npmTrial, runIn } from './trial.ts'

const service = await serviceForFile()
const served = await (await fetch(`${service.origin}/v1/openapi.json`)).text()

/** The command that compiles what a generator wrote. */
const tsc = (...files: string[]): [string, ...string[]] => [
  'node_modules/.bin/tsc',
  ...[
    '--noEmit',
    '--strict',
    '--target',
    'esnext',
    '--module',
    'esnext',
    '--lib',
    'esnext,dom,dom.iterable',
  ],
  ...['--moduleResolution', 'bundler', '--allowImportingTsExtensions', '--skipLibCheck'],
  ...files,
]

npmTrial('Postman, by its converter', ['openapi-to-postmanv2'], async (project) => {
  project.write('openapi.json', served)
  const program = readFileSync(path.join(import.meta.dirname, 'postman.mjs'), 'utf8')
  project.write('postman.mjs', program)
  const output = await runIn(project, 'postman.mjs', `${service.origin}/v1`, service.key)
  const [rex, bella, list] = JSON.parse(output)
  expect([rex.status, bella.status, list.status]).toEqual([201, 201, 200])
  expect(list.body).toEqual([rex.body, bella.body])
  return 'creates two animals, lists them'
})

npmTrial('Redocly bundle', ['@redocly/cli'], async (project) => {
  project.write('openapi.json', served)
  const bundle = ['bundle', 'openapi.json', '--output', 'bundled.json']
  await runIn(project, 'node_modules/.bin/redocly', ...bundle)
  const bundled = readFileSync(path.join(project.folder, 'bundled.json'), 'utf8')
  expect(JSON.parse(bundled).components.schemas.Pet).toBeDefined()
  const numbers = bundled.match(/(?<=[:,] *)-?\d{10,}/g) ?? []
  expect(numbers.filter((digits) => !Number.isSafeInteger(Number(digits)))).toEqual([])
  return 'no bound beyond ±(2⁵³ − 1)'
})

npmTrial('Ajv 2020', ['ajv', 'ajv-formats'], async (project) => {
  project.write('openapi.json', served)
  const check = `
    import Ajv from 'ajv/dist/2020.js'
    import formats from 'ajv-formats'
    import { readFileSync } from 'node:fs'
    const ajv = formats.default(new Ajv.default({ strict: false }))
    ajv.addSchema(JSON.parse(readFileSync('openapi.json', 'utf8')), 'petstore')
    const pet = { id: 1, name: 'Rex', categoryId: 1, status: 'available', born: '2026-01-02' }
    const Pet = ajv.getSchema('petstore#/components/schemas/Pet')
    console.log(Pet(pet), Pet({ ...pet, id: 'one' }))`
  project.write('check.mjs', check)
  expect(await runIn(project, 'check.mjs')).toBe('true false\n')
  return "accepts a field of tomorrow's answer"
})

npmTrial('orval', ['orval', 'zod', 'typescript@5'], async (project) => {
  project.write('openapi.json', served)
  for (const client of ['fetch', 'zod']) {
    const args = ['--input', 'openapi.json', '--output', `${client}.ts`, '--client', client]
    await runIn(project, 'node_modules/.bin/orval', ...args)
  }
  await runIn(project, ...tsc('fetch.ts', 'zod.ts'))
  return 'fetch and zod compile'
})

const KUBB = ['cli', 'core', 'plugin-oas', 'plugin-ts', 'plugin-zod'].map(
  (name) => `@kubb/${name}@4`,
)
npmTrial('kubb', [...KUBB, 'zod', 'typescript@5'], async (project) => {
  project.write('openapi.json', served)
  const config = `
    import { defineConfig } from '@kubb/core'
    import { pluginOas } from '@kubb/plugin-oas'
    import { pluginTs } from '@kubb/plugin-ts'
    import { pluginZod } from '@kubb/plugin-zod'
    export default defineConfig({
      input: { path: 'openapi.json' },
      output: { path: 'petstore', format: false, lint: false },
      plugins: [pluginOas(), pluginTs(), pluginZod()],
    })`
  project.write('kubb.config.mjs', config)
  await runIn(project, 'node_modules/.bin/kubb', 'generate')
  await runIn(project, ...tsc('petstore/index.ts'))
  const check = `
    import { petSchema } from './petstore/index.ts'
    const pet = { name: 'Rex', categoryId: 1, status: 'available', born: '2026-01-02' }
    for (const id of [1, 2 ** 53]) console.log(petSchema.safeParse({ ...pet, id }).success)`
  project.write('check.mts', check)
  expect(await runIn(project, 'check.mts')).toBe('true\nfalse\n')
  return 'compiles; its zod refuses ids beyond 2⁵³ − 1'
})

npmTrial('openapi-typescript', ['openapi-typescript', 'typescript@5'], async (project) => {
  project.write('openapi.json', served)
  const args = ['openapi.json', '--output', 'petstore.ts']
  await runIn(project, 'node_modules/.bin/openapi-typescript', ...args)
  await runIn(project, ...tsc('petstore.ts'))
  return 'compiles'
})

npmTrial('hey-api', ['@hey-api/openapi-ts', 'typescript@5'], async (project) => {
  project.write('openapi.json', served)
  const args = ['--input', 'openapi.json', '--output', 'petstore']
  await runIn(project, 'node_modules/.bin/openapi-ts', ...args)
  await runIn(project, ...tsc('petstore/index.ts'))
  return 'compiles'
})
