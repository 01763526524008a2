/** bin/backup: a backup by name and time, and the end of old ones. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  mkdirSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import path from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { text } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { engine, newFolder, testOnce } from '../support/database.ts'
import { readRoot } from '../support/image.ts'
import { until } from '../support/instance.ts'
import { migratedForFile } from '../support/migrated.ts'
import { mayTrace, traceNames } from '../support/process.ts'

const { url } = await migratedForFile()
const script = path.join(import.meta.dirname, '../../bin/backup')
const { PATH, NODE_COMPILE_CACHE } = process.env

/**
 * A folder of backups: what is 14 days old of the names of backups is to go. What stays is younger, or has other
 * names, or is in a folder of another call.
 */
function newBackups() {
  const folder = path.join(newFolder(), 'the backups')
  const old = ['petstore-2026-01-02T023000Z.db', 'petstore-2026-01-02T023001Z.sql']
  const stays = [
    'monthly/petstore-2026-01-02T023000Z.db',
    'monthly/petstore-2026-01-02T023001Z.sql',
    'other.db',
    'petstore-2026-01-02T023000Z-before-2.0.0.db',
    'petstore-2026-01-02T023001Z.sql.gz',
    'petstore-2026-01-02T023001Z.sql.part1',
    'petstore-before-2.0.0.db',
  ]
  const young = ['petstore-2026-01-03T023000Z.db']
  mkdirSync(path.join(folder, 'monthly'), { recursive: true })
  for (const [names, days] of [
    [old, 14],
    [stays, 99],
    [young, 13],
  ] as const) {
    for (const name of names) makeOld(path.join(folder, name), days)
  }
  const kept = [...stays, ...young]
  const all = [...kept, ...old].sort()
  const filesOf = () =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .filter((name) => name !== 'monthly')
      .sort()
  const keep = (days: string, ...words: string[]) => {
    const env = { PATH, NODE_COMPILE_CACHE, DATABASE_URL: url }
    const args = [folder, days, ...words]
    const { status, stderr } = spawnSync(script, args, { env, encoding: 'utf8' })
    return { status, stderr, files: filesOf() }
  }
  const run = (...words: string[]) => keep('14', ...words)
  /** Returns the files that a backup has added. Throws if it has removed one that is to stay. */
  const newOnes = (files: string[]) => {
    expect(files).toEqual(expect.arrayContaining(kept))
    return files.filter((name) => !kept.includes(name))
  }
  return { folder, all, keep, run, filesOf, newOnes }
}

/** Makes a file that was written so many days, and an hour, ago. */
function makeOld(file: string, days: number) {
  writeFileSync(file, '')
  setAge(file, days)
}

/** Has a file, or a folder, be of so many days, and an hour, ago. */
function setAge(file: string, days: number) {
  utimesSync(file, new Date(), new Date(Date.now() - days * 86_400_000 - 3_600_000))
}

/** The starter of a program which may read no more than the rights of files say: root may read all. */
const WITHOUT_RIGHTS =
  process.getuid?.() === 0 ? ['setpriv', '--bounding-set=-dac_override,-dac_read_search'] : []

const TIME = /^petstore-\d{4}-\d\d-\d\dT\d{6}Z/

test.runIf(engine === 'sqlite')('the embedded database', () => {
  const { run, newOnes } = newBackups()
  const { status, stderr, files } = run()
  expect([status, stderr]).toEqual([0, ''])
  expect(newOnes(files)).toEqual([expect.stringMatching(new RegExp(`${TIME.source}\\.db$`))])
})

const dump = ['mariadb-dump', 'mysqldump'].find(
  (name) => spawnSync(name, ['--version']).status === 0,
)
test.runIf(engine === 'mysql' && dump)('MySQL, by mysqldump or mariadb-dump', () => {
  const { folder, run, newOnes } = newBackups()
  const { hostname, port, username, pathname } = new URL(url)
  const client = [`--host=${hostname}`, `--port=${port}`, `--user=${username}`]
  const options = ['--no-defaults', ...client, '--single-transaction', '--no-tablespaces']
  const { status, stderr, files } = run(`${dump}`, ...options, pathname.slice(1))
  expect([status, stderr]).toEqual([0, ''])
  const [made = '', ...others] = newOnes(files)
  expect(made).toMatch(new RegExp(`${TIME.source}\\.sql$`))
  expect(others).toEqual([])
  const dumped = readFileSync(path.join(folder, made), 'utf8')
  expect(dumped).toContain('`pets`')

  // The lines of docs/operating.md for the other server: each replaces every name of one, and the other undoes it.
  const scripts = [...readRoot('docs/operating.md').matchAll(/^sed '(.+?)'/gm)].map(
    ([, script]) => `${script}`,
  )
  const sed = (script: string, input: string) =>
    spawnSync('sed', [script], { input, encoding: 'utf8' }).stdout
  const [forOther = '', forThis = ''] = dumped.includes('utf8mb4_nopad_bin')
    ? scripts
    : scripts.toReversed()
  const collationsOf = (text: string) => new Set(text.match(/(?<=COLLATE.)\w+(?=_bin)/g))
  const translated = sed(forOther, dumped)
  expect([...collationsOf(dumped), ...collationsOf(translated)].sort()).toEqual([
    ...['utf8mb4_0900', 'utf8mb4_nopad'],
  ])
  // The client of MySQL does not know this line of MariaDB's dumps.
  expect(sed(forThis, translated)).toBe(dumped.replace(/^.*sandbox mode.*\n/, ''))
})

