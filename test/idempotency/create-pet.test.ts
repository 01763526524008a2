/** createPet under an Idempotency-Key makes one pet, however often it is asked for. */
import { statSync } from 'node:fs'
import { createTRPCClient, httpBatchLink } from '@trpc/client'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { engine, newDatabase } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'
import { holdWrites } from '../support/hold.ts'
import { countPets } from '../support/pets.ts'
import { runServer } from '../support/process.ts'
import { restClient } from '../support/rest.ts'
import { type AppRouter, transformer } from '../support/router.ts'
import { errorOf, keys, type Service, startService, trpcClient } from '../support/service.ts'
import { canFill, fillDisk, freeDisk } from './full-disk.ts'

/** Milliseconds that a key is kept. */
const LIFETIME = 60_000

let service: Service
beforeAll(async () => {
  service = await startService({ IDEMPOTENCY_LIFETIME: '1m' })
})
afterEach(() => void vi.useRealTimers())
afterAll(() => service.stop())

const rex = { name: 'Rex', categoryId: 3 }
let serial = 0
const newKey = () => `"key ${serial++}"`
const create = (key: string | undefined, body: unknown = rex, { rest } = service) =>
  rest('POST', '/pets', { headers: { 'idempotency-key': key }, body })

/** Makes all keys that are kept so many milliseconds older. */
const age = ({ sql }: Service, milliseconds: number) =>
  sql('update idempotency_keys set created_at = created_at - ?', [milliseconds])

test('a repetition is answered as the first and adds nothing', async () => {
  const key = newKey()
  const first = await create(key)
  const before = await countPets(service.sql)
  const second = await create(key)
  expect(second).toMatchObject({ status: 201, body: first.body })
  expect(second.headers.get('location')).toBe(first.headers.get('location'))
  // The same request in other words.
  const third = await create(key, '{"status":"available","categoryId":3.0,"name":"Rex","extra":1}')
  expect(third).toMatchObject({ status: 201, body: first.body })
  expect(await countPets(service.sql)).toBe(before)
})

test('the same key with another body is 422', async () => {
  const key = newKey()
  await create(key)
  const answer = await create(key, { ...rex, name: 'Bella' })
  expect(answer.body).toEqual({
    code: 'UNPROCESSABLE_CONTENT',
    message: 'This Idempotency-Key was used for another request; take a new one',
    status: 422,
  })
})

test('without a key every request adds a pet', async () => {
  const before = await countPets(service.sql)
  await create(undefined)
  await create(undefined)
  expect(await countPets(service.sql)).toBe(before + 2)
})

test('many at once make one pet', async () => {
  const key = newKey()
  const before = await countPets(service.sql)
  const answers = await Promise.all(Array.from({ length: 8 }, () => create(key)))
  expect(await countPets(service.sql)).toBe(before + 1)
  const statuses = answers.map(({ status }) => status)
  expect(statuses).toContain(201)
  expect(statuses.every((status) => status === 201 || status === 409)).toBe(true)
})

// A statement on the embedded engine holds up the whole process, so that no call meets another.
describe.runIf(engine === 'mysql')('while the first is still running, a repetition is 409', () => {
  test('on the same instance', async () => {
    const key = newKey()
    const letGo = await holdWrites(service.databaseUrl)
    const calls = [create(key), create(key)]
    const first = await Promise.race(calls).finally(letGo)
    expect(first.body).toEqual({
      code: 'CONFLICT',
      message: 'A request with this Idempotency-Key is still running; try again in a moment',
      status: 409,
    })
    const answers = await Promise.all(calls)
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 409])
    const made = answers.find(({ status }) => status === 201)
    expect(await create(key)).toMatchObject({ status: 201, body: made?.body })
  })

  test('on another instance', async () => {
    const key = newKey()
    const pets = await countPets(service.sql)
    const { databaseUrl, sql } = service
    const other = await startService({}, { database: { url: databaseUrl, remove: async () => {} } })
    const otherRest = restClient(other.origin, service.key)
    // Whoever has written down the key waits here before it is certain.
    await sql(`create trigger hold after insert on idempotency_keys for each row
      begin do get_lock(database(), 20); do release_lock(database()); end`)
    await sql('select get_lock(database(), 20)')
    const calls = [create(key), create(key, rex, { ...service, rest: otherRest })]
    const first = await Promise.race(calls).finally(async () => {
      await sql('select release_lock(database())')
      await Promise.allSettled(calls)
      await sql('drop trigger hold')
    })
    expect(first).toMatchObject({ status: 409, body: { code: 'CONFLICT' } })
    const statuses = (await Promise.all(calls)).map(({ status }) => status)
    expect(statuses.sort()).toEqual([201, 409])
    expect(await countPets(service.sql)).toBe(pets + 1)
    await other.stop()
  })
})

