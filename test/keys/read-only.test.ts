/** Read-only keys: create, list and rotate them; operations that write reject them. */
import { expect, test } from 'vitest'
import { engine, newDatabase } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'
import { answerOf, expectRestError, expectTrpcError } from '../support/expect.ts'
import { countPets } from '../support/pets.ts'
import { programs, runToEnd } from '../support/process.ts'
import { keyedFetch, restClient } from '../support/rest.ts'
import { transformer } from '../support/router.ts'
import { serviceForFile, keys as stored, trpcClient } from '../support/service.ts'

// The form of keys and the output about them do not depend on the engine.
const testOnce = test.runIf(engine === 'sqlite')

const database = await newDatabase()
const service = await serviceForFile({}, { database })

const keys = (...operands: string[]) =>
  runToEnd(programs.keys, { DATABASE_URL: database.url }, operands)

async function json(...operands: string[]) {
  const { code, stdout, stderr } = await keys(...operands, '--json')
  expect({ code, stderr }).toMatchObject({ code: 0 })
  return JSON.parse(stdout)
}

const made: { id: number; key: string } = await json(
  'create',
  'catalogue',
  '--read-only',
  '--expires',
  '90d',
)

const listed = async (id: number) =>
  (await json('list')).find((each: { id: number }) => each.id === id)

const post = (path: string, key: string, body: string, headers = {}) =>
  answerOf(keyedFetch(service.origin, key)(path, { method: 'POST', headers, body }))

/** Checks that a key can read and cannot write, on both surfaces. */
async function expectReadOnly(key: string): Promise<void> {
  const before = await countPets(service.sql)
  const [rest, trpc] = [restClient(service.origin, key), trpcClient(service.origin, key)]
  expect((await rest('GET', '/pets')).status).toBe(200)
  expect((await trpc.listPets.query()).length).toBe(before)
  expect((await rest('GET', '/pets/404')).status).toBe(404)
  // The client validates the responses against the OpenAPI document.
  const rejected = await rest('POST', '/pets', { body: { name: 'Rex', categoryId: 1 } })
  expect(rejected.status).toBe(403)
  expect(rejected.headers.get('www-authenticate')).toBe('Bearer error="insufficient_scope"')
  for (const body of ['{"name":"Rex","categoryId":1}', '{"name":""}', '{', '[]', '']) {
    expectRestError(await post('/v1/pets', key, body), 403, 'FORBIDDEN')
    expectTrpcError(await post('/trpc/createPet', key, body), 403, 'FORBIDDEN')
  }
  const inputs = Array(2).fill(transformer.serialize({ name: 'Rex', categoryId: 1 }))
  for (const first of ['createPet', 'nothing', 'listPets']) {
    for (const headers of [{}, { 'trpc-accept': 'application/jsonl' }]) {
      const batch = `/trpc/${first},createPet?batch=1`
      const rejected = await post(batch, key, JSON.stringify({ ...inputs }), headers)
      expectTrpcError(rejected, 403, 'FORBIDDEN')
    }
  }
  const once = { 'idempotency-key': '"read-only"' }
  const again = await post('/v1/pets', key, '{"name":"Rex","categoryId":1}', once)
  expectRestError(again, 403, 'FORBIDDEN')
  expect(await countPets(service.sql)).toBe(before)
}

test('a read-only key can read, and each operation that writes returns 403, on both surfaces', async () => {
  await expectReadOnly(made.key)
})

test('rotation keeps the rights and the lifetime of a read-only key', async () => {
  const next = await json('rotate', String(made.id))
  await expectReadOnly(next.key)
  const { name, readOnly, createdAt, expiresAt } = await listed(next.id)
  expect({ name, readOnly }).toEqual({ name: 'catalogue', readOnly: true })
  expect((Date.parse(expiresAt) - Date.parse(createdAt)) / 86_400_000).toBeCloseTo(90, 2)
})

test('any other key can write, also after a rotation', async () => {
  const writer = await stored.create(database.url, 'shop')
  const next = await stored.rotate(database.url, writer.id, 60_000)
  for (const { key } of [writer, next]) {
    const body = { name: 'Rex', categoryId: 1 }
    expect((await restClient(service.origin, key)('POST', '/pets', { body })).status).toBe(201)
  }
})

testOnce('the prefix of a read-only key is petstore_read_', async () => {
  const { key } = made
  expect(key).toMatch(/^petstore_read_[\w-]{43}$/)
  expect(await listed(made.id)).toMatchObject({ prefix: key.slice(0, 20) })
})

test('a key with a changed prefix is invalid', async () => {
  const swapped = [
    made.key.replace('petstore_read_', 'petstore_'),
    service.key.replace('petstore_', 'petstore_read_'),
  ]
  for (const key of swapped) {
    expectRestError(await post('/v1/pets', key, '{}'), 401, 'UNAUTHORIZED')
  }
})

testOnce('the log shows only the first characters of an unknown key', async () => {
  const key = `petstore_read_${'k'.repeat(43)}`
  const halves = `${'k'.repeat(20)}/${'k'.repeat(23)}`
  const inPaths = [key, `petstore_${halves}`, `petstore_${encodeURIComponent(halves)}`]
  for (const path of [...inPaths, key.toUpperCase()]) await fetch(`${service.origin}/${path}`)
  await keyedFetch(service.origin, key)('/v1/pets')
  // A text that is longer than a key is no key: nothing of it is logged.
  const headers = { 'x-request-id': 'longer' }
  await keyedFetch(service.origin, `${key}-`)('/v1/pets', { headers })
  const longer = await eventually(() => {
    const entries = service.logged.map((line) => JSON.parse(line))
    const found = entries.find(({ requestId }) => requestId === 'longer')
    expect(found).toMatchObject({ status: 401 })
    return found
  })
  expect(longer).not.toHaveProperty('keyPrefix')
  const log = service.logged.join('')
  expect(log).toContain('"path":"/petstore_read_…"')
  expect(log).toContain('"keyPrefix":"petstore_read_kkkkkk"')
  expect(log).toContain('"path":"/PETSTORE_READ_…"')
  expect(log).not.toMatch(/k{7}/i)
})
