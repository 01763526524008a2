/** The packed client in the projects of others: Jest, pnpm, yarn, Vite, and bundlers that read package.json. */
import { once } from 'node:events'
import { cpSync, readdirSync, readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import path from 'node:path'
import { gzipSync } from 'node:zlib'
import { expect, inject, onTestFinished } from 'vitest'
import { emptyProject, run } from '../support/client-package.ts'
import { blocksOf, packagesIn } from '../support/documents.ts'
import { startService } from '../support/service.ts'
import { npmTrial, runIn, sample, serve, shell, trial } from './trial.ts'

const client = inject('clientPackage')
const readme = path.resolve(import.meta.dirname, '../../client/README.md')
const text = readFileSync(readme, 'utf8')
/** README's stand-in as a test, under fake timers that are set as README says. */
function standInTest(timers: string): string {
  const lines = sample('setupServer(').split('\n')
  const [imports, body] = [true, false].map((is) =>
    lines.filter((line) => line.startsWith('import ') === is).join('\n'),
  )
  const set = text.slice(text.indexOf(timers)).split('`')[0]
  const check =
    "expect(pets.map(({ id, name }) => [id, name])).toEqual([[1n, 'Rex'], [2n, 'Bella']])"
  return `${imports}\ntest('pets', async () => {\n${set}\n${body}\n${check}\n})`
}

const [, jest = ''] = /`npm install --save-dev (jest-fixed-jsdom .*?)`/.exec(text) ?? []
const JEST = ['jest@30', 'jest-environment-jsdom@30', ...jest.split(' ')]
npmTrial('Jest with jsdom, msw 2', [...JEST, client], async (project) => {
  project.write('package.json', '{ "private": true }')
  project.write('jest.config.js', sample('// jest.config.js'))
  const check = standInTest('jest.useFakeTimers(')
  project.write('pets.test.js', check.replace('onUnhandledFrame', 'onUnhandledRequest'))
  await runIn(project, 'node_modules/.bin/jest')
  return "README's settings, stand-in and fake timers"
})

npmTrial('Vitest with jsdom, msw 3', ['vitest', 'jsdom', 'msw@3', client], async (project) => {
  const check = standInTest('vi.useFakeTimers(')
  project.write('pets.test.js', `import { expect, test, vi } from 'vitest'\n${check}`)
  await runIn(project, 'node_modules/.bin/vitest', 'run', '--environment', 'jsdom')
  return "README's stand-in and fake timers"
})

// The oldest version that the package allows beside it.
npmTrial('msw 2.9.0', ['msw@2.9.0', client], async (project) => {
  const check = standInTest('vi.useFakeTimers(').replace(/^vi\..*$/m, '')
  const own = "import { test } from 'node:test'\nimport { deepEqual } from 'node:assert/strict'\n"
  const expecting = 'const expect = (seen) => ({ toEqual: (wanted) => deepEqual(seen, wanted) })\n'
  const program = `${own}${expecting}${check.replace('onUnhandledFrame', 'onUnhandledRequest')}`
  project.write('pets.test.mjs', program)
  await runIn(project, 'pets.test.mjs')
  const typed = sample('setupServer(').replace('onUnhandledFrame', 'onUnhandledRequest')
  project.write('pets.ts', typed)
  expect(await project.compile(['pets.ts'], { skipLibCheck: true })).toEqual([])
  return "README's stand-in compiles and runs"
})

const query = packagesIn(blocksOf(readme)).filter((name) => name !== 'msw')
npmTrial('TanStack Query', ['@tanstack/react-query', client, ...query, 'msw'], async (project) => {
  const code = sample('useInfiniteQuery(').replace('petstore_…', 'petstore_any')
  project.write('tanstack.ts', `${code}\nexport { queryClient, trpc }\n`)
  project.write('cache.ts', sample('// cache.ts'))
  const persister = sample('createAsyncStoragePersister(').replace('./cache.js', './cache.ts')
  project.write('persister.ts', persister)
  const check = path.join(import.meta.dirname, 'projects/tanstack-query.ts')
  cpSync(check, path.join(project.folder, 'check.ts'))
  const options = { allowImportingTsExtensions: true, skipLibCheck: true }
  expect(await project.compile(['tanstack.ts', 'persister.ts'], options)).toEqual([])
  expect(await runIn(project, 'check.ts')).toBe('as README says\n')
  return "README's options: a 404 is final, 429 and a lost connection are not; bigints and a paused creation persist"
})

/** The configuration with which a library that exports `addRex` is compiled. */
const TSCONFIG = {
  compilerOptions: {
    ...{ target: 'esnext', lib: ['esnext', 'dom'], module: 'nodenext', types: [] },
    ...{ strict: true, declaration: true, outDir: 'out' },
  },
  files: ['rex.ts'],
}

for (const [manager, args] of [
  ['npm', ['install', '--no-audit', '--no-fund', '--prefer-offline']],
  ['pnpm', ['install', '--prefer-offline']],
  ['yarn', ['install', '--prefer-offline', '--no-progress']],
] as const) {
  trial(`${manager}, TypeScript with declaration`, async () => {
    const project = emptyProject()
    onTestFinished(project.remove)
    const dependencies = { '@petstore-catalogue/petstore': `file:${client}` }
    const peers = { '@trpc/client': '^11.0.0', '@trpc/server': '^11.0.0', typescript: '^5.7.0' }
    const manifest = { private: true, type: 'module', dependencies: { ...dependencies, ...peers } }
    project.write('package.json', JSON.stringify(manifest))
    project.write('rex.ts', sample('export function addRex'))
    project.write('tsconfig.json', JSON.stringify(TSCONFIG))
    const words =
      manager === 'npm' ? [] : ['exec', '--yes', '--', manager === 'yarn' ? 'yarn@1' : 'pnpm']
    const installed = await run('npm', [...words, ...args], project.folder)
    expect(installed.code, installed.output).toBe(0)
    await runIn(project, 'node_modules/typescript/bin/tsc')
    expect(readFileSync(path.join(project.folder, 'out/rex.d.ts'), 'utf8')).toContain(
      'Promise<Pet>',
    )
    const resolved = "console.log(require.resolve('@petstore-catalogue/petstore/package.json'))"
    project.write('resolve.cjs', resolved)
    expect(await runIn(project, 'resolve.cjs')).toMatch(/package\.json\n$/)
    const version = (await run('npm', [...words, '--version'], project.folder)).output.trim()
    return { version, result: "README's addRex compiles; package.json is found" }
  })
}

npmTrial('Vite', ['vite', client], async (project) => {
  project.write('index.html', '<script type="module" src="/page.js"></script>')
  const page = `import { createPetstoreClient } from '@petstore-catalogue/petstore/client'
    createPetstoreClient({ url: '/trpc', apiKey: 'petstore_any' }).listPets.query()`
  project.write('page.js', page)
  await runIn(project, 'node_modules/.bin/vite', 'build')
  const assets = path.join(project.folder, 'dist/assets')
  const [script, ...others] = readdirSync(assets).map((name) =>
    readFileSync(path.join(assets, name)),
  )
  expect(others).toEqual([])
  const [size, zipped] = [script, gzipSync(`${script}`)].map((bytes) =>
    Math.round(Number(bytes?.length) / 1000),
  )
  return `builds the client: ${size} kB, ${zipped} kB gzipped`
})

const PAGE = `import { createPetstoreClient, queryKeyHashFn } from '@petstore-catalogue/petstore/client'
  console.log(typeof createPetstoreClient, queryKeyHashFn([7n]))`

// Parcel installs buffer itself unless it must not: devalue asks whether there is a global Buffer.
npmTrial('Parcel', ['parcel', 'buffer', client], async (project) => {
  const [, setting = ''] = /`("@parcel\/resolver-default": .*?)`/.exec(text) ?? []
  project.write('package.json', `{ "private": true, ${setting} }`)
  project.write('index.html', '<script type="module" src="./page.js"></script>')
  project.write('page.js', PAGE)
  const build = ['build', 'index.html', '--no-autoinstall', '--public-url', './']
  await runIn(project, 'node_modules/.bin/parcel', ...build)
  const built = readdirSync(path.join(project.folder, 'dist'))
  const script = built.find((name) => name.endsWith('.js'))
  project.write('dist/package.json', '{ "type": "module" }')
  expect(await runIn(project, `dist/${script}`)).toBe('function [7]\n')
  return "builds the client with README's setting"
})

const ESLINT = ['eslint-plugin-import', 'eslint@9', 'eslint-import-resolver-typescript', client]
npmTrial('eslint-plugin-import', ESLINT, async (project) => {
  const [, settings = ''] = /`(settings: \{ 'import\/resolver'.*?)`/.exec(text) ?? []
  project.write('page.js', PAGE)
  const rules = "rules: { 'import/no-unresolved': 'error', 'import/named': 'error' }"
  const config = `{ plugins: { import: plugin }, ${rules}, ${settings} }`
  const program = `import plugin from 'eslint-plugin-import'\nexport default [${config}]`
  project.write('eslint.config.js', program)
  await runIn(project, 'node_modules/.bin/eslint', 'page.js')
  return "finds the client with README's resolver"
})

const METRO = ['metro', '@react-native/metro-config', '@react-native/babel-preset', 'react-native']
npmTrial("React Native's bundler, Metro", [...METRO, client], async (project) => {
  project.write('package.json', '{ "private": true }')
  const config =
    "module.exports = require('@react-native/metro-config').getDefaultConfig(__dirname)"
  project.write('metro.config.js', config)
  const preset = "module.exports = { presets: ['module:@react-native/babel-preset'] }"
  project.write('babel.config.js', preset)
  project.write('page.js', "export * from '@petstore-catalogue/petstore/client'")
  const args = ['build', 'page.js', '--out', 'bundle.js', '--platform', 'ios']
  await runIn(project, 'node_modules/.bin/metro', ...args)
  expect(readFileSync(path.join(project.folder, 'bundle.js'), 'utf8')).toContain('ForeignResponse')
  return 'bundles the client; it was not run'
})

trial('The example storefront', async () => {
  // The copy, as its README makes it.
  const shop = emptyProject()
  onTestFinished(shop.remove)
  cpSync('examples/storefront', shop.folder, {
    recursive: true,
    filter: (source) => !/^(node_modules|dist|\.env\.local)$/.test(path.basename(source)),
  })
  const guide = readFileSync('examples/storefront/README.md', 'utf8')
  const [, words = ''] = /^npm install (.*)$/m.exec(guide) ?? []
  await shop.install(words.replace(/\S+\.tgz/, client).split(' '))
  await shell(shop, 'npm run build && npm test')
  const service = await startService()
  onTestFinished(service.stop)
  const taken = createServer().listen(5173, 'localhost')
  await once(taken, 'listening').catch(() => {}) // the port is in use in either case
  onTestFinished(() => void taken.close())
  const origins = /http:\/\/localhost:\d+/
  const variables = { PETSTORE_ORIGIN: service.origin }
  const { ready: origin } = await serve(shop, ['npm', 'run', 'dev'], origins, variables)
  expect(origin).not.toContain(':5173')
  expect(await (await fetch(origin)).text()).toContain('/src/main.tsx')
  const list = await fetch(`${origin}/trpc/listPets`)
  expect(await list.text()).toContain('UNAUTHORIZED')
  const { version } = JSON.parse(
    readFileSync(path.join(shop.folder, 'node_modules/vite/package.json'), 'utf8'),
  )
  return {
    version: `Vite ${version}`,
    result: 'a copy builds, is tested, and is served by its dev script',
  }
})
