/** API keys in the database: their rights, their ends, rotations and revocations. */
import { CompiledQuery } from 'kysely'
import { expect, onTestFinished, test } from 'vitest'
import { connect } from '../../db/connect.ts'
import { Deadline } from '../../db/deadline.ts'
import { migrate } from '../../db/migrate.ts'
import { hashKey } from '../../src/keys/key.ts'
import {
  createKey,
  createKeyIfNone,
  findKey,
  listKeys,
  revokeKey,
  rotateKey,
} from '../../src/keys/store.ts'
import { engine, newDatabase } from '../support/database.ts'
import { running, until } from '../support/instance.ts'
import { migratedForFile } from '../support/migrated.ts'
import { openSql } from '../support/sql.ts'

const HOUR = 3_600_000
const DAY = 24 * HOUR

const { url, db, sql } = await migratedForFile()

const find = (key: string) => findKey(db, hashKey(key), new Deadline(Number.POSITIVE_INFINITY))
const rotate = async (id: bigint, grace: number) => {
  const made = await rotateKey(db, id, grace)
  if (!made) throw new Error(`No working key ${id}`)
  return made
}
const listed = async (id: bigint) => {
  const found = (await listKeys(db)).find((key) => key.id === id)
  if (!found) throw new Error(`No key ${id}`)
  const { createdAt, expiresAt } = found
  return { ...found, lifetime: expiresAt && Number(expiresAt) - Number(createdAt) }
}

test('a key has its rights, a mark of them, and a holder of its own', async () => {
  const made = [
    await createKey(db, 'shop'),
    await createKey(db, 'catalogue', { readOnly: true, lifetime: DAY }),
  ]
  expect(made.map(({ key }) => key)).toEqual([
    expect.stringMatching(/^petstore_[\w-]{43}$/),
    expect.stringMatching(/^petstore_read_[\w-]{43}$/),
  ])
  const [shop, catalogue] = await Promise.all(made.map(({ key }) => find(key)))
  expect(shop).toMatchObject({ readOnly: false, left: Number.POSITIVE_INFINITY })
  expect(catalogue).toMatchObject({ readOnly: true })
  expect((catalogue?.left ?? 0) / DAY).toBeCloseTo(1, 3)
  expect(shop?.holder).not.toBe(catalogue?.holder)
  expect(await listed(made[1]?.id ?? 0n)).toMatchObject({
    name: 'catalogue',
    state: 'working',
    prefix: made[1]?.key.slice(0, 20),
    lifetime: DAY,
  })
})

test('of concurrent calls that create a key where there is none, one creates it', async () => {
  const fresh = await newDatabase()
  onTestFinished(fresh.remove)
  await using one = await connect(fresh.url)
  await using other = await connect(fresh.url)
  const all = [one, other]
  for (const each of all) await migrate(each) // each has its connection, so that they begin at once
  const made = await Promise.all(all.map((each) => createKeyIfNone(each, 'first key')))
  expect(made.filter((key) => key)).toHaveLength(1)
  expect(await listKeys(one)).toHaveLength(1)
})

test.for<[what: string, lifetime: number | undefined, graces: number[], left: number]>([
  ['a grace period ends a key', undefined, [DAY], DAY],
  ['a second one cannot extend it', undefined, [2 * HOUR, 5 * HOUR], 2 * HOUR],
  ['a second one can shorten it', 30 * DAY, [5 * HOUR, 2 * HOUR], 2 * HOUR],
  ['a key that expires earlier does so', HOUR / 2, [HOUR], HOUR / 2],
])('rotation: %s, and each new key is like the first', async ([, lifetime, graces, left]) => {
  const old = await createKey(db, 'shop', { lifetime, readOnly: true })
  const holder = (await find(old.key))?.holder
  for (const grace of graces) {
    const next = await rotate(old.id, grace)
    const last = await rotate(next.id, HOUR)
    for (const { id, key } of [next, last]) {
      expect(await find(key)).toMatchObject({ holder, readOnly: true })
      expect(await listed(id)).toMatchObject({ name: 'shop', state: 'working' })
    }
    expect((await listed(last.id)).lifetime).toBe(lifetime)
  }
  expect((await listed(old.id)).state).toBe('working')
  expect(((await find(old.key))?.left ?? 0) / HOUR).toBeCloseTo(left / HOUR, 1)
})

test('a key without a holder hands its id on', async () => {
  const old = await createKey(db, 'shop')
  await sql('update api_keys set holder = null where id = ?', [old.id])
  const next = await rotate(old.id, HOUR)
  const last = await rotate(next.id, HOUR)
  for (const { key } of [old, next, last]) expect((await find(key))?.holder).toBe(old.id)
})

test('a revoked key, one without a grace period, and an expired one do not work', async () => {
  const keys = [
    await createKey(db, 'revoked'),
    await createKey(db, 'rotated'),
    await createKey(db, 'expired', { lifetime: 0 }),
  ] as const
  expect(await revokeKey(db, keys[0].id)).toBe(true)
  await rotate(keys[1].id, 0)
  const states = await Promise.all(keys.map(({ id }) => listed(id)))
  expect(states.map(({ state }) => state)).toEqual(['revoked', 'revoked', 'expired'])
  // Revoked is a fact: its time is not compared.
  await sql('update api_keys set revoked_at = 9000000000000000000 where revoked_at is not null')
  for (const { id, key } of keys) {
    expect(await find(key)).toBeUndefined()
    expect(await rotateKey(db, id, HOUR)).toBeUndefined()
    // A clock that is ahead, for which the key has expired, must not keep it from being revoked.
    expect(await revokeKey(db, id)).toBe(id === keys[2].id)
  }
})

test('of a rotation and a revocation at one moment, the second finds no working key', async () => {
  const { id } = await createKey(db, 'shop')
  const before = (await listKeys(db)).length
  await using holder = await openSql(url)
  await holder(engine === 'mysql' ? 'begin' : 'begin immediate')
  await holder('update api_keys set revoked_at = 1 where id = ?', [id])
  const rotation = rotateKey(db, id, 0)
  if (engine === 'mysql') {
    await until('it waits', async () => (await running(sql, 'update%api_keys%')).length > 0)
  }
  await holder('commit')
  expect(await rotation).toBeUndefined()
  expect(await listKeys(db)).toHaveLength(before)
})

test('a rotation that fails leaves the old key as it is', async () => {
  const { id, key } = await createKey(db, 'broken')
  await sql(
    engine === 'mysql'
      ? "create trigger broken before insert on api_keys for each row signal sqlstate '45000' set message_text = 'No room'"
      : "create trigger broken before insert on api_keys begin select raise(abort, 'No room'); end",
  )
  await expect(rotateKey(db, id, 0)).rejects.toThrow('No room')
  await db.runner.execute(CompiledQuery.raw('drop trigger broken')) // after the rollback
  expect(await find(key)).toBeDefined()
})
