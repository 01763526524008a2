/** `npm run backup` and `npm run restore` while a service uses the database. */
import { execFile, execFileSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import {
  copyFileSync,
  existsSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import path from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setImmediate } from 'node:timers/promises'
import { promisify } from 'node:util'
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { backUp } from '../../db/backup.ts'
import { engine, newDatabase } from '../support/database.ts'
import { instanceForFile, startInstance, until } from '../support/instance.ts'
import {
  newFolder,
  type Program,
  programs,
  runProgram,
  runServer,
  runToEnd,
} from '../support/process.ts'
import { restClient } from '../support/rest.ts'

// One service for all tests; each test uses only its own pets.
const service = await instanceForFile()

let folder: string
beforeEach(() => {
  const place = newFolder()
  folder = place.folder
  onTestFinished(place.remove)
})

/** The responses to creations: the body of each pet, and all statuses. */
interface Load {
  acknowledged: string[]
  statuses: Set<number>
  stop(): Promise<void>
}

/** Starts eight clients that create pets with a unique name, each one after another, until `stop`. */
function createAll(kind: string): Load {
  const name = `${kind} ${randomUUID()}`
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
  return Object.assign(load, { stop })
}

const run = (program: 'backup' | 'restore', file: string, url = service.databaseUrl) =>
  runToEnd(programs[program], { DATABASE_URL: url }, [file], folder)

const keysProgram = (name: string) =>
  runToEnd(programs.keys, { DATABASE_URL: service.databaseUrl }, ['create', name, '--json'], folder)

/** Adds an index without its entries, with which SQLite reads the file without an error. */
function damage(file: string): void {
  const database = new DatabaseSync(file, { defensive: false })
  database.exec(`create table more (id integer primary key, name text);
    insert into more (name) values ('Rex'); create index more_name on more (name) where false;
    pragma writable_schema = on;
    update sqlite_schema set sql = 'create index more_name on more (name)'
    where name = 'more_name'`)
  database.close()
}

describe.runIf(engine === 'sqlite')('the embedded database', () => {
  test('a backup under load, restored elsewhere, has every pet acknowledged before it', async () => {
    const load = createAll('Rex')
    await until('the load runs', () => load.acknowledged.length >= 200)
    const before = [...load.acknowledged]
    const file = path.join(folder, 'monday.db')
    const source = service.databaseUrl.slice('sqlite:'.length)
    expect(await run('backup', file)).toEqual({
      code: 0,
      stdout: `Backed up to ${file}: ${source}\n`,
      stderr: '',
    })
    const count = load.acknowledged.length
    await until('the load continued during the backup', () => load.acknowledged.length > count)
    await load.stop()
    expect([...load.statuses]).toEqual([201])
    // One file without a separate log, which only its owner may read.
    expect(readdirSync(folder)).toEqual(['monday.db'])
    expect(statSync(file).mode & 0o777).toBe(0o600)
    const copy = new DatabaseSync(file, { readOnly: true })
    expect(copy.prepare('pragma journal_mode').get()).toEqual({ journal_mode: 'delete' })
    copy.close()

    const url = `sqlite:${path.join(folder, 'data/restored.db')}`
    expect(await run('restore', 'monday.db', url)).toEqual({
      code: 0,
      stdout: `Restored monday.db: ${url.slice('sqlite:'.length)}\n`,
      stderr: '',
    })
    const server = await runServer({ DATABASE_URL: url }, folder)
    onTestFinished(async () => void (await server.end()))
    const rest = restClient(server.origin, service.key)
    for (const text of before) {
      expect((await rest('GET', `/pets/${JSON.parse(text).id}`)).text).toBe(text)
    }
    expect(statSync(url.slice('sqlite:'.length)).mode & 0o777).toBe(0o600)
  })

  test('a restore under load replaces all pets, and the service continues', async () => {
    const kept = createAll('Kept')
    await until('there are pets to keep', () => kept.acknowledged.length >= 50)
    await kept.stop()
    expect(await run('backup', 'kept.db')).toMatchObject({ code: 0 })

    const lost = createAll('Lost')
    await until('the load runs', () => lost.acknowledged.length >= 50)
    const before = new Set(lost.acknowledged.map((text) => JSON.parse(text).name))
    expect(await run('restore', 'kept.db')).toMatchObject({ code: 0, stderr: '' })
    const count = lost.acknowledged.length
    await until('the service continues', () => lost.acknowledged.length > count + 50)
    await lost.stop()
    expect([...lost.statuses].filter((status) => ![201, 503].includes(status))).toEqual([])
    for (const text of kept.acknowledged) {
      expect((await service.rest('GET', `/pets/${JSON.parse(text).id}`)).text).toBe(text)
    }
    const names = (await service.sql('select name from pets')).map(({ name }) => name)
    expect(names.filter((name) => before.has(name))).toEqual([])
    const late = lost.acknowledged.slice(count).map((text) => JSON.parse(text).name)
    expect(names).toEqual(expect.arrayContaining(late))
    const [integrity] = await service.sql('pragma integrity_check')
    expect(integrity).toEqual({ integrity_check: 'ok' })
  })

  test('a restore migrates a backup of an earlier release', async () => {
    await run('backup', 'old.db')
    const old = new DatabaseSync(path.join(folder, 'old.db'))
    old.exec(
      "drop table idempotency_keys; delete from kysely_migration where name = '2026-11-21-idempotency-keys'",
    )
    old.close()
    expect(await run('restore', 'old.db')).toMatchObject({ code: 0 })
    expect((await fetch(`${service.origin}/readyz`)).status).toBe(200)
    expect((await service.rest('GET', '/pets')).status).toBe(200)
  })

  test('a restore assigns no id again', async () => {
    await run('backup', 'before.db')
    const lost = await service.rest('POST', '/pets', { body: { name: 'Lost', categoryId: 1 } })
    const { id } = JSON.parse((await keysProgram('lost')).stdout)
    expect(await run('restore', 'before.db')).toMatchObject({ code: 0, stderr: '' })
    const made = await service.rest('POST', '/pets', { body: { name: 'Made', categoryId: 1 } })
    expect(JSON.parse(made.text).id).toBeGreaterThan(JSON.parse(lost.text).id)
    expect(JSON.parse((await keysProgram('made')).stdout).id).toBeGreaterThan(id)
  })

  test('a file of SQLite beside the backup stays, and pages of another size are said in words', async () => {
    const journal = path.join(folder, 'monday.db-journal')
    writeFileSync(journal, 'mine')
    expect((await run('backup', 'monday.db')).stderr).toMatch(/: monday\.db-journal exists: choose/)
    expect(readFileSync(journal, 'utf8')).toBe('mine')
    await run('backup', 'tuesday.db')
    const copy = new DatabaseSync(path.join(folder, 'tuesday.db'))
    copy.exec('pragma page_size = 8192; vacuum')
    copy.close()
    expect(await run('restore', 'tuesday.db')).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(
        /^Cannot .+ pages have 8192 bytes, those of the database 4096: /,
      ),
    })
    expect(await run('restore', 'tuesday.db', 'sqlite:new.db')).toMatchObject({ code: 0 })
  })

  test('an invalid backup is rejected in one line, and no pet is lost', async () => {
    const made = await service.rest('POST', '/pets', { body: { name: 'Rex', categoryId: 1 } })
    const listed = await service.rest('GET', '/pets')
    await run('backup', 'good.db')
    const file = (name: string) => path.join(folder, name)
    writeFileSync(file('text.db'), 'This is no database.'.repeat(500))
    writeFileSync(file('empty.db'), '')
    new DatabaseSync(file('foreign.db')).exec('create table kysely_migration (name text)')
    const bytes = readFileSync(file('good.db'))
    writeFileSync(file('short.db'), bytes.subarray(0, bytes.length / 2))
    copyFileSync(file('good.db'), file('damaged.db'))
    damage(file('damaged.db'))
    // Without the table of migrations, the release is unknown.
    copyFileSync(file('good.db'), file('unknown.db'))
    const unknown = new DatabaseSync(file('unknown.db'))
    unknown.exec('drop table kysely_migration')
    unknown.close()
    for (const name of [
      'text.db',
      'empty.db',
      'foreign.db',
      'short.db',
      'damaged.db',
      'unknown.db',
      'missing.db',
    ]) {
      const { code, stdout, stderr } = await run('restore', name)
      expect({ name, code, stdout }).toEqual({ name, code: 1, stdout: '' })
      expect(stderr).toMatch(new RegExp(`^Cannot restore ${name} to [^\\n]+: [^\\n]+\\n$`))
    }
    expect((await service.rest('GET', '/pets')).text).toBe(listed.text)
    expect((await service.rest('GET', `/pets/${JSON.parse(made.text).id}`)).text).toBe(made.text)
    expect(existsSync(file('missing.db'))).toBe(false)
  })

  test('a backup overwrites no file and leaves no incomplete file', async () => {
    const file = path.join(folder, 'there.db')
    writeFileSync(file, 'mine')
    expect(await run('backup', 'there.db')).toEqual({
      code: 1,
      stdout: '',
      stderr: `Cannot back up ${service.databaseUrl.slice('sqlite:'.length)} to there.db: there.db exists: choose another FILE\n`,
    })
    expect(readFileSync(file, 'utf8')).toBe('mine')
    const nowhere = await run('backup', 'nowhere/monday.db')
    expect(nowhere.code).toBe(1)
    expect(nowhere.stderr).toMatch(/^Cannot back up .+ to nowhere\/monday\.db: ENOENT.+\n$/)
    expect(await run('backup', 'monday.db', 'sqlite:none.db')).toEqual({
      code: 1,
      stdout: '',
      stderr: 'Cannot back up none.db to monday.db: none.db does not exist\n',
    })
    // This backup fails after the copy has begun.
    writeFileSync(path.join(folder, 'broken.db'), 'This is no database.'.repeat(500))
    const broken = await run('backup', 'monday.db', 'sqlite:broken.db')
    expect(broken).toMatchObject({ code: 1, stdout: '' })
    expect(broken.stderr).toBe('Cannot back up broken.db to monday.db: file is not a database\n')
    expect(readdirSync(folder).sort()).toEqual(['broken.db', 'there.db'])
  })

  /** Starts a backup that waits for a lock on `held.db`, until it has begun its file. */
  async function startHeld(file: string): Promise<Program> {
    const before = readdirSync(folder).length
    const variables = { DATABASE_URL: 'sqlite:held.db' }
    const held = runProgram(programs.backup, variables, [file], folder)
    await until('the backup has begun', () => readdirSync(folder).length > before)
    return held
  }

  /** Locks a new database `held.db`. Without a separate log, the lock also stops readers. */
  async function holdNew(): Promise<DatabaseSync> {
    await run('backup', 'held.db')
    const holder = new DatabaseSync(path.join(folder, 'held.db'))
    onTestFinished(() => holder.close())
    holder.exec('begin exclusive')
    return holder
  }

  test('a signal ends a backup, and leaves no file', async () => {
    await holdNew()
    for (const [signal, code] of [['SIGTERM', 143] as const, ['SIGINT', 130] as const]) {
      const held = await startHeld('monday.db')
      expect(await held.end(signal)).toBe(code)
      expect(readdirSync(folder)).toEqual(['held.db'])
    }
  })

  test('a backup that was killed does not block the next one to its file', async () => {
    const holder = await holdNew()
    await (await startHeld('monday.db')).end('SIGKILL')
    expect(readdirSync(folder).sort()).toEqual([
      'held.db',
      expect.stringMatching(/^monday\.db\.part-\w{6}$/),
    ])
    holder.exec('rollback')
    expect(await run('backup', 'monday.db')).toMatchObject({ code: 0, stderr: '' })
    expect(await run('restore', 'monday.db', 'sqlite:again.db?create')).toMatchObject({ code: 0 })
  })

  test('of two backups to one file one succeeds', async () => {
    const holder = await holdNew()
    const both = [await startHeld('monday.db'), await startHeld('monday.db')]
    holder.exec('rollback')
    expect((await Promise.all(both.map(({ exited }) => exited))).sort()).toEqual([0, 1])
    expect(both.map(({ stderr }) => stderr).join('')).toMatch(
      /^Cannot back up held\.db to monday\.db: EEXIST: file already exists, .+\n$/,
    )
    expect(readdirSync(folder).sort()).toEqual(['held.db', 'monday.db'])
    expect(statSync(path.join(folder, 'monday.db')).mode & 0o777).toBe(0o600)
    expect(await run('restore', 'monday.db', 'sqlite:again.db?create')).toMatchObject({ code: 0 })
  })

  test('a damaged database is not backed up', async () => {
    await run('backup', 'damaged.db')
    damage(path.join(folder, 'damaged.db'))
    expect(await run('backup', 'monday.db', 'sqlite:damaged.db')).toEqual({
      code: 1,
      stdout: '',
      stderr: 'Cannot back up damaged.db to monday.db: the database is damaged\n',
    })
    expect(readdirSync(folder)).toEqual(['damaged.db'])
  })

  test('a restore waits for another process that holds the database', async () => {
    await run('backup', 'monday.db')
    await service.sql('begin immediate')
    const restored = run('restore', 'monday.db')
    try {
      await new Promise((resolve) => setTimeout(resolve, 2_000))
    } finally {
      await service.sql('rollback')
    }
    const free = performance.now()
    expect(await restored).toMatchObject({ code: 0, stderr: '' })
    expect(performance.now() - free, 'the time after the lock').toBeLessThan(2_500)
  })

  test('a backup of a large database ends while another process writes all the time', async () => {
    const source = path.join(folder, 'large.db')
    const writer = new DatabaseSync(source)
    onTestFinished(() => writer.close())
    writer.exec(`pragma journal_mode = wal; pragma synchronous = off;
      create table large (text text); insert into large select zeroblob(8000000)`)
    let isOver = false
    const made = backUp(source, path.join(folder, 'copied.db')).finally(() => (isOver = true))
    const end = performance.now() + 5_000
    while (!isOver && performance.now() < end) {
      writer.exec("insert into large values ('more')")
      await setImmediate()
    }
    expect(isOver).toBe(true)
    await made
  })
})

