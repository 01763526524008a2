/** An Idempotency-Key fits any creation, and rows of the first release. */
import { createHash } from 'node:crypto'
import { pino } from 'pino'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { Deadline } from '../../db/deadline.ts'
import { DuplicateError } from '../../db/errors.ts'
import { createIdempotency, type Idempotency, removeOld } from '../../src/idempotency/store.ts'
import { type Service, startService } from '../support/service.ts'
import { openSql, type Sql } from '../support/sql.ts'

let service: Service
let admin: Sql
let idempotency: Idempotency
beforeAll(async () => {
  service = await startService()
  admin = await openSql(service.databaseUrl)
  idempotency = createIdempotency(service.db, 60_000, pino({ enabled: false }))
})
afterAll(async () => {
  idempotency.stop()
  await admin.close()
  await service.stop()
})

let serial = 0
/** Asks for a creation that gives `output`. */
function once(
  request: { key: string; operation?: string; input?: unknown },
  output: unknown = { id: 1n },
) {
  const { operation = 'createOwner', input = { name: 'Ann' } } = request
  const complete = { apiKeyId: 1n, key: request.key, operation, input }
  return idempotency.once(complete, new Deadline(5_000), async () => output)
}

test('the answer is that of the first time, whatever it was', async () => {
  const output = { uuid: 'a', since: new Date(0), big: 2n ** 62n, none: null, list: [1, true] }
  const key = `any ${serial++}`
  expect(await once({ key }, output)).toEqual({ output })
  expect(await once({ key }, 'another')).toEqual({ output })
})

test('the same key and fields for another operation are different', async () => {
  const key = `any ${serial++}`
  await once({ key, operation: 'createOwner' })
  expect(await once({ key, operation: 'createShop' })).toBe('different')
})

test.each([
  [{ a: null }, { a: undefined }],
  [
    { a: 'x', b: undefined },
    { a: undefined, b: 'x' },
  ],
  [
    { a: undefined, b: undefined },
    { a: null, b: null },
  ],
  [{ a: ['x'] }, { a: 'x' }],
  [{ a: 1n }, { a: 2n }],
])('%o and %o are different requests', async (one, other) => {
  const key = `any ${serial++}`
  await once({ key, input: one })
  expect(await once({ key, input: one })).toMatchObject({ output: {} })
  expect(await once({ key, input: other })).toBe('different')
})

test("a creation's own unique violation is its own, and keeps no key", async () => {
  const key = `any ${serial++}`
  const request = { apiKeyId: 1n, key, operation: 'createOwner', input: {} }
  let attempts = 0
  const twice = idempotency.once(request, new Deadline(5_000), async (transaction) => {
    attempts++
    const row = { name: 'a', prefix: 'a', hash: `twice ${key}`, created_at: 0n }
    await transaction.insertInto('api_keys').values(row).execute()
    await transaction.insertInto('api_keys').values(row).execute()
  })
  await expect(twice).rejects.toThrow(DuplicateError)
  expect(attempts).toBe(1)
  expect(await admin('select id from api_keys where hash = ?', [`twice ${key}`])).toEqual([])
  expect(await once({ key, input: {} })).toEqual({ output: { id: 1n } })
})

test('a broken NOT NULL is no key that is there already', async () => {
  const request = { apiKeyId: 1n, key: `any ${serial++}`, operation: 'createOwner', input: {} }
  let attempts = 0
  const broken = idempotency.once(request, new Deadline(5_000), async (transaction) => {
    attempts++
    const row = { name: null as never, category_id: 1n, status: 'sold' as const }
    await transaction.insertInto('pets').values(row).execute()
  })
  await expect(broken).rejects.toThrow(/null/i)
  await expect(broken).rejects.not.toBeInstanceOf(DuplicateError)
  expect(attempts).toBe(1)
})

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')

test('rows of the first release are answered, and what it reads is written', async () => {
  const [row] = await admin('select id from api_keys where name = ?', ['test'])
  const pet = { name: 'Rex', categoryId: 9007199254740993n, status: 'pending' }
  const fingerprint = sha256(JSON.stringify(['Rex', '9007199254740993', 'pending']))
  // As the first release writes it: it knows neither of the new columns.
  await admin(
    'insert into idempotency_keys (api_key_id, key_hash, fingerprint, pet_id, created_at) values (?, ?, ?, ?, ?)',
    [row?.id, sha256('legacy'), fingerprint, 4711n, Date.now()],
  )
  const create = (key: string, body: unknown) =>
    service.rest('POST', '/pets', { headers: { 'idempotency-key': key }, body })
  expect(await create('legacy', pet)).toMatchObject({
    status: 201,
    body: { id: 4711, name: 'Rex', status: 'pending' },
  })
  expect((await create('legacy', { ...pet, name: 'Bella' })).status).toBe(422)

  const fresh = await create('fresh', pet)
  const [written] = await admin(
    'select fingerprint, pet_id from idempotency_keys where key_hash = ?',
    [sha256('fresh')],
  )
  const { id } = fresh.body as { id: number }
  expect(written).toEqual({ fingerprint, pet_id: BigInt(id) })
})

test('cleaning holds nobody up', { timeout: 60_000 }, async () => {
  const COUNT = 10_000
  for (let first = 0; first < COUNT; first += 2_000) {
    const rows = Array.from(
      { length: 2_000 },
      (_, index) => `(77, '${sha256(`old ${first + index}`)}', '', 0, 5)`,
    )
    await admin(
      `insert into idempotency_keys (api_key_id, key_hash, fingerprint, pet_id, created_at) values ${rows.join(', ')}`,
    )
  }
  let isOver = false
  const cleaned = removeOld(service.db, 1_000).then(() => {
    isOver = true
  })
  let answered = 0
  while (!isOver) {
    await (await fetch(`${service.origin}/healthz`)).text()
    answered++
  }
  await cleaned
  // Removed in 100 statements that follow each other, nobody would get in between them.
  expect(answered).toBeGreaterThan(30)
  expect(await admin('select id from idempotency_keys where api_key_id = 77')).toEqual([])
})
