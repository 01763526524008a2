/** The house as its imports draw it: downward only, and each room knows what it must, and no more. */
import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'

const root = path.join(import.meta.dirname, '../..')
const files = globSync(['src/**/*.ts', 'db/**/*.ts', 'client/**/*.ts', 'docs-page/**/*.ts'], {
  cwd: root,
  exclude: ['client/dist/**'],
})

/** The modules that a file imports, types included: ours by their path, others by their name. */
function importsOf(file: string): string[] {
  const text = readFileSync(path.join(root, file), 'utf8')
  const names = [
    ...text.matchAll(/^(?:import|export) [^;]*?from '([^']+)'/gms),
    ...text.matchAll(/\bimport\('([^']+)'\)/g),
  ].map(([, name]) => `${name}`)
  return names.map((name) => (name.startsWith('.') ? path.join(path.dirname(file), name) : name))
}
const imports = new Map(files.map((file) => [file, importsOf(file)]))

/** Which files below one of `places` import something that `forbidden` matches. */
function trespasses(places: RegExp, forbidden: RegExp): string[] {
  return files
    .filter((file) => places.test(file))
    .flatMap((file) => (imports.get(file) ?? []).map((name) => `${file} → ${name}`))
    .filter((line) => forbidden.test(line.split(' → ')[1] ?? ''))
}

test('no file imports itself by way of others', () => {
  const done = new Set<string>()
  const visit = (file: string, above: string[]): void => {
    const circle = above.includes(file) ? [...above.slice(above.indexOf(file)), file] : []
    expect(circle.join(' → ')).toBe('')
    if (done.has(file)) return
    for (const name of imports.get(file) ?? []) if (imports.has(name)) visit(name, [...above, file])
    done.add(file)
  }
  for (const file of files) visit(file, [])
})

/** The rooms from the roof to the ground: a room imports only rooms below it. */
const rooms = [
  'client/src',
  'src', // main.ts
  'src/cli',
  'src/petstore',
  'src/petstore/pets',
  'src/process',
  'src/surface/rest',
  'src/surface/trpc',
  'src/surface',
  'src/procedure',
  'src/idempotency',
  'src/http/server',
  'src/http',
  'src/errors',
  'src/observe',
  'src/keys',
  'src/config',
  'db',
  'db/engines',
]

/** Imports that go upward, each with the reason why it may. */
const upward = [
  // The one file that client and service must agree on.
  /^src\/\S+ → client\/src\/encoding\.ts$/,
  // The engines are loaded by what is made of them.
  /^db\/engines\/\S+ → db\/[a-z-]+\.ts$/,
]

test('imports run downward', () => {
  const floorOf = (file: string) => rooms.indexOf(path.dirname(file))
  const wrong = [...imports].flatMap(([file, names]) =>
    names
      .filter((name) => imports.has(name) && path.dirname(name) !== path.dirname(file))
      .filter((name) => floorOf(name) < floorOf(file))
      .map((name) => `${file} → ${name}`)
      .filter((line) => !upward.some((allowed) => allowed.test(line))),
  )
  expect(wrong).toEqual([])
})

test.each<[string, RegExp, RegExp]>([
  ['the database knows nothing of the service', /^db\//, /^(src|client)\/|express|@trpc/],
  ['the chassis knows nothing of the shop', /^(db|src\/(?!petstore|cli|main))/, /^src\/petstore/],
  ['http knows neither surface nor database', /^src\/http\//, /^src\/surface|^db\/|kysely/],
  ['surfaces know no database', /^src\/surface\/(rest|trpc)\//, /^db\/|kysely|mysql2|sqlite/],
  ['the surfaces do not know each other', /^src\/surface\/rest\//, /^src\/surface\/trpc/],
  ['the surfaces do not know each other', /^src\/surface\/trpc\//, /^src\/surface\/rest/],
  [
    'the docs page knows a document and nothing else',
    /^docs-page\//,
    /^(src|db|client)\/|express|@trpc/,
  ],
  ['stores know no surface', /\/store\.ts$/, /express|@trpc|^src\/(surface|http)/],
  [
    'a client brings nothing of the service',
    /^client\/src\/(?!interface|testing|memory)/,
    /^(src|db)\/|express|kysely|^client\/src\/(testing|memory)|msw/,
  ],
  [
    'the stand-in in tests brings no server and no database',
    /^client\/src\/(testing|memory)/,
    /^src\/(http|surface|process|cli|config|main)|express|kysely|mysql2|^node:/,
  ],
])('%s (%#)', (_, places, forbidden) => {
  expect(files.some((file) => places.test(file))).toBe(true)
  expect(trespasses(places, forbidden)).toEqual([])
})

test('only the configuration reads the environment', () => {
  const readers = files.filter((file) =>
    /process\.env|loadEnvFile/.test(readFileSync(path.join(root, file), 'utf8')),
  )
  expect(readers).toEqual(['src/config/config.ts'])
})

test('every procedure that a resource has is in the router', async () => {
  const load = (file: string): Promise<Record<string, unknown>> => import(path.join(root, file))
  const { appRouter } = (await load('src/petstore/router.ts')) as {
    appRouter: { _def: { procedures: Record<string, unknown> } }
  }
  const served = Object.values(appRouter._def.procedures)
  const written = files.filter((file) => /^src\/petstore\/[^/]+\/procedures\.ts$/.test(file))
  expect(written).not.toEqual([])
  for (const file of written) {
    for (const [name, procedure] of Object.entries(await load(file))) {
      expect(served.includes(procedure), `${name} of ${file} is in router.ts`).toBe(true)
    }
  }
})
