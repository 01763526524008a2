/**
 * What lies at the place of the SQLite file when it is opened, and what happens to its files while a service runs: SQLite
 * would remove them, roll them back, or go on with lost ones, without a word.
 */
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import {
  copyFileSync,
  cpSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { uptime } from 'node:os'
import path from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, beforeEach, expect, onTestFinished, test } from 'vitest'
import { backUp, restore } from '../../../db/backup.ts'
import { connect } from '../../../db/connect.ts'
import { refuseLeftovers } from '../../../db/engines/sqlite/place.ts'
import { migrate } from '../../../db/migrate.ts'
import { execute } from '../../../db/statement.ts'
import { newFolder } from '../../support/database.ts'
import { addKey } from '../../support/instance.ts'
import { failureOf, programs, runProgram, runServer } from '../../support/process.ts'
import { restClient } from '../../support/rest.ts'
import { startService } from '../../support/service.ts'
import { openSql } from '../../support/sql.ts'

const COUNT = 30
const FILE = 'petstore.db'
const LOG = `${FILE}-wal`
const JOURNAL = `${FILE}-journal`
const NO_FILE = /petstore\.db is not a file: move it away, or name another path$/
const url = `sqlite:${FILE}?create`

/** A folder with a backup without pets, and a database whose service was killed: its pets are in its log. */
const { master, key } = await makeMaster()
async function makeMaster() {
  const master = newFolder(afterAll)
  const server = await runServer({ DATABASE_URL: url }, master)
  const key = await withSql((sql) => addKey(sql))
  await backUp(path.join(master, FILE), path.join(master, 'good.db'))
  const rest = restClient(server.origin, key)
  for (let count = 0; count < COUNT; count++) {
    await rest('POST', '/pets', { body: { name: `Rex ${count}`, categoryId: 1 } })
  }
  await server.end('SIGKILL')
  return { master, key }

  async function withSql<Result>(use: (sql: Awaited<ReturnType<typeof openSql>>) => Result) {
    await using sql = await openSql(`sqlite:${path.join(master, FILE)}`)
    return await use(sql)
  }
}

let folder: string
beforeEach(() => {
  folder = newFolder()
  cpSync(master, folder, { recursive: true })
})
const at = (name: string) => path.join(folder, name)

/** The names and contents of all files; a link may lead to none. */
const contents = () =>
  readdirSync(folder).map((name) => [
    name,
    existsSync(at(name)) && readFileSync(at(name), 'base64'),
  ])

/** Runs a program to its end, or to the start-up text of a service. */
async function run(
  program: keyof typeof programs,
  args: string[] = [],
  starter: string[] = [],
  location = url,
) {
  const running = runProgram(
    programs[program],
    { DATABASE_URL: location, PORT: '0' },
    args,
    folder,
    starter,
  )
  if (program === 'server') void running.logged(/is running/).then(() => running.end())
  const code = await running.exited
  return { code, stdout: running.stdout, stderr: running.stderr }
}

/** What the service, and every command but the next two, begins with. Returns the number of pets. */
async function open(file = at(FILE)): Promise<number> {
  await using db = await connect(`sqlite:${file}?create`)
  await migrate(db)
  return (await execute(db, db.kysely.selectFrom('pets').select('id'))).rows.length
}
const backup = (file = at(FILE)) => backUp(file, at('made.db'))
const restored = () => restore(at(FILE), at('good.db'))

/** Returns why a use of the database is refused. */
async function refusalOf(use: Promise<unknown>): Promise<string> {
  const { message, cause = { message } } = await use.then(
    () => expect.unreachable(),
    (error) => error,
  )
  return cause.message
}

/** A journal with which SQLite would roll the file back to the state of the backup. */
function makeStaleJournal(): void {
  const database = new DatabaseSync(at('good.db'))
  database.exec(`pragma journal_mode = delete; pragma synchronous = off; begin immediate;
    update api_keys set name = 'other'; create table more (text text)`)
  copyFileSync(at('good.db-journal'), at(JOURNAL))
  database.exec('rollback')
  database.close()
}

interface State {
  /** Makes it of the database of the killed service, or under a service. */
  make(): unknown
  /** What the message of a start says is wrong; undefined if that finds no fault. */
  says?: RegExp
  /** What the message advises, after which all pets are served. */
  mend?: () => void
  /** What a service logs under which it is made; undefined if the service does not notice. */
  running?: RegExp
  /** Whether that service has saved all pets for the next start. */
  isSaved?: true
}

const GONE = /is no longer the file that the service opened/
const CUT = /petstore\.db-wal, a part of the database, was shortened: .+ in docs\/runbook\.md/
const OVERWRITTEN = /link\.db was overwritten: .+ in docs\/runbook\.md/

