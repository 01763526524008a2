/** The container image and its first key, without Docker: the commands that they run. */
import { execFileSync, spawnSync } from 'node:child_process'
import { cpSync, symlinkSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { expect, test, vi } from 'vitest'
import { newFolder } from '../support/database.ts'
import { compose, readRoot, said } from '../support/image.ts'
import { freePort } from '../support/mysql.ts'
import { programs, runProgram } from '../support/process.ts'
import { openSql } from '../support/sql.ts'
import { withHooks } from '../support/watched.ts'

const root = path.join(import.meta.dirname, '../..')

/** Fails the import of development packages: the image is built without them. */
const development = Object.keys(JSON.parse(readRoot('package.json')).devDependencies)
const production = withHooks(
  `
    const isForeign = context.parentURL?.includes('/node_modules/')
    if (!isForeign && names.some((name) => specifier === name || specifier.startsWith(name + '/')))
      throw new Error(specifier + ' is not in the image')
    return next(specifier, context)`,
  `const names = ${JSON.stringify(development)}`,
)

test('the files of the image suffice in any folder: to start, serve, pass the health check and stop', async () => {
  const folder = path.join(newFolder(), 'c# 50%25 what?') // special in URLs
  for (const text of said(/COPY(?! --from)/)) {
    const sources = text.split(' ')
    const target = `${sources.pop()}`
    for (const source of sources) {
      const place = target === './' ? source : target
      cpSync(path.join(root, source), path.join(folder, place), { recursive: true })
    }
  }
  symlinkSync(path.join(root, 'node_modules'), path.join(folder, 'node_modules'))
  const [start = '', ...options] = JSON.parse(said(/CMD/).join())
  expect(options).toEqual([])
  const port = await freePort()
  const variables = {
    PORT: String(port),
    NODE_COMPILE_CACHE: path.join(folder, 'cache'),
    NODE_ENV: 'production',
    ...production,
  }
  // In place of the program: its command, which finds Node and the program by itself.
  const starter = ['sh', '-c', 'exec "$0"', start]
  const program = runProgram(programs.server, variables, [], folder, starter)
  try {
    await vi.waitFor(() => expect(program.stdout).toContain('Petstore is running'), 30_000)
    expect(program.stdout).toContain('SQLite, embedded: data/petstore.db')
    expect(program.stdout, 'only what the image has').not.toContain('npm run')
    // Files that are loaded on the first request are there, too.
    for (const file of ['/docs/', '/docs/docs.js', '/v1/openapi.json', '/readyz']) {
      expect([file, (await fetch(`http://127.0.0.1:${port}${file}`)).status]).toEqual([file, 200])
    }
    const [, check = ''] = /CMD (\[.+\])/.exec(said(/HEALTHCHECK/).join()) ?? []
    const [command, ...checking] = JSON.parse(check)
    // A proxy for other requests is not asked: it would report itself. OpenTelemetry is not loaded.
    writeFileSync(path.join(folder, '.env'), `PORT=${port}`)
    const env = {
      ...{ NODE_USE_ENV_PROXY: '1', HTTP_PROXY: 'http://127.0.0.1:9' },
      ...{ NODE_OPTIONS: '--import=./missing.mjs', PATH: `${path.dirname(process.execPath)}:/bin` },
    }
    const checkHealth = () =>
      spawnSync(command, checking, { cwd: folder, env, stdio: 'ignore' }).status
    expect(checkHealth()).toBe(0)
    expect(await program.end('SIGTERM')).toBe(0)
    expect(checkHealth()).not.toBe(0)
  } finally {
    await program.end()
  }
})

test('compose creates a first key only when there is none', async () => {
  const folder = newFolder()
  const script = /^ {6}- \|\n((?: {8}.+\n)+)/m.exec(compose)?.[1]?.replaceAll('$$', '$')
  const { PATH = '' } = process.env
  const run = (DATABASE_URL = `sqlite:${folder}/petstore.db?create`) =>
    execFileSync('sh', ['-c', String(script)], {
      cwd: root,
      env: { PATH: `${path.dirname(process.execPath)}:${PATH}`, DATABASE_URL },
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    })
  expect(() => run(`sqlite:${folder}/missing.db`), 'keys list fails').toThrow(/^Command failed/)
  expect(run()).toMatch(/^petstore_[\w-]{43}\n$/)
  expect(run()).toBe('')
  await using sql = await openSql(`sqlite:${folder}/petstore.db`)
  expect(await sql('select name from api_keys')).toEqual([{ name: 'first key' }])
})
