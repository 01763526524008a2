/** The SQLite file: its settings, a lock of another process, a full disk, and a damaged file. */

import { execFileSync } from 'node:child_process'
import { statSync, truncateSync, writeFileSync } from 'node:fs'
import { expect, onTestFinished, test } from 'vitest'
import { withDatabase } from '../../../src/process/program.ts'
import { newDatabase } from '../../support/database.ts'
import { outOfThree } from '../../support/eventually.ts'
import { addKey, type Instance, startInstance } from '../../support/instance.ts'
import { newFolder } from '../../support/process.ts'
import { keys } from '../../support/service.ts'
import { openSql } from '../../support/sql.ts'
import { watchedSqlite } from '../../support/watched.ts'

const rex = { name: 'Rex', categoryId: 3 }
const unavailable = { status: 503, body: { code: 'SERVICE_UNAVAILABLE' } }

let service: Instance
let serial = 0
/** Starts the service for this test. */
async function startService(...parameters: Parameters<typeof startInstance>): Promise<void> {
  service = await startInstance(...parameters)
  onTestFinished(async () => void (await service.stop()))
}
const create = (more: object = {}) => service.rest('POST', '/pets', { body: { ...rex, ...more } })
const createWithKey = (more: object = {}, key = `"key ${serial++}"`) =>
  service.rest('POST', '/pets', {
    headers: { 'idempotency-key': key },
    body: { ...rex, ...more },
  })
const file = () => service.databaseUrl.slice('sqlite:'.length)

test('only the owner may read a new database', async () => {
  const { folder, remove } = newFolder()
  onTestFinished(remove)
  const file = `${folder}/data/petstore.db`
  await withDatabase({ databaseUrl: `sqlite:${file}?create` }, () => {
    for (const name of [file, `${file}-wal`, `${file}-shm`]) {
      expect(statSync(name).mode & 0o777, name).toBe(0o600)
    }
  })
})

test('a commit waits for the disk, and no wait for a lock blocks the process', async () => {
  await startService(watchedSqlite())
  expect((await create()).status).toBe(201)
  expect((await createWithKey()).status).toBe(201)
  const lines = service.program.stderr.split('\n').filter((line) => /insert into .pets/.test(line))
  expect(lines.length).toBeGreaterThan(0) // prepared once, with or without a key
  for (const line of lines) {
    const [, journal, synchronous, busy] = /^sqlite \[(\w+),(\d),(\d+)\]/.exec(line) ?? []
    // https://sqlite.org/pragma.html#pragma_synchronous: 2 is FULL.
    expect([journal, synchronous, busy]).toEqual(['wal', '2', '0'])
  }
  const [mode] = await service.sql('pragma journal_mode')
  expect(mode).toEqual({ journal_mode: 'wal' })
})

test('a creation waits for the short transaction of another process', outOfThree, async () => {
  await startService()
  await service.rest('GET', '/pets')
  for (const call of [create, createWithKey]) {
    await using other = await openSql(service.databaseUrl)
    await other('begin immediate')
    const answer = call()
    await new Promise((resolve) => setTimeout(resolve, 700))
    await other('rollback')
    const released = performance.now()
    expect((await answer).status).toBe(201)
    expect(performance.now() - released).toBeLessThan(250)
  }
  expect(await service.countPets()).toBe(2)
})

