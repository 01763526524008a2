/** The packed client in the projects of others: Jest, pnpm, yarn, Vite, and bundlers that read package.json. */
import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { expect, inject, onTestFinished } from 'vitest'
import { emptyProject, run } from '../support/client-package.ts'
import { blocksOf } from '../support/documents.ts'
import { npmTrial, runIn, trial } from './trial.ts'

const client = inject('clientPackage')
const readme = path.resolve(import.meta.dirname, '../../client/README.md')
const samples = blocksOf(readme).map(({ code }) => code)
/** The only sample of client/README.md with this text. */
function sample(text: string): string {
  const found = samples.filter((code) => code.includes(text))
  expect(found, text).toHaveLength(1)
  return `${found[0]}`
}

const JEST = ['jest@30', 'jest-environment-jsdom@30', 'jest-fixed-jsdom', '@babel/preset-env@7']
npmTrial('Jest with jsdom', [...JEST, 'msw@2', client], async (project) => {
  project.write('package.json', '{ "private": true }')
  project.write('jest.config.js', sample('// jest.config.js'))
  const lines = sample('setupServer(').replace('onUnhandledFrame', 'onUnhandledRequest').split('\n')
  const [imports, body] = [true, false].map((is) =>
    lines.filter((line) => line.startsWith('import ') === is).join('\n'),
  )
  const timers = /jest\.useFakeTimers\(.*\)/.exec(readFileSync(readme, 'utf8'))?.[0]
  const check =
    "expect(pets.map(({ id, name }) => [id, name])).toEqual([[1n, 'Rex'], [2n, 'Bella']])"
  project.write(
    'pets.test.js',
    `${imports}\ntest('pets', async () => {\n${timers}\n${body}\n${check}\n})`,
  )
  const { code, output } = await run(process.execPath, ['node_modules/.bin/jest'], project.folder)
  expect(code, output).toBe(0)
  return "README's settings, stand-in and fake timers"
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
  expect(readdirSync(path.join(project.folder, 'dist/assets'))).toHaveLength(1)
  return 'builds'
})
