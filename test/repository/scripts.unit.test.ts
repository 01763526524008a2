/** The scripts of package.json. */
import { execFileSync, spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import manifest from '../../package.json' with { type: 'json' }
import { newFolder } from '../support/database.ts'

const root = path.join(import.meta.dirname, '../..')

test('storefront:key makes one read-only key for the shop, and no file where it fails', () => {
  const folder = newFolder()
  mkdirSync(path.join(folder, 'examples/storefront'), { recursive: true })
  for (const name of ['bin', 'src']) symlinkSync(path.join(root, name), path.join(folder, name))
  const file = path.join(folder, 'examples/storefront/.env.local')
  const { PATH = '' } = process.env
  const run = (DATABASE_URL: string) =>
    execFileSync('sh', ['-c', manifest.scripts['storefront:key']], {
      cwd: folder,
      env: { PATH: `${path.dirname(process.execPath)}:${PATH}`, DATABASE_URL },
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

test('a key is not made without the options that npm takes for itself; FILE is where npm is called', () => {
  const folder = newFolder()
  const { PATH = '' } = process.env
  const run = (...words: string[]) =>
    spawnSync('npm', ['--prefix', root, 'run', '--silent', ...words], {
      cwd: folder,
      env: { PATH, DATABASE_URL: `sqlite:${folder}/pets.db?create` },
      encoding: 'utf8',
    })
  expect(run('keys', 'create', 'Web shop', '--read-only').stderr).toMatch(/^npm took .+ -- .+\n$/)
  expect(existsSync(path.join(folder, 'pets.db'))).toBe(false)
  expect(run('keys', '--', 'create', 'Web shop').stderr).toContain(
    'pets.db is on stdout, and never ends.',
  )
  expect(run('backup', '--', 'monday.db').stdout).toBe(
    `Backed up to ${folder}/monday.db: ${folder}/pets.db\n`,
  )
})

test('every script that runs Node says in one line that Node is missing', () => {
  const folder = newFolder()
  cpSync(path.join(root, 'bin'), path.join(folder, 'bin'), { recursive: true })
  // An old Node, as a machine may have: it runs no TypeScript, and does not know all options.
  const old = '#!/bin/sh\n[ "$1" = -e ] && exit 1\necho "bad option: $1" >&2\nexit 9\n'
  writeFileSync(path.join(folder, 'node'), old, { mode: 0o755 })
  const other = /^(npm run (build|check)|biome check --write)/
  const scripts = Object.entries(manifest.scripts).filter(([, script]) => !other.test(script))
  expect(scripts.map(([name]) => name)).toEqual(expect.arrayContaining(['start', 'keys', 'check']))
  for (const [name, script] of scripts) {
    const ran = spawnSync('sh', ['-c', script], {
      cwd: folder,
      env: { PATH: `${folder}:/bin:/usr/bin` },
      encoding: 'utf8',
    })
    expect(ran.stderr, name).toBe(
      'Node 24.4 or newer is missing: run npm ci without --ignore-scripts, --omit=dev and NODE_ENV=production, which installs it, or install it yourself\n',
    )
    expect(ran.status, name).toBe(1)
  }
})
