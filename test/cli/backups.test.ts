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
  writeFileSync,
} from 'node:fs'
import path from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { text } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { engine, newFolder, testOnce } from '../support/database.ts'
import { readRoot } from '../support/image.ts'
import { addKey, until } from '../support/instance.ts'
import { migratedForFile } from '../support/migrated.ts'
import { mayTrace, traceNames } from '../support/process.ts'

const { url, sql } = await migratedForFile()
const script = path.join(import.meta.dirname, '../../bin/backup')
const { PATH, NODE_COMPILE_CACHE } = process.env

/** Returns the beginning of the name of a backup that was made so many days, and an hour, ago. */
function nameOf(days: number): string {
  const time = new Date(Date.now() - days * 86_400_000 - 3_600_000).toISOString()
  return `petstore-${time.slice(0, 13)}${time.slice(14, 16)}${time.slice(17, 19)}Z`
}

/**
 * A folder of backups: what is 14 days old by its name is to go. What stays is younger, or has another name,
 * or is in a folder below.
 */
function newBackups() {
  const folder = path.join(newFolder(), 'the backups')
  const time = nameOf(14)
  const old = [`${time}.db`, `${time}.sql`, `${nameOf(999)}.sql`]
  const ofOperator = ['-weekly.sql', '-yearly.db', '-before.sql', '-261129.db', '-k3J9aZ.sql']
  const stays = [
    `monthly/${time}.db`,
    ...ofOperator.map((end) => `${time}${end}`),
    ...['.sql.gz', '.sql.part1', '.part-backup', '.part-k3J9aZ'].map((end) => `${time}${end}`),
    ...[time.replace('-0', '-O').replace('-1', '-l'), `${time}Z`, `my-${time}`].map(
      (name) => `${name}.db`,
    ),
    'petstore-before-2.0.0.db',
    `${nameOf(13)}.db`,
  ]
  const all = [...stays, ...old].sort()
  mkdirSync(path.join(folder, 'monthly'), { recursive: true })
  for (const name of all) writeFileSync(path.join(folder, name), '')
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
    expect(files).toEqual(expect.arrayContaining(stays))
    return files.filter((name) => !stays.includes(name))
  }
  return { folder, all, keep, run, filesOf, newOnes }
}

/** The starter of a program which may read no more than the rights of files say: root may read all. */
const WITHOUT_RIGHTS =
  process.getuid?.() === 0 ? ['setpriv', '--bounding-set=-dac_override,-dac_read_search'] : []

const TIME = /^petstore-\d{4}-\d\d-\d\dT\d{6}Z/

test.runIf(engine === 'sqlite')('the embedded database', () => {
  const { folder, run, newOnes } = newBackups()
  const { status, stderr, files } = run()
  expect([status, stderr]).toEqual([0, ''])
  const [made = '', ...others] = newOnes(files)
  expect([made, others]).toEqual([expect.stringMatching(new RegExp(`${TIME.source}\\.db$`)), []])
  expect(statSync(path.join(folder, made)).mode & 0o777).toBe(0o600)
})

