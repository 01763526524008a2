/** bin/backup: a backup by name and time, and the end of old ones. */
import { spawnSync } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, utimesSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { engine, newFolder } from '../support/database.ts'
import { readRoot } from '../support/image.ts'
import { migratedForFile } from '../support/migrated.ts'

const { url } = await migratedForFile()
const script = path.join(import.meta.dirname, '../../bin/backup')

/** A folder of backups: two of 14 days, which are old, one of 13, and a file of another program. */
function newBackups() {
  const folder = path.join(newFolder(), 'the backups')
  mkdirSync(folder)
  for (const [name, days] of [
    ['petstore-old.db', 14],
    ['petstore-old.sql', 14],
    ['petstore-new.db', 13],
    ['other.db', 99],
  ] as const) {
    const file = path.join(folder, name)
    writeFileSync(file, '')
    utimesSync(file, new Date(), new Date(Date.now() - days * 86_400_000 - 3_600_000))
  }
  const kept = ['other.db', 'petstore-new.db']
  const all = [...kept, 'petstore-old.db', 'petstore-old.sql']
  const keep = (days: string, ...words: string[]) => {
    const env = { PATH: process.env.PATH, DATABASE_URL: url }
    const args = [folder, days, ...words]
    const { status, stderr } = spawnSync(script, args, { env, encoding: 'utf8' })
    return { status, stderr, files: readdirSync(folder).sort() }
  }
  const run = (...words: string[]) => keep('14', ...words)
  return { folder, kept, all, keep, run }
}

const TIME = /^petstore-\d{4}-\d\d-\d\dT\d{6}Z/

test.runIf(engine === 'sqlite')('the embedded database', () => {
  const { kept, run } = newBackups()
  const { status, stderr, files } = run()
  expect([status, stderr]).toEqual([0, ''])
  const made = files.filter((name) => !kept.includes(name))
  expect(made).toEqual([expect.stringMatching(new RegExp(`${TIME.source}\\.db$`))])
})

const dump = ['mariadb-dump', 'mysqldump'].find(
  (name) => spawnSync(name, ['--version']).status === 0,
)
test.runIf(engine === 'mysql' && dump)('MySQL, by mysqldump or mariadb-dump', () => {
  const { folder, kept, run } = newBackups()
  const { hostname, port, username, pathname } = new URL(url)
  const client = [`--host=${hostname}`, `--port=${port}`, `--user=${username}`]
  const options = ['--no-defaults', ...client, '--single-transaction', '--no-tablespaces']
  const { status, stderr, files } = run(`${dump}`, ...options, pathname.slice(1))
  expect([status, stderr]).toEqual([0, ''])
  const [made = '', ...others] = files.filter((name) => !kept.includes(name))
  expect(made).toMatch(new RegExp(`${TIME.source}\\.sql$`))
  expect(others).toEqual([])
  const text = readFileSync(path.join(folder, made), 'utf8')
  expect(text).toContain('`pets`')

  // The lines of docs/operating.md for the other server: each replaces every name of one, and the other undoes it.
  const scripts = [...readRoot('docs/operating.md').matchAll(/^sed '(.+?)'/gm)].map(
    ([, script]) => `${script}`,
  )
  const sed = (script: string, input: string) =>
    spawnSync('sed', [script], { input, encoding: 'utf8' }).stdout
  const [forOther = '', forThis = ''] = text.includes('utf8mb4_nopad_bin')
    ? scripts
    : scripts.toReversed()
  const collationsOf = (text: string) => new Set(text.match(/(?<=COLLATE.)\w+(?=_bin)/g))
  const translated = sed(forOther, text)
  expect([...collationsOf(text), ...collationsOf(translated)].sort()).toEqual([
    ...['utf8mb4_0900', 'utf8mb4_nopad'],
  ])
  expect(sed(forThis, translated)).toBe(text)
})

test.each([
  ['fails', 'echo "-- Dump completed"; exit 2', 2],
  ['ends early', 'echo "create table pets"', 1],
])('a dump that %s leaves no file and removes none', (_, commands, code) => {
  const { all, run } = newBackups()
  const { status, files } = run('sh', '-c', commands)
  expect({ status, files }).toEqual({ status: code, files: all })
})

test.each(['0', '00', '-1', 'a week', ''])(
  'DAYS = "%s" makes no backup and removes none',
  (days) => {
    const { all, keep } = newBackups()
    const stderr = 'DAYS must be a number of days from 1 on: bin/backup FOLDER DAYS\n'
    expect(keep(days, 'echo', '-- Dump completed')).toEqual({ status: 1, stderr, files: all })
  },
)
