/** Tools and generators that read the OpenAPI document. */
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { Validator } from '@seriousme/openapi-schema-validator'
import { expect, onTestFinished } from 'vitest'
import { type Project, run } from '../support/client-package.ts'
import { freePort } from '../support/mysql.ts'
import { serviceForFile, startService } from '../support/service.ts'
import { up, visitResources } from '../visits/router.ts'
import { npmTrial, runIn, serve } from './trial.ts'

const service = await serviceForFile()
const served = await (await fetch(`${service.origin}/v1/openapi.json`)).text()

/** A file of the folder `projects`. */
const fileOf = (name: string) =>
  readFileSync(path.join(import.meta.dirname, 'projects', name), 'utf8')

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

for (const [tool, converter] of [
  ['Postman', 'openapi-to-postmanv2'],
  ['Bruno', '@usebruno/converters'],
  ['Insomnia', 'insomnia-importers'],
] as const) {
  npmTrial(`${tool}, by its converter`, [converter], async (project) => {
    project.write('openapi.json', served)
    project.write('imported.mjs', fileOf('imported.mjs'))
    const fresh = await startService()
    onTestFinished(fresh.stop)
    const args = [tool.toLowerCase(), `${fresh.origin}/v1`, fresh.key]
    const output = await runIn(project, 'imported.mjs', ...args)
    const [rex, bella, list] = JSON.parse(`${output.trim().split('\n').at(-1)}`)
    expect([rex.status, bella.status, list.status]).toEqual([201, 201, 200])
    expect(list.body).toEqual([rex.body, bella.body])
    return 'creates two animals, lists them'
  })
}

/** The document without what linters look for: limits, unique operations, headers. */
const spoilt = served
  .replace('"maxItems":', '"x-maxItems":')
  .replace('"operationId":"listPets"', '"operationId":"createPet"')
  .replaceAll('"RateLimit":{', '"X-RateLimit":{')

/** Runs a linter on a document, and returns its report. Exit code 1 means that it has findings. */
async function lint(project: Project, linter: string, document: string, ...args: string[]) {
  project.write('openapi.json', document)
  const words = [`node_modules/.bin/${linter}`, 'lint', 'openapi.json', '--format=json', ...args]
  const { code, output } = await run(process.execPath, words, project.folder)
  expect([0, 1], output).toContain(code)
  return JSON.parse(output)
}

npmTrial('Redocly lint and bundle', ['@redocly/cli'], async (project) => {
  project.write('redocly.yaml', fileOf('redocly.yaml'))
  const rules = async (document: string) => {
    const args = ['--config=redocly.yaml', '--max-problems=1000']
    const { problems } = await lint(project, 'redocly', document, ...args)
    return problems.map(({ ruleId }: { ruleId: string }) => ruleId)
  }
  expect(await rules(spoilt)).toContain('operation-operationId-unique')
  expect(await rules(served)).toEqual([])
  const bundle = ['bundle', 'openapi.json', '--output', 'bundled.json']
  await runIn(project, 'node_modules/.bin/redocly', ...bundle)
  const bundled = readFileSync(path.join(project.folder, 'bundled.json'), 'utf8')
  expect(JSON.parse(bundled).components.schemas.Pet).toBeDefined()
  const numbers = bundled.match(/(?<=[:,] *)-?\d{10,}/g) ?? []
  expect(numbers.filter((digits) => !Number.isSafeInteger(Number(digits)))).toEqual([])
  return 'finds nothing; no bound beyond ±(2⁵³ − 1)'
})

const SPECTRAL = ['@stoplight/spectral-cli', '@stoplight/spectral-owasp-ruleset']
npmTrial('Spectral with the OWASP rules', SPECTRAL, async (project) => {
  project.write('spectral.yaml', fileOf('spectral.yaml'))
  const rules = async (document: string) => {
    const args = ['--ruleset=spectral.yaml', '--quiet']
    const findings = await lint(project, 'spectral', document, ...args)
    return findings.map(({ code }: { code: string }) => code)
  }
  expect(await rules(spoilt)).toEqual(
    expect.arrayContaining([
      'operation-operationId-unique',
      'owasp:api4:2023-array-limit',
      'owasp:api4:2023-rate-limit',
    ]),
  )
  expect(await rules(served)).toEqual([])
  return 'finds nothing, but for the rules that spectral.yaml names'
})

