/** The code of docs/clients.md for generated clients and exact ids, run unchanged in new projects. */
import { cpSync, readFileSync } from 'node:fs'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import path from 'node:path'
import { afterAll, expect } from 'vitest'
import type { Project } from '../support/client-package.ts'
import { blocksOf, filesIn, packagesIn } from '../support/documents.ts'
import { serviceForFile } from '../support/service.ts'
import { npmTrial, runIn, shell } from './trial.ts'

const service = await serviceForFile()
await service.sql('insert into pets (id, name, category_id, status) values (?, ?, ?, ?)', [
  9007199254740993n,
  'Far',
  2n ** 63n - 1n,
  'available',
])
// Like a proxy that compresses: responses have no Content-Length, which some clients use.
const proxy = createServer((req, res) => {
  const { method, headers, url } = req
  const upstream = request(`${service.origin}${url}`, { method, headers }, (answer) => {
    const { 'content-length': _, ...rest } = answer.headers
    res.writeHead(answer.statusCode ?? 502, rest)
    answer.pipe(res)
  })
  req.pipe(upstream)
})
await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
afterAll(() => proxy.close())
const proxied = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}` // the address of a TCP server

const DOCUMENT = 'docs/clients.md'
const [GENERATED, EXACT, OPENAPI_FETCH, HEY_API, END] = [
  '## Generated REST clients\n',
  '## Exact ids in JavaScript\n',
  '### openapi-typescript with openapi-fetch\n',
  '### @hey-api/openapi-ts\n',
  '## TypeScript frontends\n',
]

/** Runs the commands of the document in a project, without the installation of its packages. */
async function runCommands(project: Project, from: string, to: string): Promise<void> {
  const block = blocksOf(DOCUMENT, from, to).find(({ language }) => language === 'sh')
  const commands = `${block?.code.replaceAll('http://localhost:3000', service.origin)}`
  await shell(project, commands.replaceAll(/^npm install .*\n/gm, ''))
}

for (const [name, from, to, generator] of [
  ['openapi-fetch', OPENAPI_FETCH, HEY_API, 'types.mjs'],
  ['@hey-api/openapi-ts', HEY_API, END, 'openapi-ts.config.ts'],
] as const) {
  const blocks = blocksOf(DOCUMENT, from, to)
  npmTrial(`${name}, exact ids`, [name, ...packagesIn(blocks)], async (project) => {
    const written = { ...filesIn(blocksOf(DOCUMENT, EXACT, OPENAPI_FETCH)), ...filesIn(blocks) }
    expect(Object.keys(written)).toEqual(['exact.ts', generator, 'client.ts'])
    for (const [file, code] of Object.entries(written)) {
      expect(code.includes('http://localhost:3000'), file).toBe(file !== 'exact.ts')
      const ours = code
        .replaceAll('http://localhost:3000', service.origin)
        .replaceAll('petstore_…', service.key)
      project.write(file, ours)
    }
    const consumer = `projects/${name.replaceAll(/^@|\/.*/g, '')}.ts`
    cpSync(path.join(import.meta.dirname, consumer), path.join(project.folder, 'consumer.ts'))
    // Before the commands: a generator reads in it how modules are found.
    const compilerOptions = {
      target: 'esnext',
      module: 'nodenext',
      types: ['node'],
      typeRoots: [path.resolve('node_modules/@types')],
      outDir: 'out',
      strict: true,
      noUncheckedIndexedAccess: true,
      skipLibCheck: true,
    }
    const settings = { compilerOptions, include: ['*.ts'], exclude: ['openapi-ts.config.ts'] }
    project.write('tsconfig.json', JSON.stringify(settings))
    await runCommands(project, from, to)
    await runIn(project, 'node_modules/typescript/bin/tsc')

    const compiled = readFileSync(path.join(project.folder, 'out/client.js'), 'utf8')
    for (const origin of [service.origin, proxied]) {
      project.write('out/client.js', compiled.replaceAll(service.origin, origin))
      const output = await runIn(project, 'out/consumer.js', `${origin}/v1`, service.key)
      expect(output).toBe('exact\n')
    }
    return 'compiles and runs with the code of docs/clients.md; without it, ids are rounded'
  })
}

npmTrial('openapi-typescript, by npx', ['openapi-typescript'], async (project) => {
  await runCommands(project, GENERATED, EXACT)
  expect(readFileSync(path.join(project.folder, 'petstore.d.ts'), 'utf8')).toContain('listPets')
  return 'writes the types by the command of docs/clients.md'
})
