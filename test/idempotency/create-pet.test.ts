/** createPet under an Idempotency-Key makes one pet, however often it is asked for. */
import { createTRPCClient, httpBatchLink } from '@trpc/client'
import { sql } from 'kysely'
import { pino } from 'pino'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { onceStore, removeOld } from '../../src/idempotency/store.ts'
import { createKey } from '../../src/keys/store.ts'
import { engine } from '../support/database.ts'
import { restClient } from '../support/rest.ts'
import type { AppRouter } from '../support/router.ts'
import { transformer } from '../support/router.ts'
import { errorOf, type Service, startService, trpcClient } from '../support/service.ts'

const LIFETIME = 60_000

let service: Service
beforeAll(async () => {
  service = await startService({ idempotencyLifetime: LIFETIME })
})
afterAll(() => service.stop())

const rex = { name: 'Rex', categoryId: 3 }
let serial = 0
const newKey = () => `"key ${serial++}"`
const create = (key: string | undefined, body: unknown = rex) =>
  service.rest('POST', '/pets', { headers: { 'idempotency-key': key }, body })

async function countPets(): Promise<number> {
  const { count } = await service.db
    .selectFrom('pets')
    .select((eb) => eb.fn.countAll().as('count'))
    .executeTakeFirstOrThrow()
  return Number(count)
}

test('a repetition is answered as the first and adds nothing', async () => {
  const key = newKey()
  const first = await create(key)
  const before = await countPets()
  const second = await create(key)
  expect(second).toMatchObject({ status: 201, body: first.body })
  expect(second.headers.get('location')).toBe(first.headers.get('location'))
  // The same request in other words.
  const third = await create(key, '{"status":"available","categoryId":3.0,"name":"Rex","extra":1}')
  expect(third).toMatchObject({ status: 201, body: first.body })
  expect(await countPets()).toBe(before)
})

test('the same key with another body is 422', async () => {
  const key = newKey()
  await create(key)
  const answer = await create(key, { ...rex, name: 'Bella' })
  expect(answer).toMatchObject({ status: 422, body: { code: 'UNPROCESSABLE_CONTENT' } })
})

test('without a key every request adds a pet', async () => {
  const before = await countPets()
  await create(undefined)
  await create(undefined)
  expect(await countPets()).toBe(before + 2)
})

test('many at once make one pet', async () => {
  const key = newKey()
  const before = await countPets()
  const answers = await Promise.all(Array.from({ length: 8 }, () => create(key)))
  expect(await countPets()).toBe(before + 1)
  const statuses = answers.map(({ status }) => status)
  expect(statuses).toContain(201)
  expect(statuses.every((status) => status === 201 || status === 409)).toBe(true)
})

test('while the first is still running, a repetition is 409', async () => {
  const { once, stop } = onceStore(service.db, LIFETIME, pino({ enabled: false }))
  const what = { apiKeyId: 1n, idempotencyKey: newKey(), request: rex }
  const { signal } = new AbortController()
  const gate = Promise.withResolvers<bigint>()
  const first = once(what, signal, () => gate.promise)
  expect(await once(what, signal, () => gate.promise)).toBe('running')
  gate.resolve(7n)
  expect(await first).toEqual({ id: 7n })
  expect(await once(what, signal, () => gate.promise)).toEqual({ id: 7n })
  stop()
})

test.runIf(engine === 'mysql')('409 also while another instance is at it', async () => {
  const key = newKey()
  const pets = await countPets()
  // Another instance, in the middle of the same creation.
  const begun = Promise.withResolvers<void>()
  const blocked = Promise.withResolvers<void>()
  const hash = await hashOf(key)
  const other = service.db.transaction().execute(async (transaction) => {
    const { id } = await service.db.selectFrom('api_keys').select('id').executeTakeFirstOrThrow()
    await transaction
      .insertInto('idempotency_keys')
      .values({ api_key_id: id, key_hash: hash, fingerprint: '', pet_id: 1n, created_at: 0n })
      .execute()
    begun.resolve()
    await blocked.promise
  })
  await begun.promise
  expect(await create(key)).toMatchObject({ status: 409 })
  blocked.resolve()
  await other
  expect(await countPets()).toBe(pets)
})

async function hashOf(header: string): Promise<string> {
  const bytes = new TextEncoder().encode(header.slice(1, -1))
  return Buffer.from(await crypto.subtle.digest('SHA-256', bytes)).toString('hex')
}

test('a key counts for its API key alone', async () => {
  const key = newKey()
  const mine = await create(key)
  const other = restClient(service.origin, (await createKey(service.db, 'other')).key)
  const theirs = await other('POST', '/pets', { headers: { 'idempotency-key': key }, body: rex })
  expect(theirs.status).toBe(201)
  expect(theirs.body).not.toEqual(mine.body)
})

