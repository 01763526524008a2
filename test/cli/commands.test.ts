/** The commands keys, seed and migrate, run as processes. */
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { engine, newDatabase, type TestDatabase } from '../support/database.ts'
import { type Ended, programs, runProgram, runToEnd } from '../support/process.ts'
import { openSql } from '../support/sql.ts'

let database: TestDatabase
beforeAll(async () => {
  database = await newDatabase()
})
afterAll(() => database.remove())

const command = (name: keyof typeof programs, ...operands: string[]) =>
  runToEnd(programs[name], { DATABASE_URL: database.url }, operands)
/** The name of a database in the output of the commands. */
const displayName = (url: string) =>
  url.startsWith('sqlite:')
    ? url.slice('sqlite:'.length)
    : new URL(url).host + new URL(url).pathname
const keys = (...operands: string[]) => command('keys', ...operands)
const good = ({ code, stderr, stdout }: Ended) => {
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  return stdout
}

test('migrate creates the tables once', async () => {
  const { url, remove } = await newDatabase()
  const migrate = async () => good(await runToEnd(programs.migrate, { DATABASE_URL: url }))
  const migrated = await migrate()
  await using sql = await openSql(url)
  const names = (await sql('select name from kysely_migration order by name')).map(
    ({ name }) => name,
  )
  expect(names.length).toBeGreaterThan(0)
  expect(migrated).toBe(`Migrated ${names.join(', ')}: ${displayName(url)}\n`)
  expect(await migrate()).toBe(`Nothing to migrate: ${displayName(url)}\n`)
  await sql.close()
  await remove()
})

