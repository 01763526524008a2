/** Calls whose clients close the connection before the response: their statements end. */
import { once } from 'node:events'
import { request } from 'node:http'
import type { Socket } from 'node:net'
import { afterEach, beforeEach, expect, onTestFinished, test } from 'vitest'
import { connect } from '../../db/connect.ts'
import { Deadline } from '../../db/deadline.ts'
import { execute } from '../../db/statement.ts'
import { inTransaction } from '../../db/transaction.ts'
import { petStore } from '../../src/petstore/pets/store.ts'
import { freeze, thaw } from '../support/freeze.ts'
import { addKey, instanceForFile, running, until } from '../support/instance.ts'
import { occupy } from '../support/occupy.ts'
import { keepAlive, requestText } from '../support/raw.ts'
import { keyedFetch } from '../support/rest.ts'
import { transformer } from '../support/router.ts'
import { openSql, type Sql } from '../support/sql.ts'

const rex = { name: 'Rex', categoryId: 3 }

let locker: Sql
let client: ReturnType<typeof clientOf>
const clientOf = (key: string) => ({
  key,
  fetch: keyedFetch(service.origin, key),
})
// Long, so that no timeout ends a statement.
const service = await instanceForFile({ DATABASE_TIMEOUT: '25s' })
beforeEach(async () => {
  locker = await openSql(service.databaseUrl)
  await service.sql('delete from pets')
  // A new key, because no connection may be free when a cached key is looked up again.
  client = clientOf(await addKey(service.sql))
  expect((await client.fetch('/v1/pets')).status).toBe(200)
})
afterEach(() => locker.close())

/** Sends a request whose client resets its connection at the signal: a client that closes may still read. */
const send = (
  method: string,
  path: string,
  signal: AbortSignal,
  more: Record<string, string> = {},
  body: unknown = rex,
) =>
  new Promise<{ status: number | undefined }>((resolve, reject) => {
    const headers = {
      authorization: `Bearer ${client.key}`,
      'content-type': 'application/json',
      ...more,
    }
    const req = request(service.origin + path, { method, headers, agent: false }, (res) => {
      res.resume().on('end', () => resolve({ status: res.statusCode }))
    })
    signal.addEventListener('abort', () => req.socket?.resetAndDestroy())
    req.on('error', reject).end(method === 'POST' ? JSON.stringify(body) : undefined)
  })
const input = (value: object) =>
  `?input=${encodeURIComponent(JSON.stringify(transformer.serialize(value)))}`
/** Sends a creation, even to a process that is frozen. */
async function sendPet(socket: Socket, name: string): Promise<void> {
  const body = JSON.stringify({ name, categoryId: 3 })
  const text = requestText('POST /v1/pets', { key: client.key, body })
  await new Promise((resolve) => socket.write(text, resolve))
}
const reading = 'select%from `pets`%'
const adding = 'insert into `pets`%'
const calls: [string, string, (signal: AbortSignal) => Promise<unknown>][] = [
  ['listPets, REST', reading, (signal) => send('GET', '/v1/pets', signal)],
  ['getPet, REST', reading, (signal) => send('GET', '/v1/pets/1', signal)],
  ['createPet, REST', adding, (signal) => send('POST', '/v1/pets', signal)],
  [
    'createPet with a key, REST',
    adding,
    (signal) => send('POST', '/v1/pets', signal, { 'idempotency-key': '"aborted"' }),
  ],
  ['listPets, tRPC', reading, (signal) => send('GET', `/trpc/listPets${input({})}`, signal)],
  ['getPet, tRPC', reading, (signal) => send('GET', `/trpc/getPet${input({ petId: 1 })}`, signal)],
  [
    'createPet, tRPC',
    adding,
    (signal) => send('POST', '/trpc/createPet', signal, {}, transformer.serialize(rex)),
  ],
]
const used = () => service.metric('petstore_database_connections_used')
const waiting = () => service.metric('petstore_database_connections_waiting')
const abortedCalls = () =>
  service.program.stderr.split('\n').filter((line) => /"status":499\b/.test(line)).length

test.each(calls)('%s: the statement ends, and the log has 499', async (_, pattern, call) => {
  const before = abortedCalls()
  await locker('lock tables pets write')
  const controller = new AbortController()
  const answer = call(controller.signal).then(
    () => 'answered',
    () => 'aborted',
  )
  await until('it waits', async () => (await running(service.sql, pattern)).length === 1)
  controller.abort()
  expect(await answer).toBe('aborted')
  await until(
    'it ends, although the lock is still held',
    async () => (await running(service.sql, pattern)).length === 0,
  )
  await until('the connection is free', async () => (await used()) === 0)
  await until('the log has the call', () => abortedCalls() === before + 1)
  await locker('unlock tables')
  expect((await service.rest('GET', '/pets')).body).toEqual([])
  // The log has no error.
  expect(service.program.stderr).not.toMatch(/"level":"(error|fatal)"/)
})

// By itself a server notices that the client is gone at once in a wait for a lock, or after seconds.
test('a statement that uses the CPU ends on the server', async () => {
  await service.rest('POST', '/pets', { body: rex })
  await service.sql('rename table pets to kept')
  await service.sql('create view pets as select * from kept where sleep(20) = 0')
  const controller = new AbortController()
  const answer = send('GET', '/v1/pets', controller.signal).catch(() => 'aborted')
  const lists = async () => (await running(service.sql, reading)).length
  await until('it runs', async () => (await lists()) === 1)
  controller.abort()
  expect(await answer).toBe('aborted')
  await until('it ends', async () => (await lists()) === 0, 2_000)
  await service.sql('drop view pets')
  await service.sql('rename table kept to pets')
})

