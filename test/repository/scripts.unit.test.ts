/** The scripts of package.json. */
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import manifest from '../../package.json' with { type: 'json' }
import { newFolder } from '../support/database.ts'
import { readRoot } from '../support/image.ts'

const root = path.join(import.meta.dirname, '../..')

test('storefront:key makes one read-only key for the shop, and no file where it fails', () => {
  const folder = newFolder()
  mkdirSync(path.join(folder, 'examples/storefront'), { recursive: true })
  for (const name of ['bin', 'src']) symlinkSync(path.join(root, name), path.join(folder, name))
  const file = path.join(folder, 'examples/storefront/.env.local')
  const { PATH = '', NODE_COMPILE_CACHE } = process.env
  const run = (DATABASE_URL: string) =>
    execFileSync('sh', ['-c', manifest.scripts['storefront:key']], {
      cwd: folder,
      env: {
        PATH: `${path.dirname(process.execPath)}:${PATH}`,
        NODE_COMPILE_CACHE,
        DATABASE_URL,
      },
      stdio: 'ignore',
    })
  expect(() => run('sqlite:missing.db')).toThrow(/^Command failed/)
  expect(existsSync(file)).toBe(false)
  run('sqlite:pets.db?create')
  const made = readFileSync(file, 'utf8')
  expect(made).toMatch(/^VITE_PETSTORE_KEY=petstore_read_[\w-]{43}\n$/)
  run('sqlite:missing.db')
  expect(readFileSync(file, 'utf8')).toBe(made)
})

test('no option that npm takes for itself makes a key stronger; FILE is where npm is called', () => {
  const folder = newFolder()
  const { PATH, NODE_COMPILE_CACHE } = process.env
  const run = (...words: string[]) =>
    spawnSync('npm', ['--prefix', root, 'run', '--silent', ...words], {
      cwd: folder,
      env: { PATH, NODE_COMPILE_CACHE, DATABASE_URL: `sqlite:${folder}/pets.db?create` },
      encoding: 'utf8',
    })
  for (const [options, line] of [
    [['--read-only', '--expires', '90d'], /^npm took .+ -- .+\n$/],
    [['--if-none'], /^npm took .+ -- .+\n$/],
    [['--key-file=x'], /^npm took .+ -- .+\n$/],
    [['--expires', '90d'], /^create must have .+ -- .+\n$/],
  ] as const) {
    const { stdout, stderr, status } = run('keys', 'create', 'Web shop', ...options)
    expect({ stdout, status }, options.join()).toEqual({ stdout: '', status: 1 })
    expect(stderr).toMatch(line)
  }
  expect(run('keys', 'rotate', '1', '--grace', '0s').stderr).toMatch(/^npm took .+\n$/)
  expect(existsSync(path.join(folder, 'pets.db'))).toBe(false)
  expect(run('keys', '--', 'create', 'Web shop', '--forever').stderr).toContain(
    'pets.db is on stdout, and never ends.',
  )
  expect(run('backup', '--', 'monday.db').stdout).toBe(
    `Backed up to ${folder}/monday.db: ${folder}/pets.db\n`,
  )
})

test('npm run dev starts the service anew at each change of what the image has of it', async () => {
  const folder = newFolder()
  const copied = [...readRoot('Dockerfile').matchAll(/^COPY (\S+) \1$/gm)].map(
    ([, name]) => `${name}`,
  )
  const folders = copied.filter((name) => name !== 'bin')
  expect(folders).toEqual(['docs-page', 'db', 'src'])
  const texts = folders.map((name) => path.join(folder, name, 'below', 'text'))
  texts.push(path.join(folder, 'openapi.json'))
  for (const file of texts) {
    mkdirSync(path.dirname(file), { recursive: true })
    writeFileSync(file, '')
  }
  writeFileSync(path.join(folder, 'src/main.ts'), "console.log('started' as string)")
  for (const name of ['bin', 'node_modules'])
    symlinkSync(path.join(root, name), path.join(folder, name))
  const service = spawn('sh', ['-c', manifest.scripts.dev], { cwd: folder })
  onTestFinished(async () => {
    service.kill()
    await once(service, 'close')
  })
  let output = ''
  service.stdout.on('data', (chunk) => (output += chunk))
  const ended = (count: number) => () =>
    expect(output.match(/started\nCompleted/g), output).toHaveLength(count)
  await vi.waitFor(ended(1), 30_000)
  for (const [index, file] of texts.entries()) {
    writeFileSync(file, 'changed')
    await vi.waitFor(ended(index + 2), 30_000)
  }
})

/** A folder with `bin/`, a machine's own `node` in `own/`, and one in node_modules, which npm has on PATH. */
function machine(own: string, brought: string) {
  const folder = path.join(newFolder(), 'a b')
  const write = (file: string, script: string) => {
    mkdirSync(path.dirname(path.join(folder, file)), { recursive: true })
    writeFileSync(path.join(folder, file), script, { mode: 0o755 })
  }
  cpSync(path.join(root, 'bin'), path.join(folder, 'bin'), { recursive: true })
  if (brought) write('node_modules/node/bin/node', brought)
  mkdirSync(path.join(folder, 'node_modules/.bin'), { recursive: true })
  symlinkSync('../node/bin/node', path.join(folder, 'node_modules/.bin/node'))
  write('own/node', own)
  const PATH = ['node_modules/.bin', 'own'].map((name) => path.join(folder, name)).join(':')
  return { folder, env: { PATH } }
}