describe.runIf(engine === 'mysql')('MySQL', () => {
  test('both commands name the alternative', async () => {
    for (const program of ['backup', 'restore'] as const) {
      expect(await run(program, 'monday.db')).toEqual({
        code: 1,
        stdout: '',
        stderr:
          'This command copies only the embedded database; for MySQL use mysqldump --single-transaction\n',
      })
    }
  })

  test('mysqldump --single-transaction under load has every pet acknowledged before it', async () => {
    const load = createAll('Rex')
    await until('the load runs', () => load.acknowledged.length >= 200)
    const before = [...load.acknowledged]
    const file = path.join(folder, 'petstore.sql')
    const options = (databaseUrl: string) => {
      const { hostname, port, username, password, pathname } = new URL(databaseUrl)
      const account = [`--host=${hostname}`, `--port=${port || 3306}`, `--user=${username}`]
      return [...account, `--password=${password}`, pathname.slice(1)]
    }
    const dump = ['--single-transaction', '--no-tablespaces', `--result-file=${file}`]
    await promisify(execFile)('mysqldump', [...dump, ...options(service.databaseUrl)])
    const count = load.acknowledged.length
    await until('the load continued during the backup', () => load.acknowledged.length > count)
    await load.stop()
    expect([...load.statuses]).toEqual([201])

    const database = await newDatabase()
    onTestFinished(() => database.remove())
    execFileSync('mysql', options(database.url), { input: readFileSync(file) })
    const restored = await startInstance({}, database)
    onTestFinished(async () => void (await restored.stop()))
    for (const text of before) {
      expect((await restored.rest('GET', `/pets/${JSON.parse(text).id}`)).text).toBe(text)
    }
  })
})
