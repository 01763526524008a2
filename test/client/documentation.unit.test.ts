/** Doc comments in the type declarations of the client, for a resource that differs from pets. */
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { z } from 'zod'
import { documented, documentedClient } from '../../client/documentation.ts'
import { appRouter } from '../../src/petstore/resources.ts'
import { router } from '../../src/procedure/procedure.ts'
import { newFolder } from '../support/database.ts'
import { described, procedure } from '../support/procedures.ts'
import { visitRouter } from '../visits/router.ts'

const root = path.join(import.meta.dirname, '../..')
const folder = newFolder(afterAll)

/** The type declaration of the router of the visits, as the compiler emits it for a client. */
function declared(): string {
  const project = {
    extends: `${root}/tsconfig.json`,
    compilerOptions: {
      noEmit: false,
      declaration: true,
      emitDeclarationOnly: true,
      rootDir: root,
      outDir: `${folder}/out`,
      typeRoots: [`${root}/node_modules/@types`],
    },
    files: [`${root}/test/client/declared.ts`],
    include: [],
  }
  writeFileSync(path.join(folder, 'tsconfig.json'), JSON.stringify(project))
  execFileSync(path.join(root, 'node_modules/.bin/tsc'), ['-p', folder], { stdio: 'pipe' })
  return readFileSync(path.join(folder, 'out/test/client/declared.d.ts'), 'utf8')
}

test('each declaration gets its doc comment, and the types do not change', () => {
  const plain = declared()
  const text = documented(plain, visitRouter)
  const compact = text.replaceAll(/\s+/g, ' ')
  for (const line of [
    '/** * A call. * * A call. */ listVisits: ',
    '/** * Whether it comes before others. * @default false */ urgent?: boolean | undefined;',
    '/** * When it is. */ at: Date;',
    '/** * Identifies the visit. */ id: bigint;',
    '/** * Maximum number of visits returned. From 1 to 100. * @default 20 */ limit?: ',
  ]) {
    expect(compact).toContain(line)
  }
  const repeatable =
    '`{ context: { idempotencyKey } }` a call can be repeated safely: the repetition'
  expect([...new Set(compact.match(/`\{ context: .*? nothing/g))]).toEqual([
    `${repeatable} adds nothing`,
    `${repeatable} changes nothing`,
  ])
  const comments = /^ *(\/\*\*$| \*.*)\n/gm
  expect(text.replaceAll(comments, '')).toBe(plain.replaceAll(comments, ''))

  // A description without a declaration is an error, not a silent omission.
  expect(() => documented(plain.replaceAll('visitId', 'visit'), visitRouter)).toThrow('visitId')
}, 60_000)

const declaration = 'export type PetstoreClient = TRPCClient<AppRouter>;'

test('a comment names the day on which an operation ends', () => {
  expect(documentedClient(declaration, appRouter)).toContain('It ends on 5 December 2030')
})

test('a description does not end its comment, and stays as it is otherwise', () => {
  const getAny = procedure
    .meta(described('GET', '/any', { description: 'Accepts */* for $&.', example: '' }))
    .input(z.object({}))
    .output(z.string())
    .query(async () => '')
  const text = documentedClient(declaration, router({ getAny }))
  expect(text).toContain('Accepts *\\/* for $&.')
})
