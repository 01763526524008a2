/** An instance whose clock is an hour ahead or behind: the database's clock alone decides. */
import { randomUUID } from 'node:crypto'
import { afterAll, expect, test } from 'vitest'
import { newDatabase } from '../support/database.ts'
import { startInstance } from '../support/instance.ts'
import { programs, runToEnd } from '../support/process.ts'
import { restClient } from '../support/rest.ts'
import { keys } from '../support/service.ts'
import { clockAhead } from '../support/watched.ts'

const HOUR = 3_600_000

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

const clients = (key: string) => instances.map(({ origin }) => restClient(origin, key))
const statuses = (key: string) =>
  Promise.all(clients(key).map(async (rest) => (await rest('GET', '/pets')).status))

test('a key that expires works on every instance until it is revoked', async () => {
  const { id, key } = await keys.create(database.url, 'shop', HOUR / 2)
  expect(await statuses(key)).toEqual([200, 200])
  const grace = await keys.create(database.url, 'in its grace')
  const next = await keys.rotate(database.url, grace.id, HOUR / 2)
  expect([...(await statuses(grace.key)), ...(await statuses(next.key))]).toEqual([
    200, 200, 200, 200,
  ])
  const revoked = await keys.create(database.url, 'revoked')
  await keys.revoke(database.url, revoked.id)
  expect(await statuses(revoked.key)).toEqual([401, 401])
  expect(id).not.toBe(revoked.id)
})

test('a command on a machine whose clock is ahead creates, lists and revokes by that of the database', async () => {
  const began = Date.now()
  const command = async (...operands: string[]) => {
    const variables = { DATABASE_URL: database.url, ...clockAhead(HOUR) }
    return JSON.parse((await runToEnd(programs.keys, variables, [...operands, '--json'])).stdout)
  }
  const { id, key } = await command('create', 'shop', '--expires', '30m')
  expect(await statuses(key)).toEqual([200, 200])
  const listed = (await command('list')).find((each: { id: number }) => each.id === id)
  expect(listed).toMatchObject({ state: 'working' })
  expect(Date.parse(listed.createdAt)).toBeGreaterThanOrEqual(began)
  expect(Date.parse(listed.createdAt)).toBeLessThanOrEqual(Date.now())
  expect(Date.parse(listed.expiresAt) - Date.parse(listed.createdAt)).toBe(HOUR / 2)
})

test('an Idempotency-Key lives as long on every instance, and belongs to the keys of one holder', async () => {
  const old = await keys.create(database.url, 'shop')
  const name = `"${randomUUID()}"`
  const create = async (key: string) => {
    const init = { headers: { 'idempotency-key': name }, body: { name: 'Rex', categoryId: 1 } }
    const answers = []
    for (const rest of clients(key)) answers.push(await rest('POST', '/pets', init))
    expect(answers.map(({ status }) => status)).toEqual([201, 201])
    return new Set(answers.map(({ text }) => text))
  }
  const first = await create(old.key)
  expect(first.size).toBe(1)
  const next = await keys.rotate(database.url, old.id, HOUR)
  expect(await create(next.key)).toEqual(first)
  const { key: other } = await keys.create(database.url, 'other')
  expect(await create(other)).not.toEqual(first)
})
