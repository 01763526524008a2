/** Doc comments in the type declarations of the client, for a resource that differs from pets. */
import { spawnSync } from 'node:child_process'
import { readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { z } from 'zod'
import { documented, documentedClient } from '../../client/documentation.ts'
import { appRouter } from '../../src/petstore/resources.ts'
import { router } from '../../src/procedure/procedure.ts'
import { newFolder } from '../support/database.ts'
import { described, procedure } from '../support/procedures.ts'
import { nestedRouter } from './nested.ts'

const declaration = 'export type PetstoreClient = TRPCClient<AppRouter>;'
const root = path.join(import.meta.dirname, '../..')
const folder = newFolder(afterAll)

/** Compiles a file with the options of this repository, and throws the errors. */
function compile(file: string, compilerOptions: object): void {
  const project = {
    extends: `${root}/tsconfig.json`,
    compilerOptions: { typeRoots: [`${root}/node_modules/@types`], ...compilerOptions },
    files: [file],
    include: [],
  }
  writeFileSync(path.join(folder, 'tsconfig.json'), JSON.stringify(project))
  const tsc = path.join(root, 'node_modules/.bin/tsc')
  const { status, stdout } = spawnSync(tsc, ['-p', folder], { encoding: 'utf8' })
  if (status !== 0) throw new Error(stdout)
}

/** The type declaration of the nested router of the visits, as the compiler emits it for a client. */
function declared(): string {
  const emit = { noEmit: false, declaration: true, emitDeclarationOnly: true }
  compile(`${root}/test/client/declared.ts`, { ...emit, rootDir: root, outDir: `${folder}/out` })
  return readFileSync(path.join(folder, 'out/test/client/declared.d.ts'), 'utf8')
}

test('a type of the service is refused, with its place', () => {
  const lines = [
    '    team: TRPCBuiltRouter<{',
    '        getRole: TRPCQueryProcedure<{',
    '            input: import("@trpc/server").Any;',
    '            output: import("../../src/roles.ts").Role[];',
  ]
  expect(() => documented(lines.join('\n'), router({}))).toThrow(
    'team.getRole.output has the type import("../../src/roles.ts").Role:',
  )
})

test('each declaration gets its doc comment, and the types do not change', () => {
  const plain = declared()
  expect(new Set(plain.match(/import\(.*?\)/g))).toEqual(new Set(['import("@trpc/server")']))
  const text = documented(plain, nestedRouter)
  const compact = text.replaceAll(/\s+/g, ' ')
  for (const line of [
    '/** * Get a visit. * * Returns one visit. */ getVisit: ',
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
  expect(() => documented(plain.replaceAll('visitId', 'visit'), nestedRouter)).toThrow('visitId')

  const ofClient = [
    "import type { TRPCClient } from '@trpc/client'",
    "import type { declaredRouter } from './router.mjs'",
    'type AppRouter = typeof declaredRouter',
    declaration,
  ]
  const uses = [
    "import type { PetstoreClient } from './client.mjs'",
    'declare const petstore: PetstoreClient',
    "const { getVisit } = petstore.shop['day-time'].diary",
    'export const id: bigint = (await getVisit.query({ ownerId: 1, visitId: 2n })).id',
    'export const days: Map<bigint, Date> = await petstore.days.query()',
    '// @ts-expect-error the id of the visit is missing',
    'export const wrong = getVisit.query({ ownerId: 1 })',
  ]
  symlinkSync(`${root}/node_modules`, path.join(folder, 'node_modules'))
  const files = {
    'router.d.mts': text,
    'client.d.mts': documentedClient(ofClient.join('\n'), nestedRouter),
    'uses.mts': uses.join('\n'),
  }
  for (const [name, code] of Object.entries(files)) writeFileSync(path.join(folder, name), code)
  expect(files['client.d.mts']).toMatch(/\n {16}\/\*\*\n {17}\* Get a visit\.\n/)
  compile('uses.mts', { lib: ['esnext', 'dom'], skipLibCheck: false })
}, 60_000)

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