const states: Record<string, State> = {
  'an empty file beside its log': {
    make: () => truncateSync(at(FILE)),
    says: /the file is empty, but petstore\.db-wal, a part of the database, lies beside it: put the file back/,
    mend: () => copyFileSync(path.join(master, FILE), at(FILE)),
    running: OVERWRITTEN,
  },
  'an empty file beside its empty log': {
    make: () => {
      for (const name of [FILE, LOG]) truncateSync(at(name))
    },
    says: /the file is empty, but petstore\.db-wal/,
  },
  'a part of a header beside its log': {
    make: () => truncateSync(at(FILE), 99),
    says: /the file is empty, but petstore\.db-wal/,
    mend: () => copyFileSync(path.join(master, FILE), at(FILE)),
    running: OVERWRITTEN,
  },
  'a log without its file': {
    make: () => rmSync(at(FILE)),
    says: /the file is missing, but petstore\.db-wal/,
    mend: () => copyFileSync(path.join(master, FILE), at(FILE)),
    running: GONE,
  },
  'a log without the file that a link leads to': {
    make: () => {
      for (const suffix of ['-wal', '-shm']) renameSync(at(FILE + suffix), at(`target.db${suffix}`))
      rmSync(at(FILE))
      symlinkSync('target.db', at(FILE))
    },
    says: /the file is missing, but target\.db-wal/,
    mend: () => copyFileSync(path.join(master, FILE), at('target.db')),
  },
  'a backup that was copied over the file': {
    make: () => copyFileSync(at('good.db'), at(FILE)),
    says: /petstore\.db-wal is not the write-ahead log of petstore\.db/,
    mend: () => copyFileSync(path.join(master, FILE), at(FILE)),
    running: OVERWRITTEN,
  },
  'another file that was copied over the file': {
    make: () => copyFileSync('package-lock.json', at(FILE)),
    says: /petstore\.db-wal is not the write-ahead log of petstore\.db/,
    running: OVERWRITTEN,
  },
  'a backup that was renamed to the file': {
    make() {
      copyFileSync(at('good.db'), at('other.db'))
      renameSync(at('other.db'), at(FILE))
    },
    says: /petstore\.db-wal is not the write-ahead log of petstore\.db/,
    running: GONE,
  },
  'a backup in the place of the log': {
    make: () => {
      copyFileSync(at('good.db'), at(LOG))
      rmSync(at(`${FILE}-shm`))
    },
    says: /petstore\.db-wal is not the write-ahead log of petstore\.db/,
    mend: () => copyFileSync(path.join(master, LOG), at(LOG)),
    running: GONE,
  },
  'a journal that was copied': {
    make: makeStaleJournal,
    says: /petstore\.db-journal, which is no part of this database, lies beside it: move it away/,
    mend: () => renameSync(at(JOURNAL), at('old-journal')),
  },
  'a shortened log': {
    make: () => truncateSync(at(LOG), statSync(at(LOG)).size / 2),
    says: /petstore\.db-wal, a part of the database, was shortened: put it back/,
    mend: () => copyFileSync(path.join(master, LOG), at(LOG)),
    running: CUT,
  },
  'an empty log': {
    make: () => truncateSync(at(LOG)),
    says: /petstore\.db-wal, a part of the database, was shortened/,
    mend: () => copyFileSync(path.join(master, LOG), at(LOG)),
    running: CUT,
  },
  'a log whose beginning was removed': {
    make: () => writeFileSync(at(LOG), Buffer.alloc(4_096), { flag: 'r+' }),
    says: /petstore\.db-wal, a part of the database, was shortened/,
    mend: () => copyFileSync(path.join(master, LOG), at(LOG)),
  },
  'a removed log': {
    make: () => rmSync(at(LOG)),
    says: /petstore\.db-wal, a part of the database, is missing: put it back/,
    mend: () => copyFileSync(path.join(master, LOG), at(LOG)),
    running: GONE,
    isSaved: true,
  },
  'a removed index': { make: () => rmSync(at(`${FILE}-shm`)), running: GONE, isSaved: true },
  'a removed log and index': {
    make: () => ['-wal', '-shm'].map((suffix) => rmSync(at(FILE + suffix))),
    running: GONE,
    isSaved: true,
  },
  'bytes over the file, whose log is empty': {
    make() {
      using database = new DatabaseSync(at(FILE))
      database.exec('pragma wal_checkpoint(truncate)')
      writeFileSync(at(FILE), Buffer.alloc(65_536, 'no database'), { flag: 'r+' }) // a read finds it
    },
    running: OVERWRITTEN,
  },
  'a file with two names': {
    make: () => linkSync(at(FILE), at('other.db')),
    says: /petstore\.db has 2 names \(hard links\)/,
    mend: () => rmSync(at('other.db')),
  },
  'a log with two names': {
    make: () => linkSync(at(LOG), at('other.db-wal')),
    says: /petstore\.db-wal has 2 names \(hard links\)/,
    mend: () => rmSync(at('other.db-wal')),
  },
}

