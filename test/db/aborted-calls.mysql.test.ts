/** Calls whose clients close the connection before the response: their statements end. */
import { once } from 'node:events'
import { afterEach, beforeEach, expect, onTestFinished, test } from 'vitest'
import { connect } from '../../db/connect.ts'
import { Deadline } from '../../db/deadline.ts'
import { execute } from '../../db/statement.ts'
import { inTransaction } from '../../db/transaction.ts'
import { petStore } from '../../src/petstore/pets/store.ts'
import { freeze, thaw } from '../support/freeze.ts'
import { addKey, instanceForFile, running, until } from '../support/instance.ts'
import { occupy } from '../support/occupy.ts'
import { addPet } from '../support/pets.ts'
import { abortable, keepAlive, requestText } from '../support/raw.ts'
import { keyedFetch } from '../support/rest.ts'
import { transformer } from '../support/router.ts'
import { openSql, type Sql } from '../support/sql.ts'

const rex = { name: 'Rex', categoryId: 3 }
const body = JSON.stringify(rex)

let locker: Sql
let key: string
// Long, so that no timeout ends a statement.
const service = await instanceForFile({ DATABASE_TIMEOUT: '25s' })
const list = (query = '') => keyedFetch(service.origin, key)(`/v1/pets${query}`)
beforeEach(async () => {
  locker = await openSql(service.databaseUrl)
  await service.sql('delete from pets')
  // A new key, because no connection may be free when a cached key is looked up again.
  key = await addKey(service.sql)
  expect((await list()).status).toBe(200)
})
afterEach(() => locker.close())

const send = (line: string, parts = {}) => abortable(service.program.port, line, { key, ...parts })
const input = (value: object) =>
  `?input=${encodeURIComponent(JSON.stringify(transformer.serialize(value)))}`
const reading = 'select%from `pets`%'
const adding = 'insert into `pets`%'
const abortedCalls = () =>
  service.program.stderr.split('\n').filter((line) => /"status":499\b/.test(line)).length
/** Waits until this many statements of a pattern run on the server. */
const untilRunning = (pattern: string, count: number, timeout?: number) =>
  until(
    `${count} of ${pattern} run`,
    async () => (await running(service.sql, pattern)).length === count,
    timeout,
  )

test.each<[what: string, pattern: string, line: string, parts?: object]>([
  ['listPets, REST', reading, 'GET /v1/pets'],
  ['getPet, REST', reading, 'GET /v1/pets/1'],
  ['createPet, REST', adding, 'POST /v1/pets', { body }],
  [
    'createPet with a key, REST',
    adding,
    'POST /v1/pets',
    { body, headers: ['Idempotency-Key: "aborted"'] },
  ],
  ['listPets, tRPC', reading, `GET /trpc/listPets${input({})}`],
  ['getPet, tRPC', reading, `GET /trpc/getPet${input({ petId: 1 })}`],
  [
    'createPet, tRPC',
    adding,
    'POST /trpc/createPet',
    { body: JSON.stringify(transformer.serialize(rex)) },
  ],
])('%s: the statement ends, and the log has 499', async (_, pattern, line, parts) => {
  const before = abortedCalls()
  await locker('lock tables pets write')
  const call = await send(line, parts)
  await untilRunning(pattern, 1)
  call.resetAndDestroy()
  await untilRunning(pattern, 0) // although the lock is still held
  await until('the connection is free', async () => (await service.used()) === 0)
  await until('the log has the call', () => abortedCalls() === before + 1)
  await locker('unlock tables')
  expect((await service.rest('GET', '/pets')).body).toEqual([])
  expect(service.program.stderr).not.toMatch(/"level":"(error|fatal)"/)
})

test.each([
  ['pets', reading],
  ['api_keys', 'select%from `api_keys`%'],
])(
  'a request that turns out to be malformed while it waits for %s is 400, and its statement ends',
  async (table, pattern) => {
    await locker(`lock tables ${table} write`)
    const unknown = { key: `petstore_${'s'.repeat(43)}` }
    const call = await send('GET /v1/pets/1', {
      headers: ['Transfer-Encoding: chunked'],
      ...(table === 'api_keys' && unknown),
    })
    await untilRunning(pattern, 1)
    call.write('zz\r\n')
    expect(String((await once(call, 'data'))[0])).toContain('HTTP/1.1 400 ')
    await untilRunning(pattern, 0, 2_000) // although the lock is still held
    await until('the connection is free', async () => (await service.used()) === 0)
    await locker('unlock tables')
    expect(service.program.stderr).not.toMatch(/"level":"(error|fatal)"/)
  },
)

// By itself a server notices that the client is gone at once in a wait for a lock, or after seconds.
test('a statement that uses the CPU ends on the server', async () => {
  await service.rest('POST', '/pets', { body: rex })
  await service.sql('rename table pets to kept')
  await service.sql('create view pets as select * from kept where sleep(20) = 0')
  const call = await send('GET /v1/pets')
  await untilRunning(reading, 1)
  call.resetAndDestroy()
  await untilRunning(reading, 0, 2_000)
  await service.sql('drop view pets')
  await service.sql('rename table kept to pets')
})