/** Prints its name and its arguments as a Node that is new enough. */
const fine = (name: string) => `#!/bin/sh\n[ "$1" = -e ] || echo "${name}: $*"\n`
const old = '#!/bin/sh\n[ "$1" = -e ] && echo "own/node is Node 20.20.2" >&2\nexit 9\n'
/** As where a shared library of Node is missing. */
const broken = '#!/bin/sh\necho "node: error while loading libatomic.so.1" >&2\nexit 127\n'

test.each([
  ['the one of node_modules', fine('brought'), 'brought'],
  ["the machine's own where that does not start", broken, 'own'],
  ["the machine's own where there is no other", '', 'own'],
])('bin/node runs %s', (_, brought, name) => {
  const { folder, env } = machine(fine('own'), brought)
  symlinkSync(folder, `${folder} linked`)
  for (const at of [folder, `${folder} linked`]) {
    const ran = spawnSync(path.join(at, 'bin/node'), ['a b', '*'], { env, encoding: 'utf8' })
    expect([ran.stdout, ran.stderr]).toEqual([`${name}: a b *\n`, ''])
  }
})

test('bin/petstore becomes Node, so that signals reach the service, and keeps a cache that is given', () => {
  const print = 'echo "$$ $NODE_COMPILE_CACHE $*"'
  const { folder, env } = machine('', `#!/bin/sh\n[ "$1" = -e ] || ${print}\n`)
  const program = path.join(folder, 'bin/petstore')
  for (const [given, cache] of [
    [{}, `${folder}/bin/../node_modules/.cache/node`],
    [{ NODE_COMPILE_CACHE: '/cache' }, '/cache'],
  ] as const) {
    const { pid, stdout } = spawnSync(program, ['a b'], {
      env: { ...env, ...given },
      encoding: 'utf8',
    })
    expect(stdout.startsWith(`${pid} ${cache} `), stdout).toBe(true)
    expect(stdout).toMatch(/\/src\/main\.ts a b\n$/)
  }
})

test.each([
  ['petstore', [], 'src/main.ts'],
  ['keys', ['list'], 'src/cli/keys.ts list'],
  ['backup', ['backups', '14'], /src\/cli\/backup\.ts backups\/petstore-\S+\.db$/],
])('bin/%s runs through a link, such as one in /usr/local/bin', (name, words, expected) => {
  // On stderr: bin/backup prints a line of its own in place of the output.
  const { folder, env } = machine(old, `${fine('brought').trim()} >&2\n`)
  const elsewhere = newFolder()
  writeFileSync(path.join(elsewhere, 'node'), fine('another'), { mode: 0o755 })
  const link = path.join(elsewhere, name)
  symlinkSync(path.relative(elsewhere, path.join(folder, 'bin', name)), link)
  const PATH = `${env.PATH}:${process.env.PATH}`
  const { stderr } = spawnSync(link, words, { cwd: elsewhere, env: { PATH }, encoding: 'utf8' })
  const [line = ''] = stderr.split('\n')
  expect(line).toMatch(/^brought: /)
  expect(line.replace(/^.+\/bin\/\.\.\//, '')).toEqual(
    expected instanceof RegExp ? expect.stringMatching(expected) : expected,
  )
})

test('every script that runs Node says why none starts, and what helps', () => {
  const { folder, env } = machine(old, broken)
  const other = /^(npm run (build|check)|biome check --write)/
  const scripts = Object.entries(manifest.scripts).filter(([, script]) => !other.test(script))
  expect(scripts.map(([name]) => name)).toEqual(expect.arrayContaining(['start', 'keys', 'check']))
  for (const [name, script] of scripts) {
    const ran = spawnSync('/bin/sh', ['-c', script], { cwd: folder, env, encoding: 'utf8' })
    expect(ran.stderr, name).toBe(
      `Node 24.4 or newer is missing: node: error while loading libatomic.so.1; own/node is Node 20.20.2
Run npm ci with umask 022 and without --ignore-scripts, --omit=dev and NODE_ENV=production, which installs it, and install any library that is named here; or install Node 24.4 or newer yourself\n`,
    )
    expect(ran.status, name).toBe(1)
  }
})

describe('.ci/run', () => {
  /** Runs it with commands that only say their names, and fail where it matches. */
  function runCi(failing: RegExp) {
    const folder = newFolder()
    const say = (name: string) =>
      `#!/bin/sh\nset -- ${name} "$@"; echo "$*"; ! echo "$*" | grep -Eq '${failing.source}'\n`
    for (const file of ['npm', 'timeout', 'test/install']) {
      mkdirSync(path.dirname(path.join(folder, file)), { recursive: true })
      writeFileSync(path.join(folder, file), say(path.basename(file)), { mode: 0o755 })
    }
    cpSync(path.join(root, '.ci'), path.join(folder, '.ci'), { recursive: true })
    const env = { PATH: `${folder}:${process.env.PATH}` }
    const { stdout, status } = spawnSync(path.join(folder, '.ci/run'), { env, encoding: 'utf8' })
    return { ran: stdout.trim().split('\n'), status }
  }
  const world = 'timeout --kill-after=30 900 npm run test:world'
  const all = ['install', 'npm ci', 'npm test', 'npm run test:faults', 'install cluster']
  all.push('npm run test:cluster', 'install world', world)

  test.each([
    ['runs everything', /never/, all, 0],
    ['fails with npm test', /npm test$/, all.slice(0, 3), 1],
    ['fails with test:faults', /faults$/, all.slice(0, 4), 1],
    ['fails with test:cluster', /test:cluster$/, all.slice(0, 6), 1],
    ['does not fail with test:world', /test:world$/, all, 0],
    [
      'does not fail without packages',
      /install ./,
      all.filter((name) => !/test:[cw]/.test(name)),
      0,
    ],
  ])('%s', (_, failing, ran, status) => {
    expect(runCi(failing)).toEqual({ ran, status })
  })
})
