/** `npm run backup` and `npm run restore` while a service uses the database. */
import { execFileSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import {
  chmodSync,
  copyFileSync,
  existsSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import path from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setImmediate, setTimeout } from 'node:timers/promises'
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { backUp, restore } from '../../db/backup.ts'
import { TABLES } from '../../db/migrations.ts'
import { pass } from '../support/clock.ts'
import { engine, newFolder } from '../support/database.ts'
import { instanceForFile, until } from '../support/instance.ts'
import {
  mayTrace,
  programs,
  runProgram,
  runServer,
  runToEnd,
  traceNames,
} from '../support/process.ts'
import { restClient } from '../support/rest.ts'
import { keys } from '../support/service.ts'

// One service for all tests; each test uses only its own pets.
const service = await instanceForFile()
const source = service.databaseUrl.slice('sqlite:'.length)

let folder: string
beforeEach(() => {
  folder = newFolder()
})

/** Starts eight clients that create pets with a unique name, each one after another, until `stop`. */
function createAll(kind: string) {
  const name = `${kind} ${randomUUID()}`
  /** The bodies of the pets, and all statuses. */
  const load = { acknowledged: [] as string[], statuses: new Set<number>() }
  let goesOn = true
  const create = async (worker: number) => {
    for (let round = 0; goesOn; round++) {
      const body = { name: `${name} ${worker}.${round}`, categoryId: 9007199254740993n }
      const made = await service.rest('POST', '/pets', { body })
      load.statuses.add(made.status)
      if (made.status === 201) load.acknowledged.push(made.text)
    }
  }
  const clients = Array.from({ length: 8 }, (_, worker) => create(worker))
  const stop = async () => {
    goesOn = false
    await Promise.all(clients)
  }
  onTestFinished(stop)
  const created = (count: number) => until(`${count} pets`, () => load.acknowledged.length >= count)
  return Object.assign(load, { created, stop })
}

const run = (program: 'backup' | 'restore', file: string, url = service.databaseUrl) =>
  runToEnd(programs[program], { DATABASE_URL: url }, [file], folder)
const at = (name: string) => path.join(folder, name)
/** Makes a backup for a test of something else, without a process. */
const make = (file: string) => backUp(source, at(file))
/** Fails unless a backup, or a restore, is rejected in one line that has this reason. */
const rejects = async (made: Promise<void>, reason: string) => {
  const { message, cause = { message } } = await made.then(
    () => expect.unreachable(reason),
    (error) => error,
  )
  expect(cause.message).toMatch(new RegExp(`^.*${reason}.*$`))
}
/** The text of a file that is no database. */
const NO_DATABASE = 'This is no database.'.repeat(500)
const done = { code: 0, stderr: '' }
/** What a command prints that fails, for a reason that begins like this. */
const fails = (reason: string) => ({
  code: 1,
  stdout: '',
  stderr: expect.stringMatching(new RegExp(`^Cannot [^\\n]+: ${reason}[^\\n]*\\n$`)),
})
const create = async () =>
  (await service.rest('POST', '/pets', { body: { name: 'Rex', categoryId: 1 } })).body as {
    id: number
  }
const textOf = async (text: string, rest = service.rest) =>
  (await rest('GET', `/pets/${JSON.parse(text).id}`)).text
/** Changes a database by SQL. */
function change(name: string, sql: string): void {
  const database = new DatabaseSync(at(name), { defensive: false })
  database.exec(sql)
  database.close()
}
/** SQL that adds an index without its entries, with which SQLite reads the file without an error. */
const DAMAGE = `create table more (id integer primary key, name text);
  insert into more (name) values ('Rex'); create index more_name on more (name) where false;
  pragma writable_schema = on;
  update sqlite_schema set sql = 'create index more_name on more (name)' where name = 'more_name'`
const NO_MARK = 'drop table kysely_migration; pragma application_id = 0'
const OTHER = `${TABLES.map((table) => `drop table ${table};`).join('')} delete from kysely_migration`
const pages = (size: number) => `pragma page_size = ${size}; vacuum`

function makePipe(): void {
  rmSync(at('bad.db'))
  execFileSync('mkfifo', [at('bad.db')])
}

describe.runIf(engine === 'sqlite')('the embedded database', () => {
  test('a backup under load, restored elsewhere, has every pet acknowledged before it', async () => {
    const load = createAll('Rex')
    await load.created(200)
    const before = [...load.acknowledged]
    expect(await run('backup', 'monday.db')).toEqual({
      ...done,
      stdout: `Backed up to monday.db: ${source}\n`,
    })
    await load.created(load.acknowledged.length + 1) // the load continues
    await load.stop()
    expect([...load.statuses]).toEqual([201])
    // One file without a separate log, which only its owner may read.
    expect(readdirSync(folder)).toEqual(['monday.db'])
    expect(statSync(at('monday.db')).mode & 0o777).toBe(0o600)

    // A copy from another machine, such as by a program with its own rights.
    chmodSync(at('monday.db'), 0o644)
    const restored = at('data/restored.db')
    const url = `sqlite:${restored}`
    expect(await run('restore', 'monday.db', url)).toEqual({
      ...done,
      stdout: `Restored monday.db: ${restored}\n`,
    })
    expect(statSync(restored).mode & 0o777).toBe(0o600)
    const server = await runServer({ DATABASE_URL: url }, folder)
    onTestFinished(async () => void (await server.end()))
    const rest = restClient(server.origin, service.key)
    for (const text of before) expect(await textOf(text, rest)).toBe(text)
  })

  test('a restore that is killed leaves the whole database in a new place, or none', async () => {
    await create()
    await make('killed.db')
    const file = at('new.db')
    const variables = { DATABASE_URL: `sqlite:${file}` }
    const restoring = runProgram(programs.restore, variables, ['killed.db'], folder)
    // It ends if it is faster.
    while (!existsSync(file) && restoring.child.exitCode === null) await setImmediate()
    await restoring.end('SIGKILL')
    using database = new DatabaseSync(file)
    const { count } = database.prepare('select count(*) as count from pets').get() ?? {}
    expect(count).toBeGreaterThan(0)
  })

  test('a restore under load replaces all pets, and the service continues', async () => {
    const kept = createAll('Kept')
    await kept.created(50)
    await kept.stop()
    expect(await run('backup', 'kept.db')).toMatchObject(done)
    const lost = createAll('Lost')
    await lost.created(50)
    const before = new Set(lost.acknowledged.map((text) => JSON.parse(text).name))
    expect(await run('restore', 'kept.db')).toMatchObject(done)
    const count = lost.acknowledged.length
    await lost.created(count + 50)
    await lost.stop()
    expect([...lost.statuses].filter((status) => ![201, 503].includes(status))).toEqual([])
    for (const text of kept.acknowledged) expect(await textOf(text)).toBe(text)
    const names = (await service.sql('select name from pets')).map(({ name }) => name)
    expect(names.filter((name) => before.has(name))).toEqual([])
    const late = lost.acknowledged.slice(count).map((text) => JSON.parse(text).name)
    expect(names).toEqual(expect.arrayContaining(late))
    const [integrity] = await service.sql('pragma integrity_check')
    expect(integrity).toEqual({ integrity_check: 'ok' })
  })

  test('a restore migrates a backup of an earlier release, and assigns no id again', async () => {
    await make('old.db')
    change(
      'old.db',
      "drop table idempotency_keys; delete from kysely_migration where name = '2026-11-21-idempotency-keys'",
    )
    const [pet, key] = [await create(), await keys.create(service.databaseUrl, 'lost')]
    await restore(source, at('old.db'))
    expect((await fetch(`${service.origin}/readyz`)).status).toBe(200)
    expect((await create()).id).toBeGreaterThan(pet.id)
    const { id } = await keys.create(service.databaseUrl, 'made')
    expect(id).toBeGreaterThan(key.id)
  })

  test.each<
    [what: string, spoil: string | (() => void), reason: string, ofBackup?: false | string]
  >([
    ['damaged', DAMAGE, 'the database is damaged'],
    ['of before marks', NO_MARK, 'its table api_keys belongs to another program', false],
    ['of another program', OTHER, 'it is no database of this service: no such table'],
    ['without pets', 'drop table pets', 'it is no database of this service: no such table: pets'],
    ['without keys', 'drop table idempotency_keys', 'no such table: idempotency_keys'],
    ['of other pages', pages(8192), 'attempt to write a readonly database', false],
    ['cut', () => truncateSync(at('bad.db'), 20_480), 'database disk image is malformed'],
    ['a text', () => writeFileSync(at('bad.db'), NO_DATABASE), 'file is not a database'],
    ['empty', () => truncateSync(at('bad.db')), 'it is no database of this service: no such table'],
    ['missing', () => rmSync(at('bad.db')), 'bad.db does not exist'],
    ['a pipe', makePipe, 'bad.db does not exist, or is not a file', 'bad.db is not a file'],
  ])(
    'what is %s is neither restored nor backed up',
    async (_, spoil, reason, ofBackup = reason) => {
      const { id } = await create()
      await make('bad.db')
      if (typeof spoil === 'string') change('bad.db', spoil)
      else spoil()
      const before = readdirSync(folder)
      await rejects(restore(source, at('bad.db')), reason)
      if (ofBackup) await rejects(backUp(at('bad.db'), at('monday.db')), ofBackup)
      expect(readdirSync(folder)).toEqual(before)
      expect((await service.rest('GET', `/pets/${id}`)).status).toBe(200)
    },
  )

  test('a backup of other pages is restored once it has those of the database, as docs/limits.md says', async () => {
    const { id } = await create()
    await make('pages.db')
    for (const size of [8192, 4096]) change('pages.db', pages(size))
    await restore(source, at('pages.db'))
    expect((await service.rest('GET', `/pets/${id}`)).status).toBe(200)
  })

  test('no restore replaces the database of another program', async () => {
    await make('good.db')
    change('stranger.db', 'create table invoices (id)')
    const restored = restore(at('stranger.db'), at('good.db'))
    await rejects(restored, 'its table invoices belongs to another program')
  })

  test.each(['-wal', '-shm', '-journal'])(
    'a restore reads no %s beside the backup, and leaves both as they are',
    async (suffix) => {
      await make('monday.db')
      await create() // into the log of the service, whose pages fit the backup
      if (suffix === '-journal') writeFileSync(at('monday.db-journal'), 'strange')
      else copyFileSync(source + suffix, at(`monday.db${suffix}`))
      const contents = () => readdirSync(folder).map((name) => readFileSync(at(name)))
      const before = contents()
      const reason = `monday\\.db${suffix} lies beside it: move it away`
      await rejects(restore(source, at('monday.db')), reason)
      expect(contents()).toEqual(before)
    },
  )

  test.each<[what: string, spoil: (file: string) => void]>([
    ['a text', (file) => writeFileSync(file, NO_DATABASE)],
    [
      'damaged',
      (file) => {
        using database = new DatabaseSync(file)
        const page = database.prepare(
          "select rootpage from sqlite_schema where name = 'sqlite_sequence'",
        )
        const start = (Number(page.get()?.rootpage) - 1) * 4_096
        const bytes = readFileSync(file)
        writeFileSync(file, bytes.fill('no page', start, start + 4_096))
      },
    ],
  ])('a restore onto a database that is %s says what to move away first', async (_, spoil) => {
    await make('monday.db')
    await make('bad.db')
    spoil(at('bad.db'))
    const reason =
      'bad.db is damaged, too: stop the service, move \\S*bad.db and what lies beside it'
    await rejects(restore(at('bad.db'), at('monday.db')), reason)
    for (const left of readdirSync(folder).filter((file) => file.startsWith('bad.db'))) {
      renameSync(at(left), at(`old-${left}`))
    }
    await restore(at('bad.db'), at('monday.db'))
  })

  test.each(['monday.db', 'monday.db-journal', 'monday.db-wal', 'monday.db-shm'])(
    'a backup overwrites no %s',
    async (name) => {
      writeFileSync(at(name), 'mine')
      await rejects(make('monday.db'), `${name} exists: choose another FILE`)
      expect(readdirSync(folder)).toEqual([name])
      expect(readFileSync(at(name), 'utf8')).toBe('mine')
    },
  )

  test('both commands say in one line why they fail', async () => {
    writeFileSync(at('bad.db'), NO_DATABASE)
    const reason = fails('file is not a database')
    expect(await run('backup', 'monday.db', 'sqlite:bad.db')).toEqual(reason)
    expect(await run('restore', 'bad.db')).toEqual(reason)
    await rejects(make('nowhere/monday.db'), 'ENOENT')
    expect(readdirSync(folder)).toEqual(['bad.db'])
  })

  test('of two backups to one file one succeeds; one that is ended leaves no file', async () => {
    await make('held.db')
    // Without a separate log, the lock also stops readers.
    const holder = new DatabaseSync(at('held.db'))
    onTestFinished(() => holder.close())
    holder.exec('begin exclusive')
    /** Starts a backup that waits for the lock, until it has begun its file. */
    const startHeld = async () => {
      const before = readdirSync(folder).length
      const variables = { DATABASE_URL: 'sqlite:held.db' }
      const held = runProgram(programs.backup, variables, ['monday.db'], folder)
      await until('the backup has begun', () => readdirSync(folder).length > before)
      return held
    }
    expect(await (await startHeld()).end('SIGTERM')).toBe(143)
    expect(await (await startHeld()).end('SIGINT')).toBe(130)
    expect(readdirSync(folder)).toEqual(['held.db'])
    await (await startHeld()).end('SIGKILL')
    const left = readdirSync(folder).sort()
    expect(left).toEqual(['held.db', expect.stringMatching(/^monday\.db\.part-\w{6}$/)])
    const both = [await startHeld(), await startHeld()]
    holder.exec('rollback')
    expect((await Promise.all(both.map(({ exited }) => exited))).sort()).toEqual([0, 1])
    expect(both.map(({ stderr }) => stderr).join('')).toMatch(/^Cannot [^\n]+: EEXIST: [^\n]+\n$/)
    expect(readdirSync(folder).sort()).toEqual([...left.slice(0, 1), 'monday.db', ...left.slice(1)])
    expect(await run('restore', 'monday.db', 'sqlite:again.db?create')).toMatchObject(done)
  })

  test.runIf(mayTrace())(
    'the new name of a backup, and of a database, is on the disk',
    async () => {
      for (const [program, args, url] of [
        ['backup', ['monday.db'], service.databaseUrl],
        ['restore', ['monday.db'], 'sqlite:new.db'],
      ] as const) {
        const variables = { DATABASE_URL: url }
        const starter = traceNames(at(program))
        const traced = await runToEnd(programs[program], variables, [...args], folder, starter)
        expect(traced).toMatchObject(done)
        const calls = readFileSync(at(program), 'utf8')
        const given = program === 'backup' ? 'rename' : 'link'
        expect(calls).toMatch(new RegExp(`${given}\\(".+ fsync\\(\\d+<${folder}>\\) += 0`, 's'))
      }
    },
  )

  test('a restore waits for another process that holds the database', async () => {
    await make('monday.db')
    await service.sql('begin immediate')
    let isOver = false
    const restored = restore(source, at('monday.db')).finally(() => (isOver = true))
    await setTimeout(500)
    expect(isOver).toBe(false)
    await service.sql('rollback')
    await restored
  })

  test('a backup fails if another process holds the database for half a minute', async () => {
    const holder = new DatabaseSync(at('held.db'))
    onTestFinished(() => holder.close())
    holder.exec('begin exclusive') // without a separate log, it also stops readers
    const before = readdirSync(folder)
    const made = backUp(at('held.db'), at('monday.db'))
    pass(30_000)
    await expect(made).rejects.toThrow('other processes hold the database')
    expect(readdirSync(folder)).toEqual(before)
  })

  test('a backup of a large database ends while another process writes all the time', async () => {
    const writer = new DatabaseSync(at('large.db'))
    onTestFinished(() => writer.close())
    writer.exec(`pragma journal_mode = wal; pragma synchronous = off;
      ${TABLES.map((table) => `create table ${table} (id integer);`).join(' ')}
      create table large (text text); insert into large select zeroblob(8000000)`)
    let isOver = false
    const made = backUp(at('large.db'), at('copied.db'))
    void made.finally(() => (isOver = true))
    const end = performance.now() + 60_000
    while (!isOver && performance.now() < end) {
      writer.exec("insert into large values ('more')")
      await setImmediate()
    }
    expect(isOver).toBe(true)
    await made
  })
})

test.runIf(engine === 'mysql')('for MySQL, both commands name the alternative', async () => {
  for (const program of ['backup', 'restore'] as const) {
    expect(await run(program, 'monday.db')).toEqual({
      code: 1,
      stdout: '',
      stderr:
        'This command copies only the embedded database; for MySQL use mysqldump --single-transaction\n',
    })
  }
})
