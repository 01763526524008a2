/** The layers of the source: imports go downward only, and some dependencies are forbidden. */
import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'

const root = path.join(import.meta.dirname, '../..')
const files = globSync(['src/**/*.ts', 'db/**/*.ts', 'client/**/*.ts', 'docs-page/**/*.ts'], {
  cwd: root,
  exclude: ['client/dist/**'],
})
const example = globSync('test/visits/**/*.ts', { cwd: root })

/** The modules that a file imports, types included: own modules by path, packages by name. */
function importsOf(file: string): string[] {
  const text = readFileSync(path.join(root, file), 'utf8')
  const names = [
    ...text.matchAll(/^(?:import|export) [^;]*?from '([^']+)'/gms),
    ...text.matchAll(/\bimport\('([^']+)'\)/g),
  ].map(([, name]) => `${name}`)
  return names.map((name) => (name.startsWith('.') ? path.join(path.dirname(file), name) : name))
}
const imports = new Map(files.map((file) => [file, importsOf(file)]))
const importsOfAll = new Map([
  ...imports,
  ...example.map((file) => [file, importsOf(file)] as const),
])

/** What a file loads, with all that this loads in turn: neither types, nor what it imports later. */
function loadedBy(file: string, loaded = new Set<string>()): Set<string> {
  if (loaded.has(file)) return loaded
  loaded.add(file)
  if (!imports.has(file)) return loaded
  const text = readFileSync(path.join(root, file), 'utf8')
  for (const [, name = ''] of text.matchAll(/^(?:import|export) (?!type)[^;]*?from '([^']+)'/gms))
    loadedBy(name.startsWith('.') ? path.join(path.dirname(file), name) : name, loaded)
  return loaded
}

/** The imports that match `forbidden`, in files that match `places`. */
function violations(places: RegExp, forbidden: RegExp): string[] {
  return [...importsOfAll]
    .filter(([file]) => places.test(file))
    .flatMap(([file, names]) => names.map((name) => `${file} → ${name}`))
    .filter((line) => forbidden.test(line.split(' → ')[1] ?? ''))
}

test('imports have no cycles', () => {
  const done = new Set<string>()
  const visit = (file: string, above: string[]): void => {
    const cycle = above.includes(file) ? [...above.slice(above.indexOf(file)), file] : []
    expect(cycle.join(' → ')).toBe('')
    if (done.has(file)) return
    for (const name of imports.get(file) ?? []) if (imports.has(name)) visit(name, [...above, file])
    done.add(file)
  }
  for (const file of files) visit(file, [])
})

/** The folders from top to bottom: a folder imports only folders below it. */
const layers = [
  'client/src',
  'client/src/memory',
  'src', // main.ts
  'src/cli',
  'src/petstore',
  'src/petstore/*',
  'src/process',
  'src/surface/rest/openapi',
  'src/surface/rest',
  'src/surface/trpc',
  'src/surface',
  'docs-page/src',
  'src/idempotency',
  'src/procedure',
  'src/observe',
  'src/http',
  'src/errors',
  'src/keys',
  'src/wire',
  'src/config',
  'db/plans',
  'db',
  'db/engines/mysql',
  'db/engines/sqlite',
]

/** Allowed upward imports, each with its reason. */
const upward = [
  // The face hands on what the rest of the service needs of them.
  /^db\/index\.ts → db\/plans\//,
  // The engines use modules of the layer that loads them.
  /^db\/engines\/\S+ → db\/[a-z-]+\.ts$/,
]

test('imports go downward', () => {
  const layerOf = (file: string) =>
    layers.findIndex((layer) => path.matchesGlob(path.dirname(file), layer))
  const wrong = [...imports].flatMap(([file, names]) =>
    names
      .filter((name) => imports.has(name) && path.dirname(name) !== path.dirname(file))
      .filter((name) => layerOf(name) < layerOf(file))
      .map((name) => `${file} → ${name}`)
      .filter((line) => !upward.some((allowed) => allowed.test(line))),
  )
  expect(wrong).toEqual([])
})

