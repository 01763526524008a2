/** The commands migrate and seed, a database that is locked, and output that cannot be written. */
import { existsSync } from 'node:fs'
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { engine, newDatabase, placeOf, testOnce } from '../support/database.ts'
import { programs, runProgram, runToEnd } from '../support/process.ts'
import { openSql } from '../support/sql.ts'

let DATABASE_URL: string
let place: string
beforeEach(async () => {
  const { url, remove } = await newDatabase()
  onTestFinished(remove)
  DATABASE_URL = url
  place = placeOf(url)
})

/** Runs a command without an argument, and returns what it prints. */
async function printed(name: 'migrate' | 'seed'): Promise<string> {
  const { code, stdout, stderr } = await runToEnd(programs[name], { DATABASE_URL })
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  return stdout
}

testOnce('migrate creates the tables once', async () => {
  const migrated = await printed('migrate')
  await using sql = await openSql(DATABASE_URL)
  const rows = await sql('select name from kysely_migration order by name')
  expect(rows.length).toBeGreaterThan(0)
  expect(migrated).toBe(`Migrated ${rows.map(({ name }) => name).join(', ')}: ${place}\n`)
  expect(await printed('migrate')).toBe(`Nothing to migrate: ${place}\n`)
  const name = String(rows[0]?.name)
  await sql('delete from kysely_migration where name = ?', [name])
  const stderr = `Migrating the database: ${name}\n`
  const upgraded = { code: 0, stdout: `Migrated ${name}: ${place}\n`, stderr }
  expect(await runToEnd(programs.migrate, { DATABASE_URL })).toEqual(upgraded)
})

testOnce('seed creates the tables, and adds animals once, of all categories in turn', async () => {
  expect(await printed('seed')).toBe(`Added 42 animals: ${place}\n`)
  await using sql = await openSql(DATABASE_URL)
  const pets = await sql('select name, category_id, status from pets order by id')
  expect(pets.map((pet) => pet.category_id)).toEqual(pets.map((_, at) => BigInt((at % 5) + 1)))
  expect(new Set(pets.slice(0, 10).map(({ status }) => status)).size).toBe(3)
  // Animals that exist are not added again, even with other fields changed.
  await sql("delete from pets where name in ('Bella', 'Minka')")
  await sql("update pets set category_id = 9, status = 'sold' where name = 'Rex'")
  expect(await printed('seed')).toBe(`Added 2 animals: ${place}\n`)
  const again = await sql('select name, category_id, status from pets order by id')
  const added = pets.filter(({ name }) => name === 'Bella' || name === 'Minka')
  expect(again.slice(-2)).toEqual(added)
  const rex = { name: 'Rex', category_id: 9n, status: 'sold' }
  expect(again.filter(({ name }) => name === 'Rex')).toEqual([rex])
  expect(await printed('seed')).toBe(`All animals exist already: ${place}\n`)
})

test('a wait for the lock of the database is reported by commands, and logged by the service', async () => {
  await using locker = await openSql(DATABASE_URL)
  const lock = `'migrations of ${new URL(DATABASE_URL).pathname.slice(1)}'`
  if (engine === 'sqlite') await locker('pragma journal_mode = wal') // readers wait for no lock
  await locker(engine === 'mysql' ? `select get_lock(${lock}, 0)` : 'begin immediate')
  const start = () => runProgram(programs.migrate, { DATABASE_URL })
  const [first, second, third] = [start(), start(), start()]
  const server = runProgram(programs.server, { DATABASE_URL, PORT: '0' })
  for (const migrate of [first, second, third]) {
    await migrate.logged(/^Waiting for the lock of the database/)
  }
  await server.logged(/"msg":"Waiting for the lock of the database/)
  // As process 1 of a container, a program must handle signals itself to exit at them.
  expect(await Promise.all([second.end('SIGTERM'), third.end('SIGINT')])).toEqual([143, 130])
  expect(await server.end('SIGTERM')).toBe(0)
  await locker(engine === 'mysql' ? `select release_lock(${lock})` : 'rollback')
  expect(await first.exited).toBe(0)
})

describe.runIf(existsSync('/dev/full'))('a full disk behind stdout', () => {
  const noSpace = 'Cannot write to stdout: ENOSPC: no space left on device, write'
  const run = (program: keyof typeof programs, ...operands: string[]) => {
    const toFull = ['sh', '-c', 'exec "$@" > /dev/full', 'sh']
    const variables = { DATABASE_URL, PORT: '0' }
    return runProgram(programs[program], variables, operands, undefined, toFull)
  }

  testOnce('is an error of keys, which says that the new key is lost', async () => {
    const created = run('keys', 'create', 'lost', '--forever')
    expect(await created.exited).toBe(1)
    expect(created.stderr).toBe(
      `Created the database ${place}\n${noSpace}. The new key 1 of ${place} is lost: revoke it\n`,
    )
  })

  test.runIf(engine === 'sqlite')('is a warning of a start with a first key', async () => {
    const server = run('server')
    const line = await server.logged(/The start-up text, with any new key, is lost/)
    expect(JSON.parse(line)).toMatchObject({ level: 'warn', err: { message: noSpace } })
    expect(await server.end('SIGTERM')).toBe(0)
  })
})
