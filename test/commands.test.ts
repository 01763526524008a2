/** The commands, run as processes of their own: keys, seed, migrate. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { newDatabase, type TestDatabase } from './support/database.ts'
import { type Ended, programs, runToEnd } from './support/process.ts'
import { openSql } from './support/sql.ts'

let database: TestDatabase
beforeAll(async () => {
  database = await newDatabase()
})
afterAll(() => database.remove())

const command = (name: keyof typeof programs, ...operands: string[]) =>
  runToEnd(programs[name], { DATABASE_URL: database.url }, operands)
const keys = (...operands: string[]) => command('keys', ...operands)
const good = ({ code, stderr, stdout }: Ended) => {
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  return stdout
}

test('migrate brings the tables once; seed adds animals once, of all categories in turn', async () => {
  const migrated = good(await command('migrate'))
  await using sql = await openSql(database.url)
  const names = (await sql('select name from kysely_migration order by name')).map(
    ({ name }) => name,
  )
  expect(names.length).toBeGreaterThan(0)
  expect(migrated).toMatch(new RegExp(`^Migrated ${names.join(', ')}: .+petstore`))
  expect(good(await command('migrate'))).toMatch(/^There was nothing to migrate: .+\n$/)
  // Who is there already is not added again.
  await sql("insert into pets (name, category_id, status) values ('Rex', 1, 'available')")
  expect(good(await command('seed'))).toMatch(/^Added [3-9]\d animals: .+\n$/)
  expect(await sql("select id from pets where name = 'Rex'")).toHaveLength(1)
  expect(good(await command('seed'))).toMatch(/^The animals are all there already: .+\n$/)
  const first = await sql('select category_id, status from pets order by id limit 10')
  await sql.close()
  const inTurn = [1n, 2n, 3n, 4n, 5n]
  expect(first.map((pet) => pet.category_id)).toEqual([...inTurn, ...inTurn])
  expect(new Set(first.map(({ status }) => status)).size).toBe(3)
})

test('keys create prints the key, alone, on stdout', async () => {
  const { code, stdout, stderr } = await keys('create', 'web shop')
  expect(code).toBe(0)
  expect(stdout).toMatch(/^petstore_[\w-]{43}\n$/)
  expect(stderr).toMatch(/^This is key 1 of .+\. Keep it: it is not shown again\.\n$/)
})

test('keys list shows all but the key itself', async () => {
  const key = (await keys('create', 'app', '--expires', '90d')).stdout.trim()
  const [, ...rows] = good(await keys('list'))
    .trim()
    .split('\n')
  expect(rows.map((row) => row.split(/ {2,}/).slice(0, 4))).toEqual([
    ['1', 'web shop', expect.stringMatching(/^petstore_[\w-]{6}…$/), 'working'],
    ['2', 'app', `${key.slice(0, 15)}…`, 'working'],
  ])
  const [, app] = JSON.parse(good(await keys('list', '--json')))
  const days = (Date.parse(app.expiresAt) - Date.parse(app.createdAt)) / 86_400_000
  expect(days).toBeCloseTo(90, 3)
  expect(JSON.stringify(app)).not.toContain(key.slice(16))
})

test('keys rotate and revoke', async () => {
  const rotated = await keys('rotate', '2', '--grace', '0s', '--json')
  expect(JSON.parse(rotated.stdout)).toEqual({ id: 3, key: expect.stringMatching(/^petstore_/) })
  expect((await keys('revoke', '3')).code).toBe(0)
  const states = JSON.parse((await keys('list', '--json')).stdout)
  expect(states.map(({ id, state }: { id: number; state: string }) => `${id} ${state}`)).toEqual([
    '1 working',
    '2 revoked',
    '3 revoked',
  ])
})

test.each(['revoke', 'rotate'])(
  'keys %s of a key that does not work is a mistake',
  async (action) => {
    for (const id of ['2', '3', '99']) {
      const stderr = `There is no working key with the ID ${id}; list shows them\n`
      expect(await keys(action, id)).toEqual({ code: 1, stdout: '', stderr })
    }
  },
)