test('a call that waits for a connection leaves the queue, and takes none', async () => {
  await locker('lock tables pets write')
  const stay = new AbortController()
  const ten = () => occupy(10, (query) => send('GET', `/v1/pets${query}`, stay.signal), used)
  const first = await ten()
  const connections = async () => {
    await until('ten lists wait', async () => (await running(service.sql, reading)).length === 10)
    return (await running(service.sql, reading)).sort()
  }
  const before = await connections()
  const controller = new AbortController()
  const others = [
    send('GET', '/v1/pets', controller.signal),
    send('POST', '/v1/pets', controller.signal),
    send('GET', `/trpc/getPet${input({ petId: 1 })}`, controller.signal),
  ].map((answer) => answer.catch(() => 'aborted'))
  await until('the others wait', async () => (await waiting()) === 3)
  controller.abort()
  expect(await Promise.all(others)).toEqual(['aborted', 'aborted', 'aborted'])
  await until('none waits', async () => (await waiting()) === 0)
  await locker('unlock tables')
  const answers = await Promise.all(first)
  expect(answers.map(({ status }) => status)).toEqual(Array(10).fill(200))
  await until('all connections are free', async () => (await used()) === 0)
  expect(await service.countPets()).toBe(0)
  // No connection was lost.
  await locker('lock tables pets write')
  const again = await ten()
  expect(await connections(), 'the same connections').toEqual(before)
  await locker('unlock tables')
  for (const { status } of await Promise.all(again)) expect(status).toBe(200)
})

test('a creation whose client resets the connection before its batch is not part of the batch', async () => {
  const open = () => keepAlive(service.program.port)
  const [first, second, leaving, staying] = await Promise.all([open(), open(), open(), open()])
  await locker('lock tables pets write')
  // Two batches run, so the other calls wait for 50 ms.
  for (const [index, socket] of [first, second].entries()) {
    await sendPet(socket, `waiting ${index}`)
    const count = async () => (await running(service.sql, adding)).length
    await until('it waits', async () => (await count()) === index + 1)
  }
  const { pid } = service.program.child
  await freeze(Number(pid))
  await sendPet(leaving, 'leaving')
  await sendPet(staying, 'staying')
  leaving.resetAndDestroy()
  const answers = [first, second, staying].map((socket) => once(socket, 'data'))
  const before = abortedCalls()
  thaw(Number(pid))
  await until('the log has the call', () => abortedCalls() === before + 1)
  await locker('unlock tables')
  for (const [data] of await Promise.all(answers)) expect(String(data)).toMatch(/ 201 /)
  const pets = await service.sql('select name from pets order by name')
  expect(pets.map(({ name }) => name)).toEqual(['staying', 'waiting 0', 'waiting 1'])
  for (const socket of [first, second, staying]) socket.destroy()
})

test('a transaction with a statement that was given up fails, even if its work ignores that', async () => {
  const db = await connect(service.databaseUrl)
  onTestFinished(() => db.destroy())
  const pet = { name: 'Rex', categoryId: 3n, status: 'sold' } as const
  using gone = new Deadline(20_000)
  using later = new Deadline(20_000)
  await locker('lock tables pets write')
  const result = inTransaction(db, async (transaction) => {
    const { create } = petStore(transaction)
    await create(pet, gone).catch(() => {})
    await create(pet, later).catch(() => {})
  })
  const refused = expect(result).rejects.toThrow('Gone')
  await until('it waits', async () => (await running(service.sql, adding)).length === 1)
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
    const insert = transaction.insertInto('pets').values(pet)
    await execute(transaction, insert, gone)
    await execute(transaction, insert, later)
    gone.giveUp(new Error('Gone'))
  })
  expect(await service.countPets()).toBe(2)
})

test('the Idempotency-Key of an aborted call can be used again', async () => {
  const headers = { 'idempotency-key': '"once more"' }
  await locker('lock tables pets write')
  const controller = new AbortController()
  const answer = send('POST', '/v1/pets', controller.signal, headers).catch(() => 'aborted')
  await until('it waits', async () => (await running(service.sql, adding)).length === 1)
  controller.abort()
  await answer
  await until('it ends', async () => (await running(service.sql, adding)).length === 0)
  await until('the connection is free', async () => (await used()) === 0)
  await locker('unlock tables')
  const again = await send('POST', '/v1/pets', new AbortController().signal, headers)
  expect(again.status).toBe(201)
  expect(await service.countPets()).toBe(1)
})

test('other calls that wait for the same lookup of a key succeed', async () => {
  const key = await addKey(service.sql)
  const headers = { authorization: `Bearer ${key}` }
  await locker('lock tables api_keys write')
  const controller = new AbortController()
  const first = send('GET', '/v1/pets', controller.signal, headers).catch(() => 'aborted')
  const second = client.fetch('/v1/pets', { headers })
  const pattern = 'select%from `api_keys`%'
  await until('it waits', async () => (await running(service.sql, pattern)).length > 0)
  controller.abort()
  expect(await first).toBe('aborted')
  await locker('unlock tables')
  expect((await second).status).toBe(200)
})