test('a wait for the lock of the database is reported by commands, and logged by the service', async () => {
  const { url, remove } = await newDatabase()
  await using locker = await openSql(url)
  const lock = `'migrations of ${new URL(url).pathname.slice(1)}'`
  await locker(engine === 'mysql' ? `select get_lock(${lock}, 0)` : 'begin immediate')
  const migrate = runProgram(programs.migrate, { DATABASE_URL: url })
  const server = runProgram(programs.server, { DATABASE_URL: url, PORT: '0' })
  await migrate.logged(/^Waiting for the lock of the database/)
  await server.logged(/"msg":"Waiting for the lock of the database/)
  // As process 1 of a container, a program must handle signals itself to exit at them.
  const stopWith = async (signal: NodeJS.Signals) => {
    const stopped = runProgram(programs.migrate, { DATABASE_URL: url })
    await stopped.logged(/^Waiting/)
    stopped.child.kill(signal)
    return await stopped.exited
  }
  expect(await Promise.all([stopWith('SIGTERM'), stopWith('SIGINT')])).toEqual([143, 130])
  await locker(engine === 'mysql' ? `select release_lock(${lock})` : 'rollback')
  expect(await migrate.exited).toBe(0)
  await server.end()
  await locker.close()
  await remove()
})

test('seed creates the tables, and adds animals once, of all categories in turn', async () => {
  const { url, remove } = await newDatabase()
  const seed = async () => good(await runToEnd(programs.seed, { DATABASE_URL: url }))
  expect(await seed()).toBe(`Added 42 animals: ${displayName(url)}\n`)
  await using sql = await openSql(url)
  const pets = await sql('select name, category_id, status from pets order by id')
  const inTurn = [1n, 2n, 3n, 4n, 5n]
  expect(pets.map((pet) => pet.category_id)).toEqual(pets.map((_, index) => inTurn[index % 5]))
  expect(new Set(pets.map(({ name }) => name)).size).toBe(42)
  expect(new Set(pets.slice(0, 10).map(({ status }) => status)).size).toBe(3)
  for (const category of inTurn) {
    const inCategory = pets.filter((pet) => pet.category_id === category)
    expect(new Set(inCategory.map(({ status }) => status)).size, `${category}`).toBe(3)
  }
  // Animals that exist are not added again, even with other fields changed.
  await sql("delete from pets where name in ('Bella', 'Minka')")
  await sql("update pets set category_id = 9, status = 'sold' where name = 'Rex'")
  expect(await seed()).toBe(`Added 2 animals: ${displayName(url)}\n`)
  const again = await sql('select name, category_id, status from pets order by id')
  const added = pets.filter(({ name }) => name === 'Bella' || name === 'Minka')
  expect(again.slice(-2)).toEqual(added)
  expect(again.filter(({ name }) => name === 'Rex')).toEqual([
    { name: 'Rex', category_id: 9n, status: 'sold' },
  ])
  expect(await seed()).toBe(`All animals exist already: ${displayName(url)}\n`)
  await sql.close()
  await remove()
})

test('keys create creates the tables, and prints only the key on stdout', async () => {
  const { code, stdout, stderr } = await keys('create', 'web shop')
  expect(code).toBe(0)
  expect(stdout).toMatch(/^petstore_[\w-]{43}\n$/)
  const name = displayName(database.url)
  expect(stderr).toBe(`This is key 1 of ${name}. Keep it: it is not shown again.\n`)
})

test('keys create stores the unchanged name, up to 255 characters, and the expiry', async () => {
  // 255 characters, many of which have length 2 in JavaScript.
  const name = ` ${'🐶'.repeat(251)}  x`
  const before = Date.now()
  const key = (await keys('create', name, '--expires', '90d')).stdout.trim()
  const after = Date.now()
  await using sql = await openSql(database.url)
  const [row = {}] = await sql('select * from api_keys where id = 2')
  const [createdAt, expiresAt] = [Number(row.created_at), Number(row.expires_at)]
  expect(createdAt).toBeGreaterThanOrEqual(before)
  expect(createdAt).toBeLessThanOrEqual(after)
  expect(expiresAt - 90 * 86_400_000).toBeGreaterThanOrEqual(before)
  expect(expiresAt - 90 * 86_400_000).toBeLessThanOrEqual(after)
  expect(row).toEqual({
    id: 2n,
    name,
    prefix: key.slice(0, 15),
    hash: createHash('sha256').update(key).digest('hex'),
    created_at: BigInt(createdAt),
    expires_at: BigInt(expiresAt),
    revoked_at: null,
    last_used_at: null,
    read_only: 0n,
    grace_until: null,
    holder: expect.any(BigInt),
  })
})

test('keys rotate and keys revoke end a key', async () => {
  const began = Date.now()
  const rotated = await keys('rotate', '2', '--grace', '0s', '--json')
  expect(JSON.parse(rotated.stdout)).toEqual({ id: 3, key: expect.stringMatching(/^petstore_/) })
  expect((await keys('revoke', '3')).code).toBe(0)
  const states = JSON.parse((await keys('list', '--json')).stdout)
  expect(states.map(({ id, state }: { id: number; state: string }) => `${id} ${state}`)).toEqual([
    '1 working',
    '2 revoked',
    '3 revoked',
  ])
  for (const { revokedAt } of states.slice(1)) {
    expect(Date.parse(revokedAt)).toBeGreaterThanOrEqual(began)
    expect(Date.parse(revokedAt)).toBeLessThanOrEqual(Date.now())
  }
})

test.each(['revoke', 'rotate'])('keys %s of a key that does not work fails', async (action) => {
  await using sql = await openSql(database.url)
  await sql('update api_keys set expires_at = 1 where id = 1')
  await sql.close()
  // Expired, revoked, never created.
  for (const id of ['1', '2', '99']) {
    const stderr = `There is no working key with the ID ${id}; see list\n`
    expect(await keys(action, id)).toEqual({ code: 1, stdout: '', stderr })
  }
})

test('keys list shows all fields of each key, and never the key itself', async () => {
  const made = '2026-01-02T03:04:05.678Z'
  const past = '2026-02-03T04:05:06.789Z'
  const [far, farther] = ['2997-06-07T08:09:10.111Z', '2998-12-31T00:00:00.000Z']
  const used = '2026-01-31T22:21:20.019Z'
  // id, name, expires_at, grace_until, revoked_at, last_used_at, read_only; and the expected state and end.
  const all = [
    ['3', 'plain', null, null, null, null, 0, 'working', undefined],
    ['4', 'in use', far, null, null, used, 0, 'working', far],
    ['5', 'expired', past, null, null, null, 0, 'expired', past],
    ['6', 'revoked', null, null, past, used, 0, 'revoked', undefined],
    ['7', 'revoked before its end', far, null, past, null, 0, 'revoked', far],
    ['8', 'revoked ahead of time', null, null, far, null, 0, 'revoked', undefined],
    ['9', 'in its grace', farther, far, null, null, 0, 'working', far],
    ['10', 'in a grace beyond its end', far, farther, null, null, 0, 'working', far],
    ['11', 'after its grace', null, past, null, null, 0, 'expired', past],
    ['12', 'reader', null, null, null, null, 1, 'working', undefined],
    ['9007199254740993', 'two\nlines \u202eback', null, null, null, null, 0, 'working', undefined],
  ] as const
  await using sql = await openSql(database.url)
  await sql('delete from api_keys')
  const time = (text: string | null) => (text === null ? null : Date.parse(text))
  const prefix = (isReader: unknown) => (isReader ? 'petstore_read_aB-_09' : 'petstore_aB-_09')
  // Inserted in reverse order: the list is ordered by id, not by insertion.
  for (const [id, name, expires, grace, revoked, lastUsed, readOnly] of all.toReversed()) {
    await sql(
      `insert into api_keys (id, name, prefix, hash, created_at, expires_at, grace_until, revoked_at,
         last_used_at, read_only) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      [
        ...[BigInt(id), name, prefix(readOnly), id.padStart(64, '0'), time(made)],
        ...[time(expires), time(grace), time(revoked), time(lastUsed), readOnly],
      ],
    )
  }
  const [text, json] = await Promise.all([keys('list'), keys('list', '--json')])
  const table = good(text)
  expect(`\n${table}`).toBe(`
ID                NAME                        KEY                    STATE    MAY          CREATED (UTC)     EXPIRES           LAST USED
3                 plain                       petstore_aB-_09…       working  read, write  2026-01-02 03:04  -                 -
4                 in use                      petstore_aB-_09…       working  read, write  2026-01-02 03:04  2997-06-07 08:09  2026-01-31 22:21
5                 expired                     petstore_aB-_09…       expired  read, write  2026-01-02 03:04  2026-02-03 04:05  -
6                 revoked                     petstore_aB-_09…       revoked  read, write  2026-01-02 03:04  -                 2026-01-31 22:21
7                 revoked before its end      petstore_aB-_09…       revoked  read, write  2026-01-02 03:04  2997-06-07 08:09  -
8                 revoked ahead of time       petstore_aB-_09…       revoked  read, write  2026-01-02 03:04  -                 -
9                 in its grace                petstore_aB-_09…       working  read, write  2026-01-02 03:04  2997-06-07 08:09  -
10                in a grace beyond its end   petstore_aB-_09…       working  read, write  2026-01-02 03:04  2997-06-07 08:09  -
11                after its grace             petstore_aB-_09…       expired  read, write  2026-01-02 03:04  2026-02-03 04:05  -
12                reader                      petstore_read_aB-_09…  working  read         2026-01-02 03:04  -                 -
9007199254740993  two\\u{a}lines \\u{202e}back  petstore_aB-_09…       working  read, write  2026-01-02 03:04  -                 -
`)
  const expected = all.map(([id, name, , , revokedAt, lastUsedAt, readOnly, state, expiresAt]) => ({
    id: JSON.rawJSON(id),
    name,
    prefix: prefix(readOnly),
    state,
    readOnly: readOnly === 1,
    createdAt: made,
    ...(expiresAt && { expiresAt }),
    ...(revokedAt && { revokedAt }),
    ...(lastUsedAt && { lastUsedAt }),
  }))
  expect(good(json)).toBe(`${JSON.stringify(expected)}\n`)
  // A time beyond those of JavaScript is shown as the last of them.
  await sql('delete from api_keys where id <> 3')
  await sql('update api_keys set expires_at = 9000000000000000000')
  expect(`\n${good(await keys('list'))}`).toBe(`
ID  NAME   KEY               STATE    MAY          CREATED (UTC)     EXPIRES              LAST USED
3   plain  petstore_aB-_09…  working  read, write  2026-01-02 03:04  +275760-09-13 00:00  -
`)
})

test.runIf(existsSync('/dev/full'))('a full disk behind stdout is an error', async () => {
  const { url, remove } = await newDatabase()
  const toFull = ['sh', '-c', 'exec "$@" > /dev/full', 'sh']
  const run = async (name: keyof typeof programs, ...operands: string[]) => {
    const variables = { DATABASE_URL: url, PORT: '0' }
    const program = runProgram(programs[name], variables, operands, undefined, toFull)
    if (name === 'server') {
      const line = await program.logged(/The start-up text, with any new key, is lost/)
      expect(JSON.parse(line)).toMatchObject({ level: 'warn', err: { message: noSpace } })
      return { code: await program.end('SIGTERM') }
    }
    return { code: await program.exited, stderr: program.stderr }
  }
  const noSpace = 'Cannot write to stdout: ENOSPC: no space left on device, write'
  for (const name of ['migrate', 'seed'] as const) {
    expect(await run(name), name).toEqual({ code: 1, stderr: `${noSpace}\n` })
  }
  const created = await run('keys', 'create', 'lost')
  const lost = `${noSpace}. The new key 1 of ${displayName(url)} is lost: revoke it\n`
  expect(created).toEqual({ code: 1, stderr: lost })
  expect(await run('server')).toEqual({ code: 0 })
  expect(await run('keys', 'list')).toEqual({ code: 1, stderr: `${noSpace}\n` })
  await remove()
})