/** The commands of a dump that is whole. */
const WHOLE = dumpOf('`pets`', '`api_keys`')

function dumpOf(...tables: string[]) {
  const lines = tables.map((table) => `CREATE TABLE ${table} (`)
  return `printf '%s\\n' '${[...lines, '-- Dump completed on 2026-12-01'].join("' '")}'`
}

testOnce('old backups of a FOLDER that is a link are removed', () => {
  const { folder, filesOf, newOnes } = newBackups()
  const link = path.join(newFolder(), 'link')
  symlinkSync(folder, link)
  const { status, stderr } = spawnSync(script, [link, '14', 'sh', '-c', WHOLE], {
    encoding: 'utf8',
  })
  expect([status, stderr]).toEqual([0, ''])
  expect(newOnes(filesOf())).toEqual([expect.stringMatching(TIME)])
})

testOnce('a folder that the user may not read, such as lost+found, is left alone', () => {
  const { folder, filesOf, newOnes } = newBackups()
  const foreign = path.join(folder, 'lost+found')
  mkdirSync(foreign, { mode: 0 })
  const [command = '', ...args] = [...WITHOUT_RIGHTS, script, folder, '14', 'sh', '-c', WHOLE]
  const { status, stderr } = spawnSync(command, args, { encoding: 'utf8' })
  rmdirSync(foreign)
  expect([status, stderr]).toEqual([0, ''])
  expect(newOnes(filesOf())).toEqual([expect.stringMatching(TIME)])
})

testOnce.each(['SIGTERM', 'SIGHUP', 'SIGINT'] as const)(
  '%s ends a dump, and leaves no file',
  async (signal) => {
    const { folder, all, filesOf } = newBackups()
    // The signal meets the script alone, as that of Kubernetes meets process 1.
    const child = spawn(script, [folder, '14', 'sh', '-c', `${WHOLE}; exec sleep 100`])
    const ended = once(child, 'close')
    // Until then, a process that the shell is starting may lose the signal.
    await until('the dump has printed', () =>
      filesOf().some(
        (name) => name.endsWith('/backup.sql') && statSync(path.join(folder, name)).size > 0,
      ),
    )
    child.kill(signal)
    expect(await ended).toEqual([143, null])
    expect(filesOf()).toEqual(all)
  },
)

test.runIf(engine === 'sqlite')(
  'SIGTERM ends a backup of the embedded database, and leaves no file',
  async () => {
    const { folder, all, filesOf } = newBackups()
    const held = path.join(newFolder(), 'held.db')
    using holder = new DatabaseSync(held)
    holder.exec('create table pets (id); begin exclusive') // without a separate log, it also stops readers
    const env = { PATH, NODE_COMPILE_CACHE, DATABASE_URL: `sqlite:${held}` }
    const child = spawn(script, [folder, '14'], { env })
    const ended = once(child, 'close')
    await until('the backup has begun', () => filesOf().some((name) => name.endsWith('/copy.db')))
    child.kill('SIGTERM')
    expect(await ended).toEqual([143, null])
    expect(filesOf()).toEqual(all)
  },
)

test.runIf(engine === 'sqlite')(
  'backups of one second, and of both kinds, have a file each',
  async () => {
    const { folder, filesOf, newOnes } = newBackups()
    const bin = path.join(newFolder(), 'bin')
    mkdirSync(bin)
    writeFileSync(path.join(bin, 'date'), '#!/bin/sh\necho 2026-12-01T023000Z\n', { mode: 0o755 })
    const env = { PATH: `${bin}:${PATH}`, NODE_COMPILE_CACHE, DATABASE_URL: url }
    const commands = [
      [],
      [],
      ...['1', '2', '3'].map((name) => ['sh', '-c', `echo ${name}; ${WHOLE}`]),
    ]
    const said = await Promise.all(
      commands.map(async (words) => {
        const child = spawn(script, [folder, '14', ...words], { env })
        const [stdout, [code]] = await Promise.all([text(child.stdout), once(child, 'close')])
        expect(code).toBe(0)
        return /^Backed up to .+\/(.+)\n$/.exec(stdout)?.[1]
      }),
    )
    const names = newOnes(filesOf())
    expect(said.sort()).toEqual(names)
    const numbers = names
      .filter((name) => name.endsWith('.sql'))
      .map((name) => readFileSync(path.join(folder, name), 'utf8').slice(0, 1))
    expect(numbers.sort()).toEqual(['1', '2', '3'])
    expect(names).toEqual(
      expect.arrayContaining(['petstore-2026-12-01T023000Z.db', 'petstore-2026-12-01T023000Z.sql']),
    )

    // Both forms of names are removed.
    for (const name of names) setAge(path.join(folder, name), 14)
    const { status } = spawnSync(script, [folder, '14', 'sh', '-c', WHOLE])
    expect(status).toBe(0)
    expect(newOnes(filesOf())).toHaveLength(1)
  },
)

