/** Hovers of an editor over the names of the client: the texts of the document, and deprecations. */
import { cpSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Project } from '../support/client-package.ts'
import { INSTALLATION } from '../support/installation.ts'
import { newFrontend } from './frontend.ts'
import { type LanguageServer, startLanguageServer } from './language-server.ts'

const root = path.resolve(import.meta.dirname, '../..')
const file = 'hover.ts'

let project: Project
let editor: LanguageServer
beforeAll(async () => {
  project = await newFrontend()
  cpSync(path.join(import.meta.dirname, 'client-package', file), path.join(project.folder, file))
  expect(await project.compile([file], { skipLibCheck: true })).toEqual([])
  editor = await startLanguageServer(project.folder)
}, INSTALLATION)
afterAll(async () => {
  await editor?.stop()
  project.remove()
})

const { paths, components } = JSON.parse(readFileSync(path.join(root, 'openapi.json'), 'utf8'))
const { Pet, NewPet } = components.schemas
const operations = {
  listPets: paths['/pets'].get,
  createPet: paths['/pets'].post,
  getPet: paths['/pets/{petId}'].get,
}
const parameter = (operation: { parameters: { name: string }[] }, name: string) =>
  operation.parameters.find((one) => one.name === name)

test.each([
  ['client.listPets', operations.listPets.summary],
  ['client.createPet', operations.createPet.summary],
  ['client.getPet', operations.getPet.summary],
])('%s: %s', async (marker, summary) => {
  expect(summary).toMatch(/\w+ \w+/)
  expect(await editor.hover(file, marker)).toContain(summary)
})

test.each([
  ['{ limit', parameter(operations.listPets, 'limit')],
  ['5, status', parameter(operations.listPets, 'status')],
  ["'sold', cursor", parameter(operations.listPets, 'cursor')],
  ['{ petId', parameter(operations.getPet, 'petId')],
  ['mutate({ name', NewPet.properties.name],
  ["'Rex', categoryId: 3 }".slice(0, -5), NewPet.properties.categoryId],
  ['3n, status', NewPet.properties.status],
  ['pet.categoryId', Pet.properties.categoryId],
  ['made.id', Pet.properties.id],
  ['found.name', Pet.properties.name],
])('%s', async (marker, { description }) => {
  expect(description).toMatch(/\w+ \w+/)
  expect(await editor.hover(file, marker)).toContain(description)
})

test('the hover of a field has its bounds and its default', async () => {
  const hover = await editor.hover(file, '{ limit')
  expect(hover).toContain('From 1 to 100.')
  expect(hover).toMatch(/@default\S* — 20|@default\S* 20/)
})

test('the hovers have no texts that are only about REST', async () => {
  const hovers = await Promise.all(
    ['client.listPets', 'client.createPet', 'client.getPet'].map((name) =>
      editor.hover(file, name),
    ),
  )
  expect(hovers.join()).not.toMatch(/Link|header|`Idempotency-Key`|`GET /)
})

test('only the deprecated operation is struck through, and its hover has the date of removal', async () => {
  expect(await editor.struckThrough(file)).toEqual(['getPet', 'getPet'])
  const hover = await editor.hover(file, 'client.getPet')
  expect(hover).toMatch(/deprecated.*5 December 2030.*`listPets`/s)
})
