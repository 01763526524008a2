/** The package `petstore/client` as another repository gets it: packed, installed, compiled, run. */
import { execFile } from 'node:child_process'
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { type Service, startService } from '../support/service.ts'

const root = path.resolve(import.meta.dirname, '../..')
const project = mkdtempSync(path.join(tmpdir(), 'petstore-consumer-'))
const bin = (name: string) => path.join(root, 'node_modules/.bin', name)

/** Runs a program to its end and gives what it printed and its exit code. */
const run = (program: string, args: string[], cwd = project) =>
  new Promise<{ code: number; output: string }>((resolve) => {
    execFile(program, args, { cwd }, (error, stdout, stderr) =>
      resolve({ code: error ? Number(error.code) : 0, output: stdout || stderr }),
    )
  })

let service: Service
const tarball = inject('clientPackage')
beforeAll(async () => {
  service = await startService()
  cpSync(path.join(import.meta.dirname, 'client-package'), project, { recursive: true })
  writeFileSync(path.join(project, 'package.json'), '{ "private": true, "type": "module" }')
  const flags = ['--prefer-offline', '--no-audit', '--no-fund']
  const installed = await run('npm', ['install', ...flags, tarball])
  expect(installed).toMatchObject({ code: 0 })
}, 180_000)
afterAll(async () => {
  await service.stop()
  rmSync(project, { recursive: true, force: true })
})

/** The lines of a file that the compiler refuses, in a project of the strictest settings. */
async function refusedLines(file: string): Promise<number[]> {
  const compilerOptions = {
    target: 'esnext',
    lib: ['esnext', 'dom'],
    module: 'nodenext',
    types: [],
    noEmit: true,
    strict: true,
    exactOptionalPropertyTypes: true,
    skipLibCheck: false,
  }
  writeFileSync(
    path.join(project, 'tsconfig.json'),
    JSON.stringify({ compilerOptions, files: [file] }),
  )
  const { output } = await run(bin('tsc'), ['--pretty', 'false'])
  return output
    .split('\n')
    .filter((line) => /^\S.*error TS/.test(line))
    .map((line) => {
      expect(line).toContain(`${file}(`)
      return Number(line.match(/\((\d+),/)?.[1])
    })
}

test('it brings nothing of the service', () => {
  const installed = readdirSync(path.join(project, 'node_modules')).filter(
    (name) => !name.startsWith('.'),
  )
  expect(installed).toEqual(expect.arrayContaining(['@trpc', 'devalue', 'petstore']))
  for (const name of ['express', 'kysely', 'mysql2', 'zod', 'zod-openapi', 'trpc-to-openapi'])
    expect(installed).not.toContain(name)
})

test('a strict project compiles with it, its declarations checked too', async () => {
  expect(await refusedLines('consumer.ts')).toEqual([])
})

test('mistakes are compile errors, exactly where they are', async () => {
  const lines = readFileSync(path.join(project, 'mistakes.ts'), 'utf8').split('\n')
  const wrong = lines.flatMap((line, index) => (line.endsWith('// wrong') ? [index + 1] : []))
  expect(wrong.length).toBeGreaterThan(0)
  expect(await refusedLines('mistakes.ts')).toEqual(wrong)
})

test('it works in Node against the service', async () => {
  const { visit } = await import(pathToFileURL(path.join(project, 'consumer.ts')).href)
  expect(await visit(`${service.origin}/trpc`, service.key)).toEqual([
    'Rex 9007199254740993 pending',
    'true true 1',
    'BAD_REQUEST 400 must not be empty',
    '[{"petId":1}]',
  ])
})

test.each([
  ['publint', ['--strict']],
  ['attw', ['--profile', 'esm-only']],
])('%s finds nothing', async (tool, flags) => {
  const { code, output } = await run(bin(tool), [tarball, ...flags])
  expect(code, output).toBe(0)
})