test('a key counts for its API key alone', async () => {
  const key = newKey()
  const mine = await create(key)
  const other = restClient(service.origin, (await keys.create(service.databaseUrl, 'other')).key)
  const theirs = await other('POST', '/pets', { headers: { 'idempotency-key': key }, body: rex })
  expect(theirs.status).toBe(201)
  expect(theirs.body).not.toEqual(mine.body)
  // Each is answered with its own from then on, too.
  expect((await create(key)).body).toEqual(mine.body)
  const again = await other('POST', '/pets', { headers: { 'idempotency-key': key }, body: rex })
  expect(again.body).toEqual(theirs.body)
})

test('keys that differ in case or in spaces at the end are different keys', async () => {
  const answers = await Promise.all(['"case"', '"CASE"', '"case "'].map((key) => create(key)))
  expect(new Set(answers.map(({ text }) => text)).size).toBe(3)
})

test('a key is forgotten after its lifetime, and no sooner', async () => {
  const key = newKey()
  const first = await create(key)
  await age(service, LIFETIME - 10_000)
  expect((await create(key)).body).toEqual(first.body)
  await age(service, 10_000)
  const second = await create(key, { ...rex, name: 'Bella' })
  expect(second.status).toBe(201)
  expect(second.body).not.toEqual(first.body)
  // What the old one left behind is replaced.
  expect((await create(key, { ...rex, name: 'Bella' })).body).toEqual(second.body)
})

test('what is too old is removed from time to time, and nothing else', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  const cleaning = await startService({ IDEMPOTENCY_LIFETIME: '1m' })
  const count = async () => {
    const [row] = await cleaning.sql('select count(*) as count from idempotency_keys')
    return Number(row?.count)
  }
  for (let old = 0; old < 3; old++) await create(newKey(), rex, cleaning)
  await age(cleaning, LIFETIME)
  const key = newKey()
  const young = await create(key, rex, cleaning)
  expect(await count()).toBe(4)
  vi.advanceTimersByTime(10 * 60_000)
  await eventually(async () => expect(await count()).toBe(1))
  expect((await create(key, rex, cleaning)).body).toEqual(young.body)
  expect(await countPets(cleaning.sql)).toBe(4)
  vi.useRealTimers()
  await cleaning.stop()
})

test('an invalid creation keeps no key', async () => {
  const key = newKey()
  expect((await create(key, { name: '' })).status).toBe(400)
  expect((await create(key)).status).toBe(201)
})

describe('the header', () => {
  test.each([
    ...[
      '',
      '""',
      '"a',
      'two words',
      '"ä"',
      '"a", "b"',
      'a,b',
      'a;b',
      'a"b',
      '"a"b"',
      '"a\\b"',
      '"a\\"',
    ],
    ...['x'.repeat(256), `"${'x'.repeat(256)}"`],
  ])('%s is 400', async (key) => {
    const answer = await create(Buffer.from(key).toString('latin1'))
    expect(answer.body).toEqual({
      code: 'BAD_REQUEST',
      message:
        'The header Idempotency-Key must be one string of 1 to 255 ASCII characters, such as "8e03978e-40d5-43e8-bc93-6894a57f9324"',
      status: 400,
    })
  })

  test.each([
    ['8e03978e-40d5-43e8-bc93-6894a57f9324', '8e03978e-40d5-43e8-bc93-6894a57f9324'],
    ["!#$%&'()*+-./09:<=>?@AZ[\\]^_`az{|}~", "!#$%&'()*+-./09:<=>?@AZ[\\\\]^_`az{|}~"],
    ['y'.repeat(255), 'y'.repeat(255)],
    ['\\'.repeat(255), '\\\\'.repeat(255)],
  ])('%s may come without quotes', async (bare, quoted) => {
    const first = await create(bare)
    const second = await create(`"${quoted}"`)
    expect([first.status, second.body]).toEqual([201, first.body])
  })

  test.each(['"one word, and; more"', '"\\"quoted\\""', '" "'])(
    '%s is one key, in quotes only',
    async (key) => {
      const first = await create(key)
      expect([first.status, (await create(key)).body]).toEqual([201, first.body])
    },
  )

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

test.runIf(engine === 'sqlite' && canFill)(
  'a disk that is full is 503, with a key as without, until there is room',
  async () => {
    const database = await newDatabase()
    const { key } = await keys.create(database.url, 'test')
    const server = await runServer({ DATABASE_URL: database.url })
    const pid = Number(server.child.pid)
    const rest = restClient(server.origin, key)
    const first = await rest('POST', '/pets', { body: rex })
    expect(first.status).toBe(201)
    fillDisk(pid, statSync(`${database.url.slice('sqlite:'.length)}-wal`).size)
    for (const headers of [{}, { 'idempotency-key': '"full"' }]) {
      expect((await rest('POST', '/pets', { headers, body: rex })).status).toBe(503)
    }
    expect((await rest('GET', '/pets')).body).toEqual([first.body])
    freeDisk(pid)
    for (const headers of [{}, { 'idempotency-key': '"full"' }]) {
      expect((await rest('POST', '/pets', { headers, body: rex })).status).toBe(201)
    }
    server.child.kill()
    await server.exited
    await database.remove()
  },
)
