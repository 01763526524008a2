/** createPet with an Idempotency-Key creates one pet, even when the client repeats the request. */
import { hash } from 'node:crypto'
import { expect, test } from 'vitest'
import { engine, newDatabase } from '../support/database.ts'
import { addKey, running, startInstance, until } from '../support/instance.ts'
import { countPets } from '../support/pets.ts'
import { type RestClient, restClient } from '../support/rest.ts'
import { errorOf, serviceForFile, startService, trpcClient } from '../support/service.ts'
import { openSql } from '../support/sql.ts'

const service = await serviceForFile()

const rex = { name: 'Rex', categoryId: 3, status: 'available' }
let serial = 0
const newKey = () => `"key ${serial++}"`
const hashOf = (key: string) => hash('sha256', key.slice(1, -1)) // without the quotes
const create = (key: string, body: unknown = rex, rest: RestClient = service.rest) =>
  rest('POST', '/pets', { headers: { 'idempotency-key': key }, body })
const idOf = ({ body }: { body: unknown }) => (body as { id: number }).id
const inserting = (table: string) => running(service.sql, `insert into \`${table}\`%`)

test('a repetition returns the first response and creates no pet', async () => {
  const key = newKey()
  const first = await create(key)
  const pets = await countPets(service.sql)
  const inOtherWords = '{"status":"available","categoryId":3.0,"name":"Rex","extra":1}'
  for (const body of [rex, { ...rex, status: undefined }, inOtherWords]) {
    const again = await create(key, body)
    expect(again).toMatchObject({ status: 201, text: first.text })
    expect(again.headers.get('location')).toBe(first.headers.get('location'))
  }
  expect(await countPets(service.sql)).toBe(pets)
  // Earlier releases have stored the same fingerprint: their keys stay valid.
  const known = 'select fingerprint from idempotency_keys where key_hash = ?'
  expect(await service.sql(known, [hashOf(key)])).toEqual([
    { fingerprint: hash('sha256', '{"name":"Rex","categoryId":"3","status":"available"}') },
  ])
})

// once.test.ts has the inputs that differ; only the defaults are those of the schema.
test('a different request with the same key returns 422, such as one without the status', async () => {
  const key = newKey()
  const pending = { ...rex, status: 'pending' }
  const first = await create(key, pending)
  expect(first.status).toBe(201)
  const pets = await countPets(service.sql)
  expect((await create(key, { ...rex, status: undefined })).body).toEqual({
    code: 'UNPROCESSABLE_CONTENT',
    message: 'This Idempotency-Key was used for another request; take a new one',
    status: 422,
  })
  expect((await create(key, pending)).text).toBe(first.text)
  expect(await countPets(service.sql)).toBe(pets)
})

test('an invalid creation does not use its key', async () => {
  const key = newKey()
  expect((await create(key, { name: '' })).status).toBe(400)
  expect((await create(key)).status).toBe(201)
})

test('a creation that fails after its insert leaves neither a pet nor a key', async () => {
  const key = newKey()
  const pets = await countPets(service.sql)
  await service.sql(
    engine === 'mysql'
      ? "create trigger broken before insert on idempotency_keys for each row signal sqlstate '45000'"
      : 'create trigger broken before insert on idempotency_keys begin insert into nowhere values (1); end',
  )
  try {
    expect(await create(key)).toMatchObject({ status: 500 })
    expect(await countPets(service.sql)).toBe(pets)
  } finally {
    await service.sql('drop trigger broken')
  }
  expect((await create(key, { ...rex, name: 'Bella' })).status).toBe(201)
  expect(await countPets(service.sql)).toBe(pets + 1)
})

test('an Idempotency-Key belongs to one API key, also for concurrent requests', async () => {
  const apiKeys = await Promise.all(
    ['one', 'two', 'three'].map((name) => addKey(service.sql, name)),
  )
  const clients = apiKeys.map((key) => restClient(service.origin, key))
  for (const client of clients) expect((await client('GET', '/pets')).status).toBe(200)
  for (let round = 0; round < 3; round++) {
    const key = newKey()
    const createAll = () => Promise.all(clients.map((client) => create(key, rex, client)))
    const answers = await createAll()
    expect(answers.map(({ status }) => status)).toEqual([201, 201, 201])
    expect(new Set(answers.map(idOf)).size).toBe(3)
    expect((await createAll()).map(idOf)).toEqual(answers.map(idOf))
  }
})

test('tRPC returns the stored output of a REST request', async () => {
  const key = newKey()
  const first = await create(key)
  const client = trpcClient(service.origin, service.key, (url, init) => {
    const headers = new Headers(init?.headers)
    headers.set('idempotency-key', key)
    return fetch(url, { ...init, headers })
  })
  const again = await client.createPet.mutate({ name: 'Rex', categoryId: 3 })
  expect(again.id).toBe(BigInt(idOf(first)))
  const other = client.createPet.mutate({ name: 'Bella', categoryId: 3 })
  expect(await errorOf(other)).toMatchObject({ code: 'UNPROCESSABLE_CONTENT', status: 422 })
})

