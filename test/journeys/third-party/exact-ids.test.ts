/** The code of docs/clients.md for exact ids in generated clients runs unchanged. */
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, request, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import path from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { blocksOf, filesIn } from '../../support/documents.ts'
import { type Service, startService } from '../../support/service.ts'
import { INSTALLATION, installed } from './installed.ts'

const run = promisify(execFile)
const cwd = import.meta.dirname

let service: Service
let proxy: Server
let proxied: string
beforeAll(installed, INSTALLATION)
beforeAll(async () => {
  service = await startService()
  await service.sql('insert into pets (id, name, category_id, status) values (?, ?, ?, ?)', [
    9007199254740993n,
    'Far',
    2n ** 63n - 1n,
    'available',
  ])
  // Like a proxy that compresses: responses have no Content-Length, which some clients use.
  proxy = createServer((req, res) => {
    const { method, headers, url } = req
    const upstream = request(`${service.origin}${url}`, { method, headers }, (answer) => {
      const { 'content-length': _, ...rest } = answer.headers
      res.writeHead(answer.statusCode ?? 502, rest)
      answer.pipe(res)
    })
    req.pipe(upstream)
  })
  proxy.listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  proxied = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}` // the address of a TCP server
})
afterAll(async () => {
  proxy.close()
  await service.stop()
})

const document = 'docs/clients.md'
const [EXACT, OPENAPI_FETCH, HEY_API, END] = [
  '## Exact ids in JavaScript\n',
  '### openapi-typescript with openapi-fetch\n',
  '### @hey-api/openapi-ts\n',
  '## TypeScript frontends\n',
]

test.each([
  ['openapi-fetch', OPENAPI_FETCH, HEY_API, ['types.mjs']],
  ['hey-api', HEY_API, END, ['openapi-ts.config.ts']],
])(
  'with %s, ids are exact with the code of the document and rounded without it',
  async (name, from, to, files) => {
    const folder = path.join(cwd, 'generated', name)
    rmSync(folder, { recursive: true, force: true })
    mkdirSync(folder, { recursive: true })
    const blocks = blocksOf(document, from, to)
    const written = {
      ...filesIn(blocksOf(document, EXACT, OPENAPI_FETCH)),
      ...filesIn(blocks),
    }
    expect(Object.keys(written)).toEqual(['exact.ts', ...files, 'client.ts'])
    for (const [file, code] of Object.entries(written)) {
      expect(code.includes('http://localhost:3000'), file).toBe(file !== 'exact.ts')
      const ours = code
        .replaceAll('http://localhost:3000', service.origin)
        .replaceAll('petstore_…', service.key)
      writeFileSync(path.join(folder, file), ours)
    }
    cpSync(path.join(cwd, 'exact-ids', `${name}.ts`), path.join(folder, 'consumer.ts'))

    const commands =
      blocks
        .find(({ language }) => language === 'sh')
        ?.code.trim()
        .split('\n') ?? []
    const [installation = '', ...rest] = commands
    expectInstalled(installation)
    for (const command of rest) await run('sh', ['-c', command], { cwd: folder })

    const compilerOptions = {
      target: 'esnext',
      module: 'nodenext',
      types: ['node'],
      typeRoots: ['../../../../../node_modules/@types'],
      outDir: 'out',
      strict: true,
      noUncheckedIndexedAccess: true,
      skipLibCheck: true,
    }
    const project = { compilerOptions, include: ['*.ts'], exclude: ['openapi-ts.config.ts'] }
    writeFileSync(path.join(folder, 'tsconfig.json'), JSON.stringify(project))
    await run(path.join(cwd, 'node_modules/.bin/tsc'), ['--project', folder], { cwd: folder })

    const client = path.join(folder, 'out/client.js')
    const compiled = readFileSync(client, 'utf8')
    for (const origin of [service.origin, proxied]) {
      writeFileSync(client, compiled.replaceAll(service.origin, origin))
      const env = { ...process.env, BASE_URL: `${origin}/v1`, API_KEY: service.key }
      const program = path.join(folder, 'out/consumer.js')
      expect((await run(process.execPath, [program], { env })).stdout).toBe('exact\n')
    }
  },
)

test('the command for a generated client generates its types', async () => {
  const folder = path.join(cwd, 'generated/first')
  mkdirSync(folder, { recursive: true })
  const [{ code } = { code: '' }] = blocksOf(document, '## Generated REST clients\n', EXACT)
  const command = code.replaceAll('http://localhost:3000', service.origin)
  await run('sh', ['-c', command], { cwd: folder })
  expect(readFileSync(path.join(folder, 'petstore.d.ts'), 'utf8')).toContain('listPets')
})

/** Expects that the packages of an `npm install` are installed here, in the same versions. */
function expectInstalled(command: string): void {
  const words = command.split(/\s+/)
  const packages = words.filter((word) => !['npm', 'install', '--save-dev', '&&'].includes(word))
  expect(packages.length, command).toBeGreaterThan(1)
  for (const wanted of packages) {
    const [name = '', major] = wanted.split(/(?<=.)@/)
    const manifest = path.join(cwd, 'node_modules', name, 'package.json')
    const { version } = JSON.parse(readFileSync(manifest, 'utf8'))
    if (major !== undefined) expect(version.split('.')[0], wanted).toBe(major)
  }
}