const rowsWith = (column: 'says' | 'running') =>
  Object.entries(states).filter(([, state]) => state[column])

test.each(rowsWith('says'))(
  '%s is refused, and stays as it is',
  async (_, { make, says, mend }) => {
    make()
    const before = contents()
    for (const use of [open, backup, restored]) {
      expect(await refusalOf(use())).toMatch(says as RegExp)
    }
    expect(contents()).toEqual(before)
    mend?.()
    if (mend) expect(await open()).toBe(COUNT)
  },
)

/** Starts a service by a link, beside whose target the log is. `statuses` makes calls of all kinds. */
async function startUnder() {
  symlinkSync(FILE, at('link.db'))
  const database = { url: `sqlite:${at('link.db')}`, remove: async () => {} }
  const started = await startService({}, { database })
  onTestFinished(started.stop)
  const { rest, origin } = started
  const body = { name: 'Rex', categoryId: 1 }
  const create = async (headers = {}) => (await rest('POST', '/pets', { headers, body })).status
  const keyed = () => create({ 'idempotency-key': `"${randomUUID()}"` })
  const strange = { authorization: `Bearer petstore_${'A'.repeat(43)}` }
  const statuses = async () => [
    (await rest('GET', '/pets', { headers: strange })).status,
    await create(),
    await keyed(),
    (await rest('GET', '/pets')).status,
    (await fetch(`${origin}/readyz`)).status,
    (await fetch(`${origin}/healthz`)).status,
  ]
  return { ...started, create, statuses }
}

test.each(rowsWith('running'))(
  '%s under a service: calls are 503, with one line, and a start has all pets or is refused',
  async (_, { make, says, running, isSaved }) => {
    const { create, statuses, logged, sql, stop } = await startUnder()
    for (let count = 0; count < 5; count++) expect(await create()).toBe(201)
    make()
    await sql.close() // this test reads the files, which would take the locks of that connection
    const [, ...others] = await statuses() // what is in its memory, it may still read
    expect(others).toEqual([503, 503, 503, 503, 200])
    const errors = () => logged.filter((line) => /"level":"error"/.test(line))
    await expect.poll(errors).toEqual([expect.stringMatching(running as RegExp)])
    // As after a kill.
    const next = path.join(newFolder(), 'next')
    cpSync(folder, next, { recursive: true, verbatimSymlinks: true })
    const opened = open(path.join(next, FILE))
    if (isSaved) expect(await opened).toBe(COUNT + 5)
    else expect(await refusalOf(opened)).toMatch(says ?? /not a database/)
    const before = contents()
    await stop()
    expect(contents()).toEqual(before)
  },
)

test('while its folder cannot be looked at, a service acknowledges no creation', async () => {
  const { statuses } = await startUnder()
  const served = [401, 201, 201, 200, 200, 200]
  expect(await statuses()).toEqual(served)
  renameSync(folder, `${folder}-away`)
  symlinkSync(folder, folder) // ELOOP
  const away = await statuses()
  rmSync(folder)
  renameSync(`${folder}-away`, folder)
  expect(away).toEqual([401, 503, 503, 200, 503, 200])
  expect(await statuses()).toEqual(served)
})

test('an index from before the start of the machine says nothing of a log that was emptied', async () => {
  // A tool has copied the log into the file and emptied it. Then the power failed: the disk has the empty log,
  // and the index of before.
  const index = readFileSync(at(`${FILE}-shm`))
  const database = new DatabaseSync(at(FILE))
  database.exec('pragma wal_checkpoint(truncate)')
  copyFileSync(at(FILE), at('whole.db'))
  database.close()
  copyFileSync(at('whole.db'), at(FILE))
  writeFileSync(at(LOG), '')
  writeFileSync(at(`${FILE}-shm`), index)
  await expect(open()).rejects.toThrow() // the log may have been emptied by hand
  const then = new Date(Date.now() - (uptime() + 60) * 1_000)
  utimesSync(at(`${FILE}-shm`), then, then)
  expect(await open()).toBe(COUNT)
})

test.each([
  ['a link to itself', (path: string) => symlinkSync(path, path), /ELOOP/],
  ['a folder', (path: string) => mkdirSync(path), NO_FILE],
])('%s in the place of the database is refused', async (_, make, says) => {
  const place = path.join(newFolder(), FILE)
  make(place)
  for (const use of [open, backup]) expect(await refusalOf(use(place))).toMatch(says)
})

