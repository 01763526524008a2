/** The SQLite file: its settings, a full disk, a damaged page, triggers, and other processes that use it. */
import { execFileSync } from 'node:child_process'
import { closeSync, openSync, readFileSync, rmSync, statSync, writeSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout } from 'node:timers/promises'
import { expect, onTestFinished, test, vi } from 'vitest'
import { newDatabase } from '../../support/database.ts'
import { addKey, type Instance, startInstance } from '../../support/instance.ts'
import { countPets } from '../../support/pets.ts'
import { programs, runServer, runToEnd } from '../../support/process.ts'
import { restClient } from '../../support/rest.ts'
import { keys, type Service, startService } from '../../support/service.ts'
import { openSql } from '../../support/sql.ts'

const rex = { name: 'Rex', categoryId: 3 }
const unavailable = { status: 503, body: { code: 'SERVICE_UNAVAILABLE' } }

let service: Pick<Service, 'origin' | 'rest' | 'key' | 'sql' | 'databaseUrl'> & {
  stop(): Promise<unknown>
}
let lines: () => string[]
let serial = 0
/** Starts the service for this test in a process of its own, which the test may end. */
async function startProcess(...parameters: Parameters<typeof startInstance>): Promise<Instance> {
  const instance = await startInstance(...parameters)
  onTestFinished(async () => void (await instance.stop()))
  service = instance
  lines = () => instance.program.stderr.split('\n')
  return instance
}
/** Starts the service for this test, on a database that stays when it stops. */
async function start(url?: string): Promise<void> {
  const database = url === undefined ? await newDatabase() : { url, remove: async () => {} }
  onTestFinished(database.remove)
  const started = await startService({}, { database: { ...database, remove: async () => {} } })
  onTestFinished(started.stop)
  service = started
  lines = () => started.logged
}
const create = (more: object = {}) => service.rest('POST', '/pets', { body: { ...rex, ...more } })
const createWithKey = (more: object = {}, key = `"key ${serial++}"`) =>
  service.rest('POST', '/pets', {
    headers: { 'idempotency-key': key },
    body: { ...rex, ...more },
  })
const file = () => service.databaseUrl.slice('sqlite:'.length)

test('a commit waits for the disk, and no wait for a lock blocks the process', async () => {
  const { prepare } = DatabaseSync.prototype
  const inserts: string[][] = []
  const watch = vi.spyOn(DatabaseSync.prototype, 'prepare').mockImplementation(function (
    this: DatabaseSync,
    text,
  ) {
    const read = (name: string) =>
      Object.values(prepare.call(this, `pragma ${name}`).get() ?? {}).join()
    if (/insert into .pets/.test(text))
      inserts.push([read('journal_mode'), read('synchronous'), read('busy_timeout')])
    return prepare.call(this, text)
  })
  onTestFinished(() => watch.mockRestore())
  await start()
  for (const call of [create, createWithKey]) expect((await call()).status).toBe(201)
  expect(inserts.length).toBeGreaterThan(0) // prepared once, with or without a key
  // https://sqlite.org/pragma.html#pragma_synchronous: 2 is FULL.
  for (const settings of inserts) expect(settings).toEqual(['wal', '2', '0'])
})

test('the next release adds columns while this one serves', async () => {
  await start()
  const calls = async () => [
    await createWithKey({}, '"same"'),
    await restClient(service.origin, await addKey(service.sql))('GET', '/pets/1'),
  ]
  const before = await calls()
  for (const table of ['pets', 'idempotency_keys', 'api_keys']) {
    await service.sql(`alter table ${table} add column later bigint default 7`)
  }
  expect((await calls()).map(({ body }) => body)).toEqual(before.map(({ body }) => body))
})

// `prlimit` limits the size of the files that a process may write.
test.runIf(process.platform === 'linux')(
  'a disk without space is 503, with and without a key, until there is space',
  async () => {
    const { program } = await startProcess()
    const first = await create()
    const limitFiles = (bytes: number | string) =>
      execFileSync('prlimit', [`--pid=${program.child.pid}`, `--fsize=${bytes}:unlimited`])
    limitFiles(statSync(`${file()}-wal`).size)
    expect(await create()).toMatchObject(unavailable)
    expect(await createWithKey({}, '"full"')).toMatchObject(unavailable)
    expect((await service.rest('GET', '/pets')).body).toEqual([first.body])
    limitFiles('unlimited')
    expect((await create()).status).toBe(201)
    expect((await createWithKey({}, '"full"')).status).toBe(201)
  },
)

const ready = async () => (await fetch(`${service.origin}/readyz`)).status
const errors = () => lines().filter((line) => /"level":"error"/.test(line))

test('a damaged page that a start does not read: all calls are 503 and it is not ready, with one line', async () => {
  await start()
  for (let count = 0; count < 50; count++) await create({ name: 'x'.repeat(250) })
  await service.sql('pragma wal_checkpoint(truncate)')
  overwrite(statSync(file()).size - 3 * 4096, 3 * 4096)
  await service.stop()
  await start(service.databaseUrl)
  const strange = { headers: { authorization: `Bearer petstore_${'A'.repeat(43)}` } }
  await service.rest('GET', '/pets', strange) // finds the damage
  for (const call of [
    () => service.rest('GET', '/pets'),
    () => service.rest('GET', '/pets', strange),
    create,
    createWithKey,
  ]) {
    expect(await call()).toMatchObject(unavailable)
  }
  expect(await ready()).toBe(503)
  expect((await fetch(`${service.origin}/healthz`)).status).toBe(200)
  await expect.poll(errors).toEqual([expect.stringMatching(/is damaged.+ in docs\/runbook\.md/)])
})