const dump = ['mariadb-dump', 'mysqldump'].find(
  (name) => spawnSync(name, ['--version']).status === 0,
)
test.runIf(engine === 'mysql' && dump)('MySQL, by mysqldump or mariadb-dump', async () => {
  const { folder, all, run, newOnes } = newBackups()
  const { hostname, port, username, pathname } = new URL(url)
  const client = [`--host=${hostname}`, `--port=${port}`, `--user=${username}`]
  const options = ['--no-defaults', ...client, '--single-transaction', '--no-tablespaces']
  const dumpBy = (...more: string[]) => run(`${dump}`, ...options, ...more, pathname.slice(1))
  const noRow = expect.stringMatching(/^The dump has no row of the table api_keys: [^\n]+\n$/)
  const refused = { status: 1, stderr: noRow, files: all }
  expect(dumpBy()).toEqual(refused)
  await addKey(sql)
  expect(dumpBy('--no-data')).toEqual(refused)
  expect(dumpBy(`--ignore-table=${pathname.slice(1)}.api_keys`)).toMatchObject({
    status: 1,
    files: all,
  })
  const { status, stderr, files } = dumpBy()
  expect([status, stderr]).toEqual([0, ''])
  const [made = '', ...others] = newOnes(files)
  expect(made).toMatch(new RegExp(`${TIME.source}\\.sql$`))
  expect(others).toEqual([])
  expect(statSync(path.join(folder, made)).mode & 0o777).toBe(0o600)
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

/** Returns the commands of a dump with these tables, of which each has a row. */
function dumpOf(...tables: string[]) {
  const lines = tables.flatMap((table) => [
    `CREATE TABLE ${table} (`,
    `INSERT INTO ${table} VALUES (1),`,
  ])
  return linesOf(...lines)
}
const linesOf = (...lines: string[]) =>
  `printf '%s\\n' '${[...lines, '-- Dump completed on 2026-12-01'].join("' '")}'`

/** The commands of a dump that is whole. */
const WHOLE = dumpOf('`pets`', '`api_keys`')

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

test.runIf(engine === 'sqlite')('backups that begin at one moment have a file each', async () => {
  const { folder, filesOf, newOnes } = newBackups()
  const env = { PATH, NODE_COMPILE_CACHE, DATABASE_URL: url }
  const commands = [
    [],
    ...['1', '2', '3', '4'].map((name) => ['sh', '-c', `echo ${name}; ${WHOLE}`]),
  ]
  const said = await Promise.all(
    commands.map(async (words) => {
      const child = spawn(script, [folder, '14', ...words], { env })
      const [stdout, stderr, [code]] = await Promise.all([
        text(child.stdout),
        text(child.stderr),
        once(child, 'close'),
      ])
      expect([code, stderr]).toEqual([0, ''])
      return /^Backed up to .+\/(.+)\n$/.exec(stdout)?.[1]
    }),
  )
  const names = newOnes(filesOf())
  expect(said.sort()).toEqual(names)
  expect(names.map((name) => name.replace(TIME, '')).sort()).toEqual([
    ...['.db', '.sql', '.sql', '.sql', '.sql'],
  ])
  const numbers = names
    .filter((name) => name.endsWith('.sql'))
    .map((name) => readFileSync(path.join(folder, name), 'utf8').slice(0, 1))
  expect(numbers.sort()).toEqual(['1', '2', '3', '4'])
})

testOnce('a second that another backup has, as after a clock was set back, is not taken', () => {
  const { folder, filesOf, newOnes } = newBackups()
  const [finished, running, free] = [nameOf(3), nameOf(2), nameOf(1)]
  writeFileSync(path.join(folder, `${finished}.sql`), 'of another call')
  mkdirSync(path.join(folder, `${running}.part`))
  const bin = path.join(newFolder(), 'bin')
  mkdirSync(bin)
  // The times of the clock, one for each look.
  const times = [finished, running, free].map((name) => `echo ${name.slice('petstore-'.length)}`)
  writeFileSync(path.join(bin, 'times'), times.join('\n'))
  const date = [
    '#!/bin/sh',
    'case $* in',
    "'-u +'*) head -n 1 $0/../times | sh; sed -i 1d $0/../times ;;",
    '*) PATH=/usr/bin:/bin exec date "$@" ;;',
    'esac',
  ]
  writeFileSync(path.join(bin, 'date'), date.join('\n').replaceAll('$0/..', bin), { mode: 0o755 })
  const env = { PATH: `${bin}:${PATH}` }
  const { status } = spawnSync(script, [folder, '14', 'sh', '-c', WHOLE], { env })
  expect(status).toBe(0)
  expect(newOnes(filesOf())).toEqual([`${finished}.sql`, `${running}.part`, `${free}.sql`])
  expect(readFileSync(path.join(folder, `${finished}.sql`), 'utf8')).toBe('of another call')
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
      /fsync\([^\n]+\/backup\.sql>.+rename[^\n]+Z\.sql".+fsync\([^\n]+\/the backups>.+unlink[^\n]+Z\.db"/s,
    )
  },
)

testOnce('what is left of backups that kill -9 ended is removed with old backups', () => {
  const { folder, run, newOnes } = newBackups()
  const young = `${nameOf(13)}.part`
  for (const name of [`${nameOf(14)}.part`, young]) {
    mkdirSync(path.join(folder, name))
    writeFileSync(path.join(folder, name, 'backup.sql'), '')
  }
  writeFileSync(path.join(folder, `${nameOf(15)}.part`), '') // 2.0.0 had files
  const { status, stderr, files } = run('sh', '-c', WHOLE)
  expect([status, stderr]).toEqual([0, ''])
  expect(newOnes(files)).toEqual([young, `${young}/backup.sql`, expect.stringMatching(TIME)])
})

testOnce('an old backup that cannot be removed fails the call, and the new one stays', () => {
  const { folder, filesOf } = newBackups()
  const bin = path.join(newFolder(), 'bin')
  mkdirSync(bin)
  const rm =
    '#!/bin/sh\ncase $* in *.part) exec /bin/rm "$@" ;; esac\necho rm: refused >&2; exit 1\n'
  writeFileSync(path.join(bin, 'rm'), rm, { mode: 0o755 })
  const env = { PATH: `${bin}:${PATH}` }
  const args = [folder, '14', 'sh', '-c', WHOLE]
  const { status, stdout, stderr } = spawnSync(script, args, { env, encoding: 'utf8' })
  expect([status, stderr]).toEqual([1, 'rm: refused\n'])
  expect(filesOf()).toContain(path.basename(stdout.trim()))
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
  [
    'has no row of an API key',
    `${dumpOf('`pets`', '`api_keys_old`', '`my_api_keys`')}; ${linesOf('CREATE TABLE `api_keys` (')}`,
    1,
    'The dump has no row of the table api_keys: dump the rows, too, and create an API key',
  ],
  [
    'has rows of no table behind a view',
    linesOf('CREATE TABLE `pets` (', '/*!50001 CREATE VIEW `api_keys` AS SELECT'),
    1,
    'The dump has no row of the table api_keys: ',
  ],
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
    'views in place of tables',
    `${['pets', 'api_keys'].map((name) => `echo '/*!50001 CREATE VIEW \`${name}\` AS SELECT'`).join('; ')}; ${dumpOf('`all_keys`')}`,
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
