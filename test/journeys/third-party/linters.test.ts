/**
 * The document as it is served, with a resource of all ready-made schemas beside the service's own,
 * before linters that are not ours; what is off is said in their files.
 */
import { execFile } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { petAndInvoiceResources } from '../../procedure/invoices.ts'
import { startService } from '../../support/service.ts'
import { INSTALLATION, installed } from './installed.ts'

const cwd = import.meta.dirname

/** Every document lies in this folder, because the exceptions in spectral.yaml go by its name. */
const folder = path.join(cwd, 'generated')
let served: string
beforeAll(installed, INSTALLATION)
beforeAll(async () => {
  const service = await startService({}, { resources: petAndInvoiceResources() })
  served = await (await fetch(`${service.origin}/v1/openapi.json`)).text()
  await service.stop()
  mkdirSync(folder, { recursive: true })
})

/** A linter of this name with these arguments, as a function from a document to the rules it breaks. */
const linter =
  (bin: string, args: string[], rulesIn: (output: string) => string[]) =>
  (name: string, document: string) =>
    new Promise<string[]>((resolve, reject) => {
      writeFileSync(path.join(folder, name), document)
      const program = path.join(cwd, 'node_modules', bin)
      const env = {
        ...process.env,
        REDOCLY_TELEMETRY: 'off',
        REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true',
      }
      const words = [program, 'lint', `generated/${name}`, ...args]
      execFile(process.execPath, words, { cwd, env }, (error, stdout, stderr) => {
        // 0 is for nothing found, 1 for something.
        if (error && error.code !== 1) reject(new Error(stderr || stdout))
        else resolve(rulesIn(stdout))
      })
    })

const spectral = linter(
  '@stoplight/spectral-cli/dist/index.js',
  ['--ruleset=spectral.yaml', '--format=json', '--quiet'],
  (output) => (JSON.parse(output) as { code: string }[]).map(({ code }) => code),
)
const redocly = linter(
  '@redocly/cli/bin/cli.js',
  ['--config=redocly.yaml', '--format=json', '--max-problems=1000'],
  (output) => (JSON.parse(output).problems as { ruleId: string }[]).map(({ ruleId }) => ruleId),
)

test('Spectral and the OWASP rules find nothing', async () => {
  expect(await spectral('served.json', served)).toEqual([])
})

test('Redocly finds nothing', async () => {
  expect(await redocly('served-too.json', served)).toEqual([])
})

test('they would find something', async () => {
  const spoilt = served
    .replace('"maxItems":', '"x-maxItems":')
    .replace('"operationId":"listPets"', '"operationId":"createPet"')
    .replaceAll('"RateLimit":{', '"X-RateLimit":{')
  expect(await spectral('spoilt.json', spoilt)).toEqual(
    expect.arrayContaining([
      'operation-operationId-unique',
      'owasp:api4:2023-array-limit',
      'owasp:api4:2023-rate-limit',
    ]),
  )
  expect(await redocly('spoilt-too.json', spoilt)).toContain('operation-operationId-unique')
})