testOnce('a backup during which the clock jumps ahead stays', () => {
  const { folder, filesOf, newOnes } = newBackups()
  const bin = path.join(newFolder(), 'bin')
  mkdirSync(bin)
  writeFileSync(path.join(bin, 'sync'), '#!/bin/sh\ntouch -t 202601020230 "$1"\n', { mode: 0o755 })
  const env = { PATH: `${bin}:${process.env.PATH}` }
  const { status } = spawnSync(script, [folder, '14', 'sh', '-c', WHOLE], { env })
  expect(status).toBe(0)
  expect(newOnes(filesOf())).toEqual([expect.stringMatching(TIME)])
})

testOnce('backups that end at the same moment succeed', async () => {
  const { folder } = newBackups()
  const repeat = async () => {
    for (let round = 0; round < 8; round++) {
      const child = spawn(script, [folder, '14', 'sh', '-c', WHOLE])
      const [stderr, [code]] = await Promise.all([text(child.stderr), once(child, 'close')])
      expect([code, stderr]).toEqual([0, ''])
    }
  }
  await Promise.all([repeat(), repeat(), repeat(), repeat()])
})

test.runIf(engine === 'sqlite' && mayTrace())(
  'a backup and its name are on the disk before old ones are removed',
  () => {
    const { folder } = newBackups()
    const trace = path.join(newFolder(), 'trace')
    const [command = '', ...args] = [...traceNames(trace), script, folder, '14', 'sh', '-c', WHOLE]
    expect(spawnSync(command, args).status).toBe(0)
    const calls = readFileSync(trace, 'utf8')
    expect(calls).toMatch(
      /fsync\([^\n]+\/backup\.sql>.+link[^\n]+Z\.sql".+fsync\([^\n]+\/the backups>.+unlink[^\n]+2026-01-02T023000Z\.db"/s,
    )
  },
)

testOnce('what is left of backups that kill -9 ended is removed with old backups', () => {
  const { folder, run, newOnes } = newBackups()
  // Those of the embedded database are folders.
  for (const [name, days] of [
    ['petstore-2026-01-02T023000Z.part', 14],
    ['petstore-2026-01-02T023000Z.db.part-k3J9aZ', 14],
    ['petstore-2026-01-03T023000Z.db.part-b8Qw1c', 13],
  ] as const) {
    const left = path.join(folder, name)
    if (name.includes('.db')) {
      mkdirSync(left)
      makeOld(path.join(left, 'copy.db'), days)
      setAge(left, days)
    } else makeOld(left, days)
  }
  const young = 'petstore-2026-01-03T023000Z.db.part-b8Qw1c'
  const { status, stderr, files } = run('sh', '-c', WHOLE)
  expect([status, stderr]).toEqual([0, ''])
  expect(newOnes(files).slice(0, -1)).toEqual([young, `${young}/copy.db`])
})

testOnce.each([
  ['fails', `${WHOLE}; exit 2`, 2, ''],
  ['ends early', 'echo "create table pets"', 1, 'The dump is not whole: its last line must be '],
  [
    'has no tables',
    dumpOf(),
    1,
    'The dump does not create the table pets: dump the whole database',
  ],
  [
    'lacks pets',
    dumpOf('`api_keys`', '`pets_old`', '`my_pets`'),
    1,
    'The dump does not create the table pets: ',
  ],
  ['lacks API keys', dumpOf('`pets`'), 1, 'The dump does not create the table api_keys: '],
])('a dump that %s leaves no file and removes none', (_, commands, code, message) => {
  const { all, run } = newBackups()
  expect(run('sh', '-c', commands)).toEqual({
    status: code,
    stderr: expect.stringMatching(message === '' ? /^$/ : new RegExp(`^${message}[^\\n]*\\n$`)),
    files: all,
  })
})

testOnce.each([
  ['ANSI_QUOTES', dumpOf('"pets"', '"api_keys"')],
  ['--skip-quote-names', dumpOf('pets', 'api_keys')],
  [
    'a view in place of a table',
    `echo '/*!50001 CREATE VIEW \`pets\` AS SELECT'; ${dumpOf('`api_keys`')}`,
  ],
])('a dump with %s is kept', (_, commands) => {
  const { run, newOnes } = newBackups()
  const { status, files } = run('sh', '-c', commands)
  expect(status).toBe(0)
  expect(newOnes(files)).toHaveLength(1)
})

testOnce.each(['0', '00', '-1', 'a week', '', '100000', '99999999999999999999'])(
  'DAYS = "%s" makes no backup and removes none',
  (days) => {
    const { all, keep } = newBackups()
    const stderr = 'DAYS must be a number of days from 1 to 99999: bin/backup FOLDER DAYS\n'
    expect(keep(days, 'sh', '-c', WHOLE)).toEqual({ status: 1, stderr, files: all })
  },
)
