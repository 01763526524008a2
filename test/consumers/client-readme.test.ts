/** What both READMEs tell a TypeScript frontend: their own lines in an empty folder, one after another. */
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { emptyProject, type Project } from '../support/client-package.ts'
import { storePets } from '../support/pets.ts'
import { type Service, startService } from '../support/service.ts'

const root = path.resolve(import.meta.dirname, '../..')
const tarball = inject('clientPackage')

let service: Service
beforeAll(async () => {
  service = await startService()
}, 120_000)
afterAll(async () => {
  await service.stop()
})

/** The blocks of one language in the part of a text that begins and ends with these headings. */
function blocks(text: string, language: string, from: string, to?: string): string[] {
  const begin = text.indexOf(from)
  expect(begin).toBeGreaterThanOrEqual(0)
  const part = text.slice(begin, to === undefined ? undefined : text.indexOf(to, begin))
  return [...part.matchAll(/^```(\w+)\n(.*?)^```$/gms)]
    .filter(([, name]) => name === language)
    .map(([, , body]) => `${body}`)
}

describe.each([
  ['README.md', '### TypeScript frontends', '#### The example storefront'],
  ['client/README.md', '# @petstore-catalogue/petstore', undefined],
])('%s', (file, from, to) => {
  const text = readFileSync(path.join(root, file), 'utf8')
  const installs = blocks(text, 'sh', from, to)
    .flatMap((block) => block.split('\n'))
    .filter((line) => line.startsWith('npm install '))
  const snippets = blocks(text, 'ts', from, to)

  let project: Project
  beforeAll(() => {
    project = emptyProject()
  })
  afterAll(() => project.remove())

  test('its lines install, one after another', async () => {
    expect(installs.length).toBeGreaterThan(1)
    const words = installs.map((line) =>
      line
        .replace(
          /\S+\/(petstore-catalogue-petstore-[\d.]+\.tgz)/,
          path.join(path.dirname(tarball), '$1'),
        )
        .split(' ')
        .slice(2),
    )
    expect(words.flat()).toContain(tarball)
    for (const line of words) await project.install(...line)
  }, 120_000)

  test('its snippets compile', async () => {
    expect(snippets.length).toBeGreaterThan(1)
    const names = snippets.map((_, index) => `snippet-${index}.ts`)
    snippets.forEach((snippet, index) => {
      project.write(`${names[index]}`, snippet)
    })
    // Declarations of others need others still, such as those of React.
    expect(await project.compile(names, { skipLibCheck: true })).toEqual([])
  })

  const standIn = snippets.find((text) => text.includes('/testing'))
  if (standIn)
    test('its stand-in holds what it says', async () => {
      project.write('testing.ts', `${standIn}\nexport { pets }\n`)
      const { pets } = await import(pathToFileURL(path.join(project.folder, 'testing.ts')).href)
      expect(pets).toEqual([
        { id: 1n, name: 'Rex', categoryId: 3n, status: 'available' },
        { id: 2n, name: 'Bella', categoryId: 1n, status: 'sold' },
      ])
    })

  test('its first snippet gives two pages of one status', async () => {
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
      .replace('https://pets.example', service.origin)
      .replace('petstore_…', service.key)
    project.write('first.ts', `${snippet}\nexport { more, pets }\n`)
    const { pets, more } = await import(pathToFileURL(path.join(project.folder, 'first.ts')).href)
    const seen = [...pets, ...more]
    expect([pets.length, more.length]).toEqual([50, 15])
    expect(new Set(seen.map(({ id }) => id)).size).toBe(65)
    expect(new Set(seen.map(({ status }) => status))).toEqual(new Set(['available']))
  })
})
