/** Instances and commands whose clocks are hours apart: the database's clock alone decides. */
import { randomUUID } from 'node:crypto'
import { afterAll, expect, test } from 'vitest'
import { clockAhead } from '../support/clock.ts'
import { newDatabase } from '../support/database.ts'
import { startInstance } from '../support/instance.ts'
import { programs, runToEnd } from '../support/process.ts'
import { restClient } from '../support/rest.ts'
import { keys as stored } from '../support/service.ts'

const HOUR = 3_600_000
const began = Date.now()

const database = await newDatabase()
const instances = await Promise.all(
  [HOUR, -HOUR].map((ahead) =>
    startInstance({ IDEMPOTENCY_LIFETIME: '1m', ...clockAhead(ahead) }, database),
  ),
)
afterAll(async () => {
  await Promise.all(instances.map(({ stop }) => stop()))
  await database.remove()
})

/** Runs `keys` on a machine whose clock is ahead, or behind. */
async function keys(ahead: number, ...operands: string[]) {
  const variables = { DATABASE_URL: database.url, ...clockAhead(ahead) }
  const { code, stdout, stderr } = await runToEnd(programs.keys, variables, [...operands, '--json'])
  expect({ code, stderr }).toMatchObject({ code: 0 })
  return JSON.parse(stdout)
}

const statuses = (key: string) =>
  Promise.all(
    instances.map(async ({ origin }) => (await restClient(origin, key)('GET', '/pets')).status),
  )

const create = (instance: number, key: string, idempotencyKey: string) =>
  restClient(`${instances[instance]?.origin}`, key)('POST', '/pets', {
    headers: { 'idempotency-key': `"${idempotencyKey}"` },
    body: { name: 'Rex', categoryId: 1 },
  })

test('a key that expires works on every instance, and its last use is the time of the database', async () => {
  const { id, key } = await keys(-HOUR, 'create', 'shop', '--expires', '30m')
  expect(await statuses(key)).toEqual([200, 200])
  const listed = (await keys(HOUR, 'list')).find((each: { id: number }) => each.id === id)
  expect(listed).toMatchObject({ state: 'working' })
  expect(Date.parse(listed.expiresAt) - Date.parse(listed.createdAt)).toBe(HOUR / 2)
  expect(Date.parse(listed.createdAt)).toBeGreaterThanOrEqual(began)
  expect(Date.parse(listed.createdAt)).toBeLessThanOrEqual(Date.now())
})

test.each([HOUR, -HOUR])('a clock ahead by %i ms revokes at once', async (ahead) => {
  const revoked = await stored.create(database.url, 'revoked')
  await keys(ahead, 'revoke', String(revoked.id))
  const replaced = await stored.create(database.url, 'replaced')
  const fresh = await keys(ahead, 'rotate', String(replaced.id), '--grace', '0s')
  const inGrace = await stored.create(database.url, 'in its grace')
  await keys(ahead, 'rotate', String(inGrace.id), '--grace', '30m')
  expect(await statuses(inGrace.key)).toEqual([200, 200])
  await keys(ahead, 'revoke', String(inGrace.id))
  for (const { key } of [revoked, replaced]) expect(await statuses(key)).toEqual([401, 401])
  expect(await statuses(fresh.key)).toEqual([200, 200])
  const all: { id: number; state: string }[] = await keys(0, 'list')
  const states = [revoked, replaced, inGrace].map(
    ({ id }) => all.find((each) => each.id === Number(id))?.state,
  )
  expect(states).toEqual(['revoked', 'revoked', 'revoked'])
})

test('an Idempotency-Key lives as long on every instance, and belongs to the keys of one holder', async () => {
  const old = await stored.create(database.url, 'shop')
  const other = await stored.create(database.url, 'other')
  const idempotencyKey = randomUUID()
  const first = await create(0, old.key, idempotencyKey)
  expect(first.status).toBe(201)
  expect((await create(1, old.key, idempotencyKey)).text).toBe(first.text)
  const fresh = await stored.rotate(database.url, old.id, HOUR)
  const newest = await stored.rotate(database.url, fresh.id, HOUR)
  for (const { key } of [fresh, newest]) {
    expect((await create(1, key, idempotencyKey)).text).toBe(first.text)
  }
  const apart = await create(0, other.key, idempotencyKey)
  expect(apart.status).toBe(201)
  expect(apart.text).not.toBe(first.text)
})
