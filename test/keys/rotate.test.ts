/** Rotation of keys: lifetime of the new key, end of the old one, concurrent rotations. */
import { expect, test } from 'vitest'
import { engine } from '../support/database.ts'
import { instanceForFile, running, until } from '../support/instance.ts'
import { runProgram, runToEnd } from '../support/process.ts'
import { keyedFetch } from '../support/rest.ts'
import { keys } from '../support/service.ts'
import { openSql } from '../support/sql.ts'
import { watchedSqlite } from '../support/watched.ts'

// The output of the command does not depend on the engine.
const testOnce = test.runIf(engine === 'sqlite')

const HOUR = 3_600_000
const DAY = 24 * HOUR

const service = await instanceForFile()

const program = 'src/cli/keys.ts'
const run = (...operands: string[]) =>
  runToEnd(program, { DATABASE_URL: service.databaseUrl }, operands)

/** Creates a key to rotate, without the command, which other tests cover. */
async function create(name: string, lifetime?: number): Promise<{ id: number; key: string }> {
  const { id, key } = await keys.create(service.databaseUrl, name, lifetime)
  return { id: Number(id), key }
}

async function rotate(id: number, grace: number): Promise<{ id: number; key: string }> {
  const made = await keys.rotate(service.databaseUrl, BigInt(id), grace)
  return { id: Number(made.id), key: made.key }
}

interface Listed {
  id: number
  name: string
  state: string
  createdAt: string
  expiresAt?: string
}

async function listed(...ids: number[]): Promise<Listed[]> {
  const all: Listed[] = JSON.parse((await run('list', '--json')).stdout)
  return ids.map((id) => all.find((key) => key.id === id) as Listed) // each of them exists
}

/** The lifetime of a key, and what is left of it, in milliseconds; Infinity without an expiry. */
const life = ({ createdAt, expiresAt }: Listed) =>
  expiresAt === undefined ? Number.POSITIVE_INFINITY : Date.parse(expiresAt) - Date.parse(createdAt)
const rest = ({ expiresAt }: Listed) =>
  expiresAt === undefined ? Number.POSITIVE_INFINITY : Date.parse(expiresAt) - Date.now()

const statusWith = async (key: string) => (await keyedFetch(service.origin, key)('/v1/pets')).status

/** Checks a duration, with a tolerance for the time that the commands took. */
function expectAbout(actual: number, expected: number): void {
  expect(Math.abs(actual - expected)).toBeLessThan(60_000)
}

test('a key that is rotated twice: each new key has the lifetime of the first', async () => {
  const old = await create('shop')
  const first = await rotate(old.id, DAY)
  const second = await rotate(old.id, DAY)
  const all = await listed(old.id, first.id, second.id)
  expect(all.map(({ name, state }) => `${name} ${state}`)).toEqual(Array(3).fill('shop working'))
  const [oldKey, ...newKeys] = all
  expectAbout(rest(oldKey as Listed), DAY)
  expect(newKeys.map(life)).toEqual([Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY])
  for (const { key } of [old, first, second]) expect(await statusWith(key)).toBe(200)
})

testOnce(
  'each rotation of a key that expires, and of its successor, keeps the lifetime',
  async () => {
    const old = await create('shop', 90 * DAY)
    const first = await rotate(old.id, HOUR)
    const second = await rotate(old.id, HOUR)
    const third = await rotate(second.id, HOUR)
    const all = await listed(old.id, first.id, second.id, third.id)
    const [ofOld = 0, ofFirst = 0, ofSecond = 0, ofThird = 0] = all.map(rest)
    expectAbout(ofOld, HOUR)
    expectAbout(ofFirst, 90 * DAY)
    expectAbout(ofSecond, HOUR)
    expectAbout(ofThird, 90 * DAY)
  },
)

testOnce('the grace period is a day by default, and ends at the expiry of the key', async () => {
  const [lasting, expiring] = await Promise.all([create('lasting'), create('expiring', HOUR / 2)])
  expect((await run('rotate', String(lasting.id))).code).toBe(0)
  await rotate(expiring.id, HOUR)
  const [day = 0, less = 0] = (await listed(lasting.id, expiring.id)).map(rest)
  expectAbout(day, DAY)
  expectAbout(less, HOUR / 2)
})

testOnce('a second rotation can shorten the grace period, not extend it', async () => {
  const [sooner, later] = await Promise.all([create('sooner', 30 * DAY), create('later')])
  await rotate(sooner.id, 5 * HOUR)
  await rotate(sooner.id, 2 * HOUR)
  await rotate(later.id, 2 * HOUR)
  await rotate(later.id, 5 * HOUR)
  for (const key of await listed(sooner.id, later.id)) expectAbout(rest(key), 2 * HOUR)
})

test('of a rotation and a revocation at one moment, the second finds no working key', async () => {
  const { id } = await create('shop')
  const variables = { DATABASE_URL: service.databaseUrl, ...watchedSqlite() }
  const before = await countKeys()
  await using holder = await openSql(service.databaseUrl)
  await holder(engine === 'mysql' ? 'begin' : 'begin immediate')
  await holder('update api_keys set revoked_at = 1 where id = ?', [id])
  const rotation = runProgram(program, variables, ['rotate', String(id)])
  if (engine === 'sqlite') await rotation.logged(/sqlite .* begin/)
  else
    await until('it waits', async () => (await running(service.sql, 'update%api_keys%')).length > 0)
  await holder('commit')
  expect(await rotation.exited).toBe(1)
  expect(rotation.stderr).toContain(`There is no working key with the ID ${id}; see list\n`)
  expect(await countKeys()).toBe(before)
})

async function countKeys(): Promise<number> {
  const [row] = await service.sql('select count(*) as count from api_keys')
  return Number(row?.count)
}

test('a rotation that fails is reported with its own error', async () => {
  const { id } = await create('broken')
  await service.sql(
    engine === 'mysql'
      ? "create trigger broken before insert on api_keys for each row signal sqlstate '45000' set message_text = 'No room'"
      : "create trigger broken before insert on api_keys begin select raise(abort, 'No room'); end",
  )
  try {
    const { code, stderr } = await run('rotate', String(id))
    expect(code).toBe(1)
    expect(stderr).toContain('No room')
    expect(stderr).not.toContain('at the same moment')
  } finally {
    await service.sql('drop trigger broken')
  }
})
