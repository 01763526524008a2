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
beforeAll(() => {
  project.link(tarball)
  cpSync(path.join(import.meta.dirname, 'client-package'), project.folder, { recursive: true })
})
afterAll(() => project.remove())

/** The lines of a file with errors of the compiler, with the strictest options. */
async function refusedLines(file: string): Promise<number[]> {
  const errors = await project.compile([file])
  return errors.map((line) => {
    expect(line).toContain(`${file}(`)
    return Number(line.match(/\((\d+),/)?.[1])
  })
}

test('the package requires tRPC and devalue, and no dependency of the service', () => {
  const required = readdirSync(path.join(project.folder, 'node_modules'), { recursive: false })
  expect(required.toSorted()).toEqual(['@petstore-catalogue', '@trpc', 'devalue'])
})

test('the declarations have the texts of the OpenAPI document, which an editor shows', () => {
  const { paths, components } = JSON.parse(readFileSync('openapi.json', 'utf8'))
  const declared = path.join(
    project.folder,
    'node_modules/@petstore-catalogue/petstore/dist/client/src/interface.d.ts',
  )
  const text = readFileSync(declared, 'utf8').replaceAll(/\s+(\* )?/g, ' ')
  const [list, create, get] = [paths['/pets'].get, paths['/pets'].post, paths['/pets/{petId}'].get]
  const { Pet, NewPet } = components.schemas
  const described = [Pet, NewPet].flatMap(({ properties }) => Object.values<Described>(properties))
  const texts = [
    ...[list, create, get].map(({ summary }) => summary),
    ...[...list.parameters, ...get.parameters, ...described].map(({ description }) => description),
  ].filter((each) => each !== undefined) // the status of a pet refers to a schema
  expect(texts.length).toBeGreaterThan(10)
  for (const each of texts) expect(text).toContain(each.replaceAll(/\s+/g, ' '))
  expect(text).toContain('From 1 to 100. @default 20')
  expect(text).toMatch(/@deprecated It ends on 5 December 2030: use `listPets`/)
  expect(text).not.toMatch(/Link header|`Idempotency-Key`|`GET /)
})

interface Described {
  description?: string
}

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