// In processes, which alone would hang if they read it.
test('a pipe in the place of the database is refused in one line', async () => {
  const place = path.join(newFolder(), FILE)
  execFileSync('mkfifo', [place])
  for (const [program, args] of [
    ['server', []],
    ['backup', ['made.db']],
  ] as const) {
    const refused = await run(program, [...args], [], `sqlite:${place}?create`)
    expect(refused).toMatchObject({ code: 1, stdout: '' })
    expect(failureOf(refused.stderr)).toMatch(NO_FILE)
  }
})

test('the service and every command refuse it in one line', async () => {
  truncateSync(at(FILE))
  const before = contents()
  const all = {
    server: [],
    migrate: [],
    seed: [],
    keys: ['list'],
    backup: ['made.db'],
    restore: ['good.db'],
  }
  const runs = Object.entries(all).map(([name, args]) => run(name as keyof typeof all, args))
  for (const refusal of await Promise.all(runs)) {
    const says = /^[^\n]+: the file is empty, but petstore\.db-wal[^\n]+\n$/
    expect(refusal).toEqual({ code: 1, stdout: '', stderr: expect.stringMatching(says) })
  }
  expect(contents()).toEqual(before)
})

/** The starter of a program in a folder of its own mounts, which these shell commands make. */
const withMounts = (commands: string) => {
  const unshare = ['unshare', '--mount', '--map-root-user', 'sh', '-ec']
  return [...unshare, `${commands}; exec "$@"`, 'sh']
}

/** Whether this process may mount: not in every container. */
const mayMount = (): boolean => {
  const [command = '', ...args] = withMounts('mount -t tmpfs tmpfs /mnt')
  return spawnSync(command, [...args, 'true']).status === 0
}

test.runIf(mayMount())('a file that is mounted without its folder is refused', async () => {
  // As `docker run -v ./petstore.db:/app/data/petstore.db` does.
  const starter = withMounts(`mount --bind ${FILE} ${FILE}`)
  const before = contents()
  for (const [program, args] of [
    ['server', []],
    ['backup', ['made.db']],
  ] as const) {
    const refused = await run(program, [...args], starter)
    expect(refused).toMatchObject({ code: 1, stdout: '' })
    expect(failureOf(refused.stderr)).toMatch(
      /petstore\.db is mounted without its folder.+: mount the folder$/,
    )
  }
  expect(contents()).toEqual(before)
})

test.runIf(mayMount()).each([
  ['bytes', 'size=1M', 'cat /dev/zero > other || true'],
  ['files', 'size=1M,nr_inodes=4', 'touch 1 2 3 4 || true'],
])('on a disk without %s, a start and a backup say that it is full', async (_, options, fill) => {
  await open(at('stopped.db')) // a log and its index need space
  mkdirSync(at('disk'))
  const mount = `mount -t tmpfs -o ${options} tmpfs disk; cp stopped.db disk/full.db`
  const starter = withMounts(`${mount}; (cd disk; ${fill}) 2>/dev/null`)
  for (const [program, args] of [
    ['server', []],
    ['backup', ['made.db']],
  ] as const) {
    const refused = await run(program, [...args], starter, 'sqlite:disk/full.db')
    expect(refused).toMatchObject({ code: 1, stdout: '' })
    expect(failureOf(refused.stderr)).toMatch(
      /the disk of \S+\/disk is full .+: free some space, and try again$/,
    )
  }
})

test.runIf(mayMount())(
  'on a disk that is full after a crash, the service starts and reads',
  async () => {
    mkdirSync(at('disk'))
    const fill = 'cat /dev/zero > disk/other 2>/dev/null || true'
    const starter = withMounts(`mount -t tmpfs -o size=2M tmpfs disk; cp ${FILE}* disk; ${fill}`)
    const server = await runServer({ DATABASE_URL: `sqlite:disk/${FILE}` }, folder, starter)
    const rest = restClient(server.origin, key)
    expect((await rest('GET', '/pets?limit=100')).body).toHaveLength(COUNT)
    await server.end()
  },
)

test('a look while another process makes, opens and closes the database refuses nothing', async () => {
  // What goes wrong is seen while a database is made: so it makes many.
  const places = Array.from({ length: 200 }, (_, count) => at(`busy ${count}.db`))
  const code = `import { DatabaseSync } from 'node:sqlite'
    for (const file of ${JSON.stringify(places)}) for (let round = 0; round < 3; round++) {
      using database = new DatabaseSync(file)
      database.exec('pragma journal_mode = wal; pragma synchronous = off; create table if not exists pets (name)')
      for (let row = 0; row < 3; row++) database.exec("insert into pets values ('Rex')")
    }`
  const other = spawn(process.execPath, ['--input-type=module', '-e', code], { stdio: 'inherit' })
  onTestFinished(() => void other.kill('SIGKILL'))
  const ended = once(other, 'exit')
  for (const [count, file] of places.slice(0, -1).entries()) {
    while (!existsSync(`${places[count + 1]}`)) refuseLeftovers(file)
  }
  expect(await ended).toEqual([0, null])
})