/** Writes other bytes over a part of the file. */
function overwrite(start: number, length: number): void {
  const descriptor = openSync(file(), 'r+')
  writeSync(descriptor, Buffer.alloc(length, 'no database'), 0, length, start)
  closeSync(descriptor)
}

test('damage in a transaction holds neither the lock nor later calls', async () => {
  await start()
  expect((await createWithKey()).status).toBe(201)
  await service.sql('pragma wal_checkpoint(truncate)')
  const index = 'sqlite_autoindex_idempotency_keys_2'
  const [place] = await service.sql('select rootpage from sqlite_schema where name = ?', [index])
  overwrite((Number(place?.rootpage) - 1) * 4096, 4096)
  expect(await createWithKey()).toMatchObject(unavailable)
  await expect.poll(errors).toEqual([expect.stringMatching(/is damaged/)])
  await keys.revoke(service.databaseUrl, 1n)
  const began = performance.now()
  expect(await create()).toMatchObject(unavailable)
  expect(performance.now() - began).toBeLessThan(1_000)
})

test('a removed log is not copied under another process, which has read the file without it', async () => {
  const { program } = await startProcess()
  await create()
  await service.sql('pragma wal_checkpoint(truncate)')
  await create()
  for (const suffix of ['-wal', '-shm']) rmSync(file() + suffix)
  const { databaseUrl: DATABASE_URL, key } = service
  const other = await runServer({ DATABASE_URL })
  onTestFinished(async () => void (await other.end()))
  const rest = restClient(other.origin, key)
  expect((await rest('GET', '/pets')).body).toMatchObject([{ id: 1 }])
  expect(await create()).toMatchObject(unavailable)
  expect((await rest('POST', '/pets', { body: rex })).status).toBe(201)
  await program.end()
  expect((await rest('GET', '/pets')).body).toMatchObject([{ id: 1 }, { id: 2 }])
  // A backup checks the whole file.
  const backup = await runToEnd(programs.backup, { DATABASE_URL }, ['made.db'])
  expect(backup).toMatchObject({ code: 0, stderr: '' })
})

test('a reader with an older snapshot delays only until its end that a lost log is saved', async () => {
  const { program } = await startProcess()
  await using reader = await openSql(service.databaseUrl)
  await reader('begin')
  await reader('select count(*) from pets')
  await create()
  for (const suffix of ['-wal', '-shm']) rmSync(file() + suffix)
  expect(await create()).toMatchObject(unavailable)
  await reader('commit')
  expect(await ready()).toBe(503)
  await program.end('SIGKILL')
  await using sql = await openSql(service.databaseUrl)
  expect(await sql('select name from pets')).toEqual([{ name: 'Rex' }])
})

test('once another process has made a new log, the service writes nothing of the lost one', async () => {
  const { program } = await startProcess()
  for (let count = 0; count < 3; count++) await create({ name: 'Lost' })
  for (const suffix of ['-wal', '-shm']) rmSync(file() + suffix)
  const run = (...words: string[]) =>
    runToEnd(programs.keys, { DATABASE_URL: service.databaseUrl }, words)
  expect(await run('create', 'kept', '--forever')).toMatchObject({ code: 0 })
  const before = readFileSync(file())
  expect(await create()).toMatchObject(unavailable)
  expect(await ready()).toBe(503)
  expect(readFileSync(file()).equals(before)).toBe(true)
  await program.end('SIGTERM')
  expect((await run('list')).stdout).toContain('kept')
})

test('a row that a trigger ignores is 500, and nothing of its transaction stays', async () => {
  await start()
  await service.sql('create table seen (name text)')
  await service.sql(`create trigger ignore_blank before insert on pets when new.name = 'Ignored'
    begin insert into seen values (new.name); select raise(ignore); end`)
  const others = Array.from({ length: 5 }, (_, index) => create({ name: `Rex ${index}` }))
  const ignored = [create({ name: 'Ignored' }), createWithKey({ name: 'Ignored' })]
  for (const { status } of await Promise.all(ignored)) expect(status).toBe(500)
  for (const { status } of await Promise.all(others)) expect(status).toBe(201)
  expect(await countPets(service.sql)).toBe(5)
  expect(await service.sql('select * from seen')).toEqual([])
  expect(await service.sql('select id from idempotency_keys')).toEqual([])
})

test('a log that another process empties after its last copy loses nothing', async () => {
  const database = await newDatabase()
  onTestFinished(database.remove)
  const { stop } = await startProcess({}, database)
  let made = 0
  let goesOn = true
  const creations = Array.from({ length: 4 }, async () => {
    while (goesOn) {
      expect((await create()).status).toBe(201)
      made++
    }
  })
  await using other = await openSql(database.url)
  for (let turn = 0; turn < 50; turn++) {
    await other('pragma wal_checkpoint(truncate)')
    await setTimeout(10)
  }
  goesOn = false
  await Promise.all(creations)
  expect(errors()).toEqual([])
  expect(await ready()).toBe(200)
  await stop('SIGKILL')
  await start(database.url)
  expect(await countPets(service.sql)).toBe(made)
})
