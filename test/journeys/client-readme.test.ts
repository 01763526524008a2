/** The code for TypeScript frontends in both READMEs, in a project with the installed packages. */
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Project } from '../support/client-package.ts'
import { storePets } from '../support/pets.ts'
import { serviceForFile } from '../support/service.ts'
import { blocks, installs, isHere, newFrontend } from './frontend.ts'

const service = await serviceForFile()

describe.each<[file: string, from?: string, to?: string]>([
  ['README.md', '## tRPC', '## Configuration'],
  ['client/README.md'],
])('%s', (file, from, to) => {
  const snippets = blocks(file, 'ts', from, to)

  let project: Project
  beforeAll(() => {
    project = newFrontend()
  })
  afterAll(() => project.remove())

  const packagesOf = (snippet: string) =>
    [...snippet.matchAll(/ from '((?:@[^/']+\/)?[^/']+)/g)].map(([, name]) => `${name}`)

  test('the README installs the packages of its snippets', () => {
    expect(blocks(file, 'sh', from, to).join()).toMatch(/npm install \S+petstore-[\d.]+\.tgz/)
    const there = ['@petstore-catalogue/petstore', '@trpc/client', '@trpc/server']
    expect([...there, ...installs(file, from, to)]).toEqual(
      expect.arrayContaining(snippets.flatMap(packagesOf)),
    )
  })

  test('the snippets of the README compile', async () => {
    const here = snippets.filter((snippet) => packagesOf(snippet).every(isHere))
    expect(here.length).toBeGreaterThanOrEqual(snippets.length - 1) // nothing else needs the persister
    const names = here.map((_, index) => `snippet-${index}.ts`)
    here.forEach((snippet, index) => {
      project.write(`${names[index]}`, snippet)
    })
    // The declarations of some packages need further ones, such as those of React.
    expect(await project.compile(names, { skipLibCheck: true })).toEqual([])
  })

  const standIn = snippets.find((text) => text.includes('/testing'))
  if (standIn)
    test('the stand-in of the README has the pets of its snippet', async () => {
      project.write('testing.ts', `${standIn}\nexport { pets }\n`)
      const { pets } = await import(pathToFileURL(path.join(project.folder, 'testing.ts')).href)
      expect(pets).toEqual([
        { id: 1n, name: 'Rex', categoryId: 3n, status: 'available' },
        { id: 2n, name: 'Bella', categoryId: 1n, status: 'sold' },
      ])
    })

  test('the first snippet lists two pages of one status', async () => {
    await service.sql('delete from pets')
    const statuses = ['available', 'sold'] as const
    await storePets(
      service.sql,
      Array.from({ length: 130 }, (_, index) => ({
        name: `Animal ${index}`,
        categoryId: 1n,
        status: statuses[index % 2] ?? 'sold',
      })),
    )
    const snippet = `${snippets[0]}`
      .replace(/https?:\/\/[^/]+(?=\/trpc)/, service.origin)
      .replace('petstore_…', service.key)
    project.write('first.ts', `${snippet}\nexport { more, pets }\n`)
    const { pets, more } = await import(pathToFileURL(path.join(project.folder, 'first.ts')).href)
    const seen = [...pets, ...more]
    expect([pets.length, more.length]).toEqual([50, 15])
    expect(new Set(seen.map(({ id }) => id)).size).toBe(65)
    expect(new Set(seen.map(({ status }) => status))).toEqual(new Set(['available']))
  })
})