/** What runs in browsers, in the client's stand-in, and what reads DATABASE_URL before a database is opened. */
const OF_LIGHT = [
  'client/src/memory/(handlers|table).ts',
  'src/(errors/problem|procedure/procedure).ts',
  'src/(config/config|process/programs|process/start-text).ts',
]

test('db/index.ts, and what reads DATABASE_URL, load no engine', () => {
  const drivers = /^(db\/(engines|backup)|mysql2|node:sqlite)/
  for (const file of ['db/index.ts', 'db/errors.ts', 'db/deadline.ts', 'db/url.ts'])
    expect(
      [...loadedBy(file)].filter((name) => drivers.test(name)),
      file,
    ).toEqual([])
  for (const file of ['db/errors.ts', 'db/deadline.ts', 'db/url.ts'])
    expect([...loadedBy(file)], file).not.toContain('kysely')
})

test.each<[string, RegExp, RegExp]>([
  ['db imports nothing of the service', /^db\//, /^(src|client)\/|express|@trpc/],
  [
    'a migration imports nothing that waits until the migrations are read',
    /^(db|test\/visits)\/migrations\//,
    /^(?!kysely$|db\/(columns|statement)\.ts$)/,
  ],
  [
    'the service imports db/index.ts alone, but for the exceptions below',
    /^(src|client|test\/visits)\/(?!cli\/(backup|restore)\.ts)/,
    /^db\/(?!index|errors|deadline|url|columns)/,
  ],
  [
    'only what runs in browsers, or before a database is opened, imports other files of db/',
    new RegExp(`^(?!db/|test/|${OF_LIGHT.join('$|')}$)`),
    /^db\/(errors|deadline|url)\.ts/,
  ],
  ['only migrations have columns.ts', /^(?!db\/|test\/visits\/migrations\/)/, /^db\/columns/],
  [
    'src/http imports neither surfaces nor the database',
    /^src\/http\//,
    /^src\/surface|^db\/|kysely/,
  ],
  [
    'surfaces do not import the database',
    /^src\/surface\/(rest|trpc)\//,
    /^db\/|kysely|mysql2|sqlite/,
  ],
  [
    'the service reaches Idempotency-Keys from its start and its document alone',
    /^src\/(?!idempotency|process|surface\/rest\/openapi)/,
    /^src\/idempotency/,
  ],
  ['REST does not import tRPC', /^src\/surface\/rest\//, /^src\/surface\/trpc/],
  [
    'the docs page imports nothing of the service',
    /^docs-page\//,
    /^(src|db|client)\/|express|@trpc/,
  ],
  ['stores do not import surfaces', /\/store\.ts$/, /express|@trpc|^src\/(surface|http)/],
  [
    'the client imports nothing of the service but the encoding',
    /^client\/src\/(?!interface|testing|memory)/,
    /^(src(?!\/wire)|db)\/|express|kysely|^client\/src\/(testing|memory)|msw/,
  ],
  [
    'the stand-in imports neither server nor database',
    /^client\/src\/(testing|memory)/,
    /^src\/(http|surface\/(?!trpc\/(functions|run)\.)|process|cli|config|main)|express|kysely|mysql2|^node:/,
  ],
])('%s (%#)', (_, places, forbidden) => {
  expect(files.some((file) => places.test(file))).toBe(true)
  expect(violations(places, forbidden)).toEqual([])
})

test('db names no table of the service: migrations and stores do', () => {
  const tables = /\b(pets|api_keys|idempotency_keys)\b/
  const code = (file: string) =>
    readFileSync(path.join(root, file), 'utf8').replaceAll(/\/\*.*?\*\/|(?<!:)\/\/[^\n]*/gs, '')
  const ofDb = files.filter((file) => /^db\/(?!migrations\/)/.test(file))
  expect(ofDb.filter((file) => tables.test(code(file)))).toEqual([])
})

test('only src/config/environment.ts reads the environment', () => {
  const readers = files.filter((file) =>
    /process\.env|loadEnvFile/.test(readFileSync(path.join(root, file), 'utf8')),
  )
  expect(readers).toEqual(['src/config/environment.ts'])
})