test('concurrent requests with one key on two instances return 201 or 409, and create one pet', async () => {
  const database = await newDatabase()
  // In processes of their own, which alone run at the same moment.
  const one = await startInstance({}, database)
  const two = await startInstance({}, database)
  const clients = [one, two].map(({ origin }) => restClient(origin, one.key))
  for (const client of clients) expect((await client('GET', '/pets')).status).toBe(200)
  for (let round = 1; round <= 10; round++) {
    const key = newKey()
    const calls = [...clients, ...clients, ...clients].map((client) => create(key, rex, client))
    const answers = await Promise.all(calls)
    const created = answers.filter(({ status }) => status === 201)
    expect(new Set(created.map(({ text }) => text)).size).toBe(1)
    expect(answers.every(({ status }) => status === 201 || status === 409)).toBe(true)
    expect(await one.countPets()).toBe(round)
  }
  await Promise.all([one.stop(), two.stop()])
  await database.remove()
})

// On SQLite, a statement blocks the process, so no request arrives while another one runs.
test.runIf(engine === 'mysql')(
  'a repetition returns 409 while the first request runs',
  async () => {
    await using locker = await openSql(service.databaseUrl)
    const key = newKey()
    const pets = await countPets(service.sql)
    const other = restClient(service.origin, await addKey(service.sql, 'other'))
    expect((await other('GET', '/pets')).status).toBe(200)
    await locker('lock tables pets write')
    const first = create(key)
    await until('the first insert waits', async () => (await inserting('pets')).length === 1)
    expect((await create(key)).body).toEqual({
      code: 'CONFLICT',
      message: 'A request with this Idempotency-Key is still running; try again in a moment',
      status: 409,
    })
    expect((await create(key, { ...rex, name: 'Bella' })).status).toBe(409)
    const second = create(key, rex, other)
    await until('both inserts wait', async () => (await inserting('pets')).length === 2)
    await locker('unlock tables')
    const answers = await Promise.all([first, second])
    expect(answers.map(({ status }) => status)).toEqual([201, 201])
    expect(idOf(answers[0])).not.toBe(idOf(answers[1]))
    expect((await create(key)).text).toBe((await first).text)
    expect(await countPets(service.sql)).toBe(pets + 2)
  },
)

test.runIf(engine === 'mysql')(
  'a repetition on another instance returns 409 while the first request runs',
  async () => {
    const key = newKey()
    const pets = await countPets(service.sql)
    const { databaseUrl, sql } = service
    const other = await startService({}, { database: { url: databaseUrl, remove: async () => {} } })
    // A request waits here between the insert of its key and the commit.
    await sql(`create trigger hold after insert on idempotency_keys for each row
      begin do get_lock(database(), 20); do release_lock(database()); end`)
    await sql('select get_lock(database(), 20)')
    const calls = [create(key), create(key, rex, restClient(other.origin, service.key))]
    const first = await Promise.race(calls).finally(async () => {
      await sql('select release_lock(database())')
      await Promise.allSettled(calls)
      await sql('drop trigger hold')
    })
    expect(first).toMatchObject({ status: 409, body: { code: 'CONFLICT' } })
    const statuses = (await Promise.all(calls)).map(({ status }) => status)
    expect(statuses.sort()).toEqual([201, 409])
    expect(await countPets(sql)).toBe(pets + 1)
    await other.stop()
  },
)

test.runIf(engine === 'mysql').each([
  ['the same request', 201],
  ['another request', 422],
])(
  'when another instance commits %s first, createPet returns %i and creates no pet',
  async (which, status) => {
    const { sql } = service
    const key = newKey()
    const model = await create(key)
    const [row = {}] = await sql('select * from idempotency_keys where key_hash = ?', [hashOf(key)])
    await sql('delete from idempotency_keys where key_hash = ?', [hashOf(key)])
    const pets = await countPets(sql)
    await using rival = await openSql(service.databaseUrl)
    await using locker = await openSql(service.databaseUrl)
    await locker('lock tables pets write')
    const answer = create(key)
    await until('it has found no key', async () => (await inserting('pets')).length === 1)
    await rival('begin')
    const fingerprint = which === 'the same request' ? row.fingerprint : '0'.repeat(64)
    await rival('insert into idempotency_keys values (?)', [Object.values({ ...row, fingerprint })])
    await locker('unlock tables')
    await until('the insert waits', async () => (await inserting('idempotency_keys')).length === 1)
    await rival('commit')
    expect((await answer).status).toBe(status)
    if (status === 201) expect((await answer).text).toBe(model.text)
    expect(await countPets(sql)).toBe(pets)
  },
)
