/** More requests and more strange keys at once than the database can be asked for. */

import { randomBytes } from 'node:crypto'
import { connect, type Socket } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { newDatabase } from '../support/database.ts'
import { freeze, thaw } from '../support/freeze.ts'
import { startInstance, until } from '../support/instance.ts'
import { type MysqlServer, startMysql } from '../support/mysql.ts'
import { occupy } from '../support/occupy.ts'
import { converse } from '../support/raw.ts'
import { openSql } from '../support/sql.ts'

let mysql: MysqlServer
beforeAll(async () => {
  mysql = await startMysql()
})
afterAll(() => mysql.remove())

test('a thousand may wait for ten connections, and no more', async () => {
  const service = await startInstance({ DATABASE_TIMEOUT: '25s' }, await newDatabase(mysql.url))
  const headers = { authorization: `Bearer ${service.key}` }
  let serial = 0
  const list = async (query = `?cursor=${serial++}`) => {
    const answer = await fetch(`${service.origin}/v1/pets${query}`, { headers })
    await answer.body?.cancel()
    return answer.status
  }
  await list()
  await using locker = await openSql(service.databaseUrl)
  await locker('lock tables pets write')
  const state = async () => [
    await service.metric('petstore_database_connections_used'),
    await service.metric('petstore_database_connections_waiting'),
  ]
  const first = await occupy(10, list, async () => Number((await state())[0]))
  const looked = () => service.metric('petstore_key_lookups_total{cache="hit"}')
  const before = await looked()
  const others = Array.from({ length: 1_000 }, () => list())
  await until('a thousand wait', async () => (await looked()) >= before + 1_000)
  const start = performance.now()
  expect(await Promise.all([list(), list(), list()])).toEqual([503, 503, 503])
  expect(performance.now() - start, 'at once').toBeLessThan(5_000)
  // The log tells how many there were, without a line for each.
  const told = () =>
    service.program.entries().filter(({ level, msg }) => level === 50 && msg !== 'request')
  await until(
    'the log has told of all three',
    () =>
      [1, 2, 3].includes(told().length) &&
      told().reduce((sum, { calls }) => sum + Number(calls), 0) === 3,
  )
  expect(new Set(told().map(({ msg }) => msg))).toEqual(
    new Set(['Too many calls wait for the database']),
  )
  await locker('unlock tables')
  expect(new Set(await Promise.all([...first, ...others]))).toEqual(new Set([200]))
  expect(await state()).toEqual([0, 0])
  await locker.close()
  await service.stop()
})

test('a thousand may wait for single pets, a hundred in one query, and no more', async () => {
  const service = await startInstance({ DATABASE_TIMEOUT: '25s' }, await newDatabase(mysql.url))
  const headers = { authorization: `Bearer ${service.key}` }
  let serial = 0
  const get = async () => {
    const answer = await fetch(`${service.origin}/v1/pets/${++serial}`, { headers })
    await answer.body?.cancel()
    return answer.status
  }
  const getMany = (count: number) => Array.from({ length: count }, get)
  await get()
  await using locker = await openSql(service.databaseUrl)
  await locker('lock tables pets write')
  const used = () => service.metric('petstore_database_connections_used')
  const first = getMany(1)
  await until('one is in use', async () => (await used()) === 1)
  // All at once: what finds no seat in one query does not wait for the end of that either.
  const { pid } = service.program.child
  await freeze(Number(pid))
  const crowd = getMany(500)
  thaw(Number(pid))
  await until('five more are in use', async () => (await used()) >= 6)
  const others = getMany(1_010 - 501)
  await until('ten are in use', async () => (await used()) === 10)
  const looked = () => service.metric('petstore_key_lookups_total{cache="hit"}')
  await until('all are there', async () => (await looked()) >= 1_010)
  const start = performance.now()
  expect(await Promise.all(getMany(3))).toEqual([503, 503, 503])
  expect(performance.now() - start, 'at once').toBeLessThan(5_000)
  await locker('unlock tables')
  const statuses = await Promise.all([...first, ...crowd, ...others])
  expect(statuses).toEqual(statuses.map(() => 404))
  await locker.close()
  await service.stop()
})

test('keys that wait to be looked up are asked for together, at most 500 in one look-up', async () => {
  const database = await newDatabase(mysql.url)
  const service = await startInstance({ DATABASE_TIMEOUT: '30s' }, database)
  await service.rest('GET', '/pets')
  await using locker = await openSql(service.databaseUrl)
  await locker('lock tables api_keys write')
  const connections = 1_200
  const misses = () => service.metric('petstore_key_lookups_total{cache="miss"}')
  const before = await misses()
  const statuses = Array.from({ length: connections }, async () => {
    const request = `GET /v1/pets HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${strangeKey()}\r\n\r\n`
    const { answers } = await converse(service.origin, request, { timeout: 40_000 })
    return answers[0]?.status
  })
  await until('all are there', async () => (await misses()) - before === connections, 25_000)
  const { statements = [] } = service.proxy ?? {}
  await locker('unlock tables')
  expect(new Set(await Promise.all(statuses))).toEqual(new Set([401]))
  const sizes = statements
    .filter((text) => /from `api_keys`/.test(text))
    .map((text) => text.match(/[\da-f]{64}/g)?.length ?? 0)
  expect(Math.max(...sizes)).toBeLessThanOrEqual(500)
  expect(Math.max(...sizes), 'many are asked for together').toBeGreaterThan(100)
  expect((await service.rest('GET', '/pets')).status).toBe(200)
  await locker.close()
  await service.stop()
})

test('ten thousand keys may wait to be looked up, and no more', async () => {
  const service = await startInstance({ DATABASE_TIMEOUT: '30s' }, await newDatabase(mysql.url))
  await using locker = await openSql(service.databaseUrl)
  await locker('lock tables api_keys write')
  const misses = () => service.metric('petstore_key_lookups_total{cache="miss"}')
  const refusals: string[] = []
  const sockets: Socket[] = []
  while (refusals.length === 0 && sockets.length < 12_000) {
    for (let count = 0; count < 500; count++) {
      const socket = connect(service.program.port, '127.0.0.1').on('error', () => {})
      socket.on('data', (bytes) => refusals.push(bytes.toString('latin1', 9, 12)))
      socket.write(
        `GET /v1/pets HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${strangeKey()}\r\n\r\n`,
      )
      sockets.push(socket)
    }
    await until('all are there', async () => (await misses()) === sockets.length, 25_000)
  }
  expect(new Set(refusals)).toEqual(new Set(['503']))
  expect(refusals.length).toBe(sockets.length - 10_000)
  for (const socket of sockets) socket.destroy()
  await locker.close()
  await service.stop()
})

const strangeKey = () => `petstore_${randomBytes(32).toString('base64url')}`
