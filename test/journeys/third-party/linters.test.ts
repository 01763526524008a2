/** Third-party linters check the served document. Their configuration files have the disabled rules. */
import { execFile } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { startService } from '../../support/service.ts'
import { INSTALLATION, installed } from './installed.ts'

const cwd = import.meta.dirname

/** Every document is in this folder, because the exceptions in spectral.yaml depend on its path. */
const folder = path.join(cwd, 'generated')
let served: string
beforeAll(installed, INSTALLATION)
beforeAll(async () => {
  const service = await startService()
  served = await (await fetch(`${service.origin}/v1/openapi.json`)).text()
  await service.stop()
  mkdirSync(folder, { recursive: true })
})

/** Makes a function that runs a linter on a document, and returns the violated rules. */
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
        // Exit code 1 means violations.
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

test('Spectral finds no violations, including the OWASP rules', async () => {
  expect(await spectral('served.json', served)).toEqual([])
})

test('Redocly finds no violations', async () => {
  expect(await redocly('served-too.json', served)).toEqual([])
})

test('both linters find the violations of a faulty document', async () => {
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
