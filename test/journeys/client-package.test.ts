/** The client package, packed, installed, compiled and run in another project. */
import { cpSync, readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { bin, emptyProject, run } from '../support/client-package.ts'
import { serviceForFile } from '../support/service.ts'

const tarball = inject('clientPackage')
const project = emptyProject()

const service = await serviceForFile()
beforeAll(async () => {
  await project.install([tarball])
  cpSync(path.join(import.meta.dirname, 'client-package'), project.folder, { recursive: true })
}, 180_000)
afterAll(() => project.remove())

/** The lines of a file with errors of the compiler, with the strictest options. */
async function refusedLines(file: string): Promise<number[]> {
  const errors = await project.compile([file])
  return errors.map((line) => {
    expect(line).toContain(`${file}(`)
    return Number(line.match(/\((\d+),/)?.[1])
  })
}

test('the package does not install the dependencies of the service', () => {
  const installed = readdirSync(path.join(project.folder, 'node_modules')).filter(
    (name) => !name.startsWith('.'),
  )
  expect(installed).toEqual(expect.arrayContaining(['@petstore-catalogue', '@trpc', 'devalue']))
  for (const name of ['express', 'kysely', 'mysql2', 'zod', 'zod-openapi', 'trpc-to-openapi'])
    expect(installed).not.toContain(name)
})

test('a strict project compiles with the package, including its declarations', async () => {
  expect(await refusedLines('consumer.ts')).toEqual([])
})

test('each wrong use is an error of the compiler in its line', async () => {
  const lines = readFileSync(path.join(project.folder, 'mistakes.ts'), 'utf8').split('\n')
  const wrong = lines.flatMap((line, index) => (line.endsWith('// wrong') ? [index + 1] : []))
  expect(wrong.length).toBeGreaterThan(0)
  expect(await refusedLines('mistakes.ts')).toEqual(wrong)
})

test('the package works in Node against the service', async () => {
  const { visit } = await import(pathToFileURL(path.join(project.folder, 'consumer.ts')).href)
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
])('%s finds no problems', async (tool, flags) => {
  const { code, output } = await run(bin(tool), [tarball, ...flags], project.folder)
  expect(code, output).toBe(0)
})