test('keys that differ in case or in spaces at the end are different keys', async () => {
  const answers = await Promise.all(['"case"', '"CASE"', '"case "'].map((key) => create(key)))
  expect(new Set(answers.map(({ text }) => text)).size).toBe(3)
})

test('a key is forgotten after its lifetime', async () => {
  const key = newKey()
  const first = await create(key)
  await service.db
    .updateTable('idempotency_keys')
    .set({ created_at: BigInt(Date.now() - LIFETIME) })
    .execute()
  const second = await create(key, { ...rex, name: 'Bella' })
  expect(second.status).toBe(201)
  expect(second.body).not.toEqual(first.body)
})

test('removeOld removes what is too old, and nothing else', async () => {
  await create(newKey())
  const rows = () => service.db.selectFrom('idempotency_keys').select('created_at').execute()
  const times = (await rows()).map(({ created_at }) => Number(created_at)).sort()
  const newest = times.at(-1) ?? 0
  expect(times.length).toBeGreaterThan(1)
  await removeOld(service.db, newest)
  expect(await rows()).toEqual([{ created_at: BigInt(newest) }])
})

test('an invalid creation keeps no key', async () => {
  const key = newKey()
  expect((await create(key, { name: '' })).status).toBe(400)
  expect((await create(key)).status).toBe(201)
})

describe('the header', () => {
  test.each(['""', '"a', 'two words', '"ä"', 'x'.repeat(256), '"a", "b"'])(
    '%s is 400',
    async (key) => {
      const answer = await create(Buffer.from(key).toString('latin1'))
      expect(answer).toMatchObject({ status: 400, body: { code: 'BAD_REQUEST' } })
      expect((answer.body as { message: string }).message).toContain('Idempotency-Key')
    },
  )

  test('may come without quotes', async () => {
    const first = await create('8e03978e-40d5-43e8-bc93-6894a57f9324')
    const second = await create('"8e03978e-40d5-43e8-bc93-6894a57f9324"')
    expect([first.status, second.body]).toEqual([201, first.body])
  })

  test('is ignored where nothing is made', async () => {
    const answer = await service.rest('GET', '/pets', { headers: { 'idempotency-key': '""' } })
    expect(answer.status).toBe(200)
  })
})

describe('through tRPC', () => {
  const withKey = (key: string) =>
    trpcClient(service.origin, service.key, (url, init) => {
      const headers = new Headers(init?.headers)
      headers.set('idempotency-key', key)
      return fetch(url, { ...init, headers })
    })

  test('a repetition gives the same pet', async () => {
    const client = withKey(newKey())
    const first = await client.createPet.mutate(rex)
    expect(await client.createPet.mutate(rex)).toEqual(first)
    const other = client.createPet.mutate({ ...rex, name: 'Bella' })
    expect(await errorOf(other)).toMatchObject({ code: 'UNPROCESSABLE_CONTENT', status: 422 })
  })

  test('a batch cannot have a key', async () => {
    const client = createTRPCClient<AppRouter>({
      links: [
        httpBatchLink({
          url: `${service.origin}/trpc`,
          transformer,
          headers: { authorization: `Bearer ${service.key}`, 'idempotency-key': newKey() },
        }),
      ],
    })
    const calls = [client.createPet.mutate(rex), client.createPet.mutate(rex)]
    const errors = await Promise.all(calls.map(errorOf))
    for (const error of errors) expect(error).toMatchObject({ code: 'BAD_REQUEST', status: 400 })
    expect(await client.createPet.mutate(rex)).toMatchObject({ name: 'Rex' })
  })
})

test('what an old row of the same key leaves behind is replaced', async () => {
  const key = newKey()
  const { id } = await service.db.selectFrom('api_keys').select('id').executeTakeFirstOrThrow()
  const hash = await hashOf(key)
  await service.db
    .insertInto('idempotency_keys')
    .values({ api_key_id: id, key_hash: hash, fingerprint: '', pet_id: 1n, created_at: 0n })
    .execute()
  expect((await create(key)).status).toBe(201)
})

// Last: nothing can be added to this database any more.
test.runIf(engine === 'sqlite')('a disk that is full is 503, with a key as without', async () => {
  await sql`pragma max_page_count = 1`.execute(service.db) // no smaller than it is now
  const answers = new Set<number>()
  for (let serial = 0; serial < 400; serial++) {
    const { status } = await create(newKey(), { name: 'x'.repeat(255), categoryId: 3 })
    answers.add(status)
    if (status !== 201) break
  }
  expect([...answers].at(-1)).toBe(503)
  expect((await service.rest('GET', '/pets')).status).toBe(200)
})