test(
  'another process holds the write lock: creations are 503, and reads succeed',
  outOfThree,
  async () => {
    await startService({ DATABASE_TIMEOUT: '2s' })
    expect((await create()).status).toBe(201)
    const strange = { authorization: `Bearer ${await addKey(service.sql)}` }
    await using other = await openSql(service.databaseUrl)
    await other('begin immediate')
    let isOver = false
    const start = performance.now()
    const refused = Promise.all([create(), createWithKey()]).finally(() => (isOver = true))
    const headers = { authorization: `Bearer ${service.key}` }
    const reads: [path: string, init?: RequestInit][] = [
      ['/healthz'],
      ['/readyz'],
      ['/v1/pets/1', { headers }],
      ['/v1/pets', { headers: strange }], // a key outside the cache
    ]
    let slowest = 0
    while (!isOver) {
      for (const [path, init] of reads) {
        const began = performance.now()
        expect((await fetch(service.origin + path, init)).status, path).toBe(200)
        slowest = Math.max(slowest, performance.now() - began)
      }
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
    expect(slowest, 'the wait does not block the process').toBeLessThan(400)
    const answers = await refused
    for (const answer of answers) {
      expect(answer).toMatchObject(unavailable)
      expect(answer.headers.get('retry-after')).toBe('5')
    }
    const took = performance.now() - start
    expect(took).toBeGreaterThan(1_990)
    expect(took).toBeLessThan(4_000)
    await other('rollback')
    await other.close()
    expect((await create()).status).toBe(201)
    expect(await service.countPets()).toBe(2)
  },
)

test('DATABASE_TIMEOUT limits the wait for another process', outOfThree, async () => {
  await startService({ DATABASE_TIMEOUT: '50ms' })
  await create()
  await using other = await openSql(service.databaseUrl)
  await other('begin immediate')
  const times: number[] = []
  for (let round = 0; round < 3; round++) {
    const start = performance.now()
    expect(await create()).toMatchObject(unavailable)
    times.push(performance.now() - start)
  }
  // The fastest, because the machine may be busy. Without the limit it would take 500 ms and more.
  expect(Math.min(...times)).toBeLessThan(450)
  await other('rollback')
})

test('a full database is 503, with and without a key; reads continue, and no creation is incomplete', async () => {
  await startService(watchedSqlite('max_page_count = 60'))
  const long = { name: '🐶'.repeat(255) }
  let made = 0
  let last = await createWithKey(long)
  for (; last.status === 201; last = await createWithKey(long)) {
    made++
    expect(made).toBeLessThan(400)
  }
  expect(last).toMatchObject(unavailable)
  for (let filler = 0; filler < 100; filler++) {
    const { status } = await create(long)
    if (status === 201) made++
    else {
      expect(status).toBe(503)
      break
    }
  }
  expect(await create(long)).toMatchObject(unavailable)
  expect((await service.rest('GET', '/pets')).status).toBe(200)
  expect((await service.rest('GET', '/pets/1')).status).toBe(200)
  expect(await service.countPets()).toBe(made)
  const [keys] = await service.sql('select count(*) as count from idempotency_keys')
  expect(Number(keys?.count)).toBeLessThanOrEqual(made)
})

// `prlimit` limits the size of the files that a process may write.
test.runIf(process.platform === 'linux')(
  'a disk without space is 503, with and without a key, until there is space',
  async () => {
    await startService()
    const first = await create()
    const limitFiles = (bytes: number | string) =>
      execFileSync('prlimit', [`--pid=${service.program.child.pid}`, `--fsize=${bytes}:unlimited`])
    limitFiles(statSync(`${file()}-wal`).size)
    expect(await create()).toMatchObject(unavailable)
    expect(await createWithKey({}, '"full"')).toMatchObject(unavailable)
    expect((await service.rest('GET', '/pets')).body).toEqual([first.body])
    limitFiles('unlimited')
    expect((await create()).status).toBe(201)
    expect((await createWithKey({}, '"full"')).status).toBe(201)
  },
)

test('a read-only database: creations are 503, and reads are 200', async () => {
  const database = await newDatabase()
  onTestFinished(database.remove)
  await keys.create(database.url, 'first') // creates the tables
  await startService(watchedSqlite('query_only = 1'), database)
  for (const call of [create, createWithKey]) {
    const refused = await call()
    expect(refused).toMatchObject(unavailable)
    expect(refused.headers.get('retry-after')).toBe('5')
  }
  expect((await service.rest('GET', '/pets')).status).toBe(200)
  expect(await service.countPets()).toBe(0)
})

test('a damaged file: all calls are 503', async () => {
  await startService()
  expect((await create()).status).toBe(201)
  await service.sql('pragma wal_checkpoint(truncate)')
  const strange = { headers: { authorization: `Bearer petstore_${'A'.repeat(43)}` } }
  for (const breakFile of [
    () => writeFileSync(file(), Buffer.alloc(65_536, 'no database')),
    () => truncateSync(file()),
  ]) {
    breakFile()
    for (const call of [
      () => service.rest('GET', '/pets'),
      () => service.rest('GET', '/pets/1'),
      () => service.rest('GET', '/pets', strange),
      create,
      createWithKey,
    ]) {
      expect(await call()).toMatchObject(unavailable)
    }
    expect((await fetch(`${service.origin}/healthz`)).status).toBe(200)
  }
})