/** Makes openapi-3.0.json of openapi.json in a project, as docs/clients.md says. */
async function downConvert(project: Project): Promise<void> {
  project.write('openapi.json', served)
  const clients = readFileSync(path.resolve('docs/clients.md'), 'utf8')
  const [, args = ''] = /`npx --yes @apiture\/openapi-down-convert (.+?)`/.exec(clients) ?? []
  await runIn(project, 'node_modules/.bin/openapi-down-convert', ...args.split(' '))
}

npmTrial('openapi-down-convert', ['@apiture/openapi-down-convert'], async (project) => {
  await downConvert(project)
  const converted = JSON.parse(readFileSync(path.join(project.folder, 'openapi-3.0.json'), 'utf8'))
  const isValid = async (document: Record<string, unknown>) =>
    (await new Validator().validate(document)).valid
  const { openapi } = converted
  expect(openapi).toMatch(/^3\.0\./)
  expect(await isValid({ ...JSON.parse(served), openapi })).toBe(false)
  expect(await isValid(converted)).toBe(true)
  return 'makes a valid document of OpenAPI 3.0'
})

const JEST = ['jest-openapi', 'expect', '@apiture/openapi-down-convert']
npmTrial('jest-openapi', JEST, async (project) => {
  await downConvert(project)
  const fresh = await startService()
  onTestFinished(fresh.stop)
  const check = `
    import { expect } from 'expect'
    import path from 'node:path'
    globalThis.expect = expect
    const { default: jestOpenAPI } = await import('jest-openapi')
    jestOpenAPI.default(path.resolve('openapi-3.0.json'))
    const [base, key] = process.argv.slice(2)
    const headers = { Authorization: 'Bearer ' + key, 'Content-Type': 'application/json' }
    for (const [method, where, body] of [
      ['POST', '/pets', '{"name":"Rex","categoryId":3}'],
      ['POST', '/pets', '{}'],
      ['GET', '/pets'],
      ['GET', '/pets/1'],
      ['GET', '/pets/2'],
    ]) {
      const { status, ...answer } = await fetch(base + where, { method, headers, body })
        .then(async (response) => ({ status: response.status, data: await response.json() }))
      const request = { method, path: new URL(base).pathname + where }
      expect({ ...answer, status, request }).toSatisfyApiSpec()
      if (status === 200 && where === '/pets/1')
        expect({ status, data: { id: 'one' }, request }).not.toSatisfyApiSpec()
      console.log(status)
    }`
  project.write('check.mjs', check)
  const output = await runIn(project, 'check.mjs', `${fresh.origin}/v1`, fresh.key)
  expect(output.split('\n')).toEqual(['201', '400', '200', '200', '404', ''])
  return 'finds no violation in the answers, with the document of OpenAPI 3.0'
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
  const check = `
    import { GetPetResponse } from './zod.ts'
    const pet = { name: 'Rex', categoryId: 1, status: 'available' }
    for (const id of [1, 2 ** 53]) console.log(GetPetResponse.safeParse({ ...pet, id }).success)`
  project.write('check.mts', check)
  expect(await runIn(project, 'check.mts')).toBe('true\nfalse\n')
  return 'fetch and zod compile; its zod refuses ids beyond 2⁵³ − 1'
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

const TYPED = ['openapi-typescript', 'openapi-fetch', 'typescript@5']
/** Generates a client in a project, and compiles the program that calls every operation by it. */
async function typedClient(project: Project): Promise<void> {
  project.write('openapi.json', served)
  project.write('consumer.ts', fileOf('consumer.ts'))
  const args = ['openapi.json', '--output', 'petstore.ts']
  await runIn(project, 'node_modules/.bin/openapi-typescript', ...args)
  const types = ['--types', 'node', '--typeRoots', path.resolve('node_modules/@types')]
  await runIn(project, ...tsc('consumer.ts', 'petstore.ts'), ...types)
}

npmTrial('openapi-typescript', TYPED, async (project) => {
  await typedClient(project)
  const fresh = await startService()
  onTestFinished(fresh.stop)
  await runIn(project, 'consumer.ts', `${fresh.origin}/v1`, fresh.key, 'invalid, too')
  return 'compiles, and calls every operation by openapi-fetch'
})

const TYPES = ['openapi-typescript', '@hey-api/openapi-ts', 'typescript@5']
npmTrial('Types of a creation with defaults', TYPES, async (project) => {
  const visits = await startService({}, { resources: visitResources, prepare: up })
  onTestFinished(visits.stop)
  const compiled = async (document: string) => {
    project.write('openapi.json', document)
    const bin = 'node_modules/.bin'
    await runIn(project, `${bin}/openapi-typescript`, 'openapi.json', '--output', 'typescript.ts')
    const plugins = ['@hey-api/typescript', '@hey-api/transformers'].flatMap((name) => ['-p', name])
    const args = ['--input', 'openapi.json', '--output', 'hey-api', ...plugins]
    await runIn(project, `${bin}/openapi-ts`, ...args)
    const { code } = await run(process.execPath, tsc('defaults.ts'), project.folder)
    return code
  }
  project.write('defaults.ts', fileOf('defaults.ts'))
  const document = await (await fetch(`${visits.origin}/v1/openapi.json`)).text()
  expect(await compiled(document)).toBe(0)
  // With a default, the field is required.
  const withDefault = document.replaceAll('"description":"Whether it', '"default":false,$&')
  expect(await compiled(withDefault)).not.toBe(0)
  return 'compiles without the fields that have a default, by openapi-typescript and @hey-api/openapi-ts'
})

npmTrial('Prism as a validating proxy', ['@stoplight/prism-cli', ...TYPED], async (project) => {
  await typedClient(project)
  const fresh = await startService()
  onTestFinished(fresh.stop)
  const port = await freePort()
  const proxy = ['proxy', 'openapi.json', `${fresh.origin}/v1`, `--port=${port}`, '--errors']
  const { lines } = await serve(project, ['node_modules/.bin/prism', ...proxy], /listening/)
  await runIn(project, 'consumer.ts', `http://127.0.0.1:${port}`, fresh.key)
  expect(lines.filter((line) => /violation|error/i.test(line))).toEqual([])
  expect(lines.some((line) => line.includes('has returned 201'))).toBe(true)
  // The proxy does detect violations, such as this request.
  const headers = { authorization: `Bearer ${fresh.key}` }
  const greedy = await fetch(`http://127.0.0.1:${port}/pets?limit=101`, { headers })
  expect(await greedy.text()).toContain('stoplight.io/prism')
  return 'finds no violation in the requests and answers of every operation'
})

npmTrial('Specmatic', ['specmatic'], async (project) => {
  project.write('openapi.json', served)
  const fresh = await startService()
  onTestFinished(fresh.stop)
  const jar = 'node_modules/specmatic/specmatic.jar'
  const url = `--testBaseURL=${fresh.origin}/v1`
  const words = [`apiKey=${fresh.key}`, 'java', '-jar', jar, 'test', 'openapi.json', url]
  const { output } = await run('env', words, project.folder)
  const [, runs, failures] = /^Tests run: (\d+), .+ Failures: (\d+),/m.exec(output) ?? []
  expect(Number(runs), output).toBeGreaterThan(0)
  // It takes `\x00` for letters, makes one key for several animals, and asks for an animal that is none.
  const told = [...output.matchAll(/"message": "(.+)"/g)].map(([, message]) => message)
  const judged = /^name must |^This Idempotency-Key was used for another|^There is no animal/
  expect(told.filter((message) => !judged.test(`${message}`))).toEqual([])
  expect(told).toHaveLength(Number(failures))
  return 'ends; fails with names that have NUL, one key for several animals, and an animal that is none'
})
