/**
 * The lines of docs/upgrades.md for systemd, twice in a row, in a folder in place of the root: nothing that belongs to
 * the installation is lost. test/world/systemd.test.ts runs them on a booted systemd.
 */
import { spawnSync } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { newFolder } from '../support/database.ts'
import { blocksOf } from '../support/documents.ts'

const root = path.join(import.meta.dirname, '../..')
const blocks = blocksOf(path.join(root, 'docs/upgrades.md'), '## With systemd', '\n## ')

/** Returns the only block of the page that contains a text. */
function block(text: string): string {
  const found = blocks.filter(({ code }) => code.includes(text))
  expect(found).toHaveLength(1)
  return found[0]?.code ?? ''
}

/** A dump that `bin/backup` takes for whole. */
const DUMP = ['CREATE TABLE pets (', 'CREATE TABLE api_keys (', 'INSERT INTO api_keys VALUES (1)']
const dump = `printf '%s\\n' '${[...DUMP, '-- Dump completed'].join("' '")}'`

/** An installation as of 2.0.0, with dumps in `data/backups`. */
function newInstallation() {
  const place = newFolder()
  const at = (...names: string[]) => path.join(place, ...names)
  const inPlace = (text: string) => text.replaceAll(/(?<=[\s='])\/(?=opt|etc|var)/g, `${place}/`)
  const programs = {
    sudo: 'exec "$@"',
    git: `tar --create --directory ${root} --transform s,^,petstore-new/, bin deploy`,
    npm: 'mkdir node_modules',
    // The user petstore is not there.
    install: 'for last; do :; done; mkdir -p -m 700 "$last"',
    // A start of the unit of backups: its commands, of which the last has that of a dump in a drop-in.
    systemctl: `echo "$*" >>${at('calls')}
      ! grep -qx "$*" ${at('refused')} || exit 1
      [ "$*" = 'start petstore-backup' ] || exit 0
      command() { sed -n "s,^$1=,,p" ${at('etc/systemd/system/petstore-backup.service')} | sed 's,+/usr/bin/,,; s,/\\(opt\\|var\\)/,${place}/\\1/,g'; }
      $(command ExecStartPre)
      cd ${at('opt/petstore')}
      $(command ExecStart) sh ${at('dump')} >${at('output')}`,
  }
  mkdirSync(at('bin'))
  for (const [name, commands] of Object.entries(programs)) {
    writeFileSync(at('bin', name), `#!/bin/sh\nset -eu\n${commands}\n`, { mode: 0o755 })
  }
  writeFileSync(at('dump'), dump)
  for (const name of ['calls', 'refused']) writeFileSync(at(name), '')
  for (const folder of ['opt/petstore/data/backups/monthly', 'etc/systemd/system', 'var/backups']) {
    mkdirSync(at(folder), { recursive: true })
  }
  writeFileSync(at('opt/petstore/.env'), 'DATABASE_URL=mysql://x')
  writeFileSync(at('opt/petstore/data/petstore.db'), 'all pets')
  for (const name of ['petstore-2099-01-02T023000Z.sql', 'monthly/petstore-2020-01-02T023000Z.sql'])
    writeFileSync(at('opt/petstore/data/backups', name), dump)
  /** Runs lines as a shell into which they are pasted: each, whatever became of those before. */
  const paste = (lines: string, cwd = root) => {
    const env = { PATH: `${at('bin')}:${process.env.PATH}` }
    return spawnSync('sh', ['-c', inPlace(lines)], { cwd, env, encoding: 'utf8' })
  }
  const run = (lines: string, cwd?: string) => {
    const { status, stderr } = paste(lines, cwd)
    expect([status, stderr]).toEqual([0, ''])
  }
  return { at, paste, run }
}

test.each([
  ['one process', 'petstore.service', 'systemctl stop petstore'],
  ['several processes', 'petstore@.service', 'restart petstore@9464'],
])('two upgrades of %s keep data, dumps and .env, and replace the units', (_, unit, words) => {
  const { at, run } = newInstallation()
  const beside = block('git archive')
  run(beside)
  run(block(words), at())
  run(block('find /opt/petstore/data/backups'), at())
  // The next night.
  const dumps = () => readdirSync(at('var/backups/petstore'))
  expect(dumps()).toEqual([
    expect.stringMatching(/^petstore-20\d\d-\d\d-\d\dT\d{6}Z\.sql$/),
    'petstore-2099-01-02T023000Z.sql',
  ])
  const before = dumps()
  run(beside)
  run(block(words), at())
  run('systemctl start petstore-backup', at())
  expect(dumps()).toEqual(expect.arrayContaining(before))
  expect(dumps()).toHaveLength(3)
  const read = (name: string) => readFileSync(at('opt/petstore', name), 'utf8')
  expect([read('.env'), read('data/petstore.db')]).toEqual(['DATABASE_URL=mysql://x', 'all pets'])
  expect(read('data/backups/monthly/petstore-2020-01-02T023000Z.sql')).toBe(dump)
  for (const name of [unit, 'petstore-backup.service', 'petstore-backup.timer']) {
    const installed = readFileSync(at('etc/systemd/system', name), 'utf8')
    expect(installed).toBe(readFileSync(path.join(root, 'deploy', name), 'utf8'))
  }
  // The way back: the same lines, with the former folder.
  run('mv /opt/petstore-old /opt/petstore-new', at())
  run(block(words), at())
  expect(read('data/petstore.db')).toBe('all pets')
})

test.each([
  ['systemctl stop petstore', 'start petstore'],
  ['restart petstore@9464', 'restart petstore@9464'],
])(
  'the lines with "%s" need no data/ and no .env, and end at the first one that fails',
  (words, first) => {
    const { at, paste, run } = newInstallation()
    for (const name of ['.env', 'data']) rmSync(at('opt/petstore', name), { recursive: true })
    const calls = () => readFileSync(at('calls'), 'utf8').trim().split('\n')
    // The release beside is missing, as after a mistake in its commit, or in a second upgrade by mistake.
    const before = readdirSync(at('opt'), { recursive: true })
    expect(paste(block(words), at()).status).not.toBe(0)
    expect([readdirSync(at('opt'), { recursive: true }), calls()]).toEqual([before, ['']])
    run(block('git archive'))
    writeFileSync(at('refused'), first)
    expect(paste(block(words), at()).status).not.toBe(0)
    expect(calls().at(-1)).toBe(first)
  },
)