test('a call that waits for a connection leaves the queue, and takes none', async () => {
  const connections = async () => {
    await untilRunning(reading, 10)
    return (await running(service.sql, reading)).sort()
  }
  await locker('lock tables pets write')
  const first = await occupy(10, list, service.used)
  const before = await connections()
  const others = await Promise.all([
    send('GET /v1/pets'),
    send('POST /v1/pets', { body }),
    send(`GET /trpc/getPet${input({ petId: 1 })}`),
  ])
  await until('the others wait', async () => (await service.waiting()) === 3)
  for (const call of others) call.resetAndDestroy()
  await until('none waits', async () => (await service.waiting()) === 0)
  await locker('unlock tables')
  for (const { status } of await Promise.all(first)) expect(status).toBe(200)
  await until('all connections are free', async () => (await service.used()) === 0)
  expect(await service.countPets()).toBe(0)
  await locker('lock tables pets write')
  const again = await occupy(10, list, service.used)
  expect(await connections(), 'no connection was lost').toEqual(before)
  await locker('unlock tables')
  for (const { status } of await Promise.all(again)) expect(status).toBe(200)
})

test('a creation whose client resets the connection before its batch is not part of the batch', async () => {
  const open = () => keepAlive(service.program.port)
  const [leaving, staying] = [await open(), await open()]
  const writers = await Promise.all(Array.from({ length: 5 }, open))
  const sendPet = (socket: typeof staying, name: string) => {
    const pet = JSON.stringify({ name, categoryId: 3 })
    const text = requestText('POST /v1/pets', { key, body: pet })
    return new Promise((resolve) => socket.write(text, resolve))
  }
  await locker('lock tables pets write')
  // Five statements run, as many as a line may have, so the other calls wait.
  for (const [index, writer] of writers.entries()) {
    await sendPet(writer, `waiting ${index}`)
    await untilRunning(adding, index + 1)
  }
  const { pid } = service.program.child
  await freeze(Number(pid))
  await sendPet(leaving, 'leaving')
  await sendPet(staying, 'staying')
  leaving.resetAndDestroy()
  const answers = [...writers, staying].map((socket) => once(socket, 'data'))
  const before = abortedCalls()
  thaw(Number(pid))
  await until('the log has the call', () => abortedCalls() === before + 1)
  await locker('unlock tables')
  for (const [data] of await Promise.all(answers)) expect(String(data)).toMatch(/ 201 /)
  const pets = await service.sql('select name from pets order by name')
  expect(pets.map(({ name }) => name)).toEqual([
    'staying',
    ...writers.map((_, index) => `waiting ${index}`),
  ])
  for (const socket of [...writers, staying]) socket.destroy()
})

test('a transaction with a statement that was given up fails, even if its work ignores that', async () => {
  const db = await connect(service.databaseUrl)
  onTestFinished(() => db.destroy())
  const pet = { name: 'Rex', categoryId: 3n, status: 'sold' } as const
  using gone = new Deadline(20_000)
  using later = new Deadline(20_000)
  await locker('lock tables pets write')
  const result = inTransaction(db, async (transaction) => {
    const pets = petStore(transaction)
    await addPet(pets, { deadline: gone }, pet).catch(() => {})
    await addPet(pets, { deadline: later }, pet).catch(() => {})
  })
  const refused = expect(result).rejects.toThrow('cannot be used')
  await untilRunning(adding, 1)
  gone.giveUp(new Error('Gone'))
  await refused
  await locker('unlock tables')
  expect(await service.countPets()).toBe(0)
})

test('the deadline of the latest statement is that of the commit', async () => {
  const db = await connect(service.databaseUrl)
  onTestFinished(() => db.destroy())
  const pet = { name: 'Rex', category_id: 3n, status: 'sold' } as const
  using gone = new Deadline(20_000)
  using later = new Deadline(20_000)
  await inTransaction(db, async (transaction) => {
    const insert = transaction.kysely.insertInto('pets').values(pet)
    await execute(transaction, insert, gone)
    await execute(transaction, insert, later)
    gone.giveUp(new Error('Gone'))
  })
  expect(await service.countPets()).toBe(2)
})

test('the Idempotency-Key of an aborted call can be used again', async () => {
  await locker('lock tables pets write')
  const call = await send('POST /v1/pets', { body, headers: ['Idempotency-Key: "once more"'] })
  await untilRunning(adding, 1)
  call.resetAndDestroy()
  await untilRunning(adding, 0)
  await until('the connection is free', async () => (await service.used()) === 0)
  await locker('unlock tables')
  const headers = { 'idempotency-key': '"once more"', authorization: `Bearer ${key}` }
  expect((await service.rest('POST', '/pets', { headers, body: rex })).status).toBe(201)
  expect(await service.countPets()).toBe(1)
})

test('other calls that wait for the same lookup of a key succeed', async () => {
  key = await addKey(service.sql)
  await locker('lock tables api_keys write')
  const first = await send('GET /v1/pets')
  const second = list()
  await until(
    'it waits',
    async () => (await running(service.sql, 'select%from `api_keys`%')).length > 0,
  )
  first.resetAndDestroy()
  await locker('unlock tables')
  expect((await second).status).toBe(200)
})
