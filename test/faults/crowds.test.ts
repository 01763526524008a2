/** More concurrent requests and unknown keys than the database can serve. */

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

test('at most a thousand calls wait for ten connections', async () => {
  const service = await startInstance({ DATABASE_TIMEOUT: '25s' }, await newDatabase(mysql.url))
  let serial = 0
  const list = async (query = `?cursor=${serial++}`) => {
    const answer = await service.fetch(`/v1/pets${query}`)
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
  const lookUps = () => service.metric('petstore_key_lookups_total{cache="hit"}')
  const before = await lookUps()
  const others = Array.from({ length: 1_000 }, () => list())
  await until('a thousand calls wait', async () => (await lookUps()) >= before + 1_000)
  const start = performance.now()
  expect(await Promise.all([list(), list(), list()])).toEqual([503, 503, 503])
  expect(performance.now() - start, 'at once').toBeLessThan(5_000)
  // The log counts the rejected calls, without a line for each.
  const errors = () =>
    service.program.entries().filter(({ level, msg }) => level === 50 && msg !== 'request')
  await until(
    'the log has counted all three',
    () =>
      [1, 2, 3].includes(errors().length) &&
      errors().reduce((sum, { calls }) => sum + Number(calls), 0) === 3,
  )
  expect(new Set(errors().map(({ msg }) => msg))).toEqual(
    new Set(['Too many calls wait for the database']),
  )
  await locker('unlock tables')
  expect(new Set(await Promise.all([...first, ...others]))).toEqual(new Set([200]))
  expect(await state()).toEqual([0, 0])
  await locker.close()
  await service.stop()
})

test('at most a thousand calls wait for single pets, a hundred in one query', async () => {
  const service = await startInstance({ DATABASE_TIMEOUT: '25s' }, await newDatabase(mysql.url))
  let serial = 0
  const get = async () => {
    const answer = await service.fetch(`/v1/pets/${++serial}`)
    await answer.body?.cancel()
    return answer.status
  }
  const getMany = (count: number) => Array.from({ length: count }, get)
  await get()
  await using locker = await openSql(service.databaseUrl)
  await locker('lock tables pets write')
  const used = () => service.metric('petstore_database_connections_used')
  const first = getMany(1)
  await until('one connection is in use', async () => (await used()) === 1)
  // Concurrent: a call that does not fit into one query does not wait for the end of that query.
  const { pid } = service.program.child
  await freeze(Number(pid))
  const burst = getMany(500)
  thaw(Number(pid))
  await until('six connections are in use', async () => (await used()) >= 6)
  const others = getMany(1_010 - 501)
  await until('ten connections are in use', async () => (await used()) === 10)
  const lookUps = () => service.metric('petstore_key_lookups_total{cache="hit"}')
  await until('all calls have arrived', async () => (await lookUps()) >= 1_010)
  const start = performance.now()
  expect(await Promise.all(getMany(3))).toEqual([503, 503, 503])
  expect(performance.now() - start, 'at once').toBeLessThan(5_000)
  await locker('unlock tables')
  const statuses = await Promise.all([...first, ...burst, ...others])
  expect(statuses).toEqual(statuses.map(() => 404))
  await locker.close()
  await service.stop()
})

test('one query looks up many waiting keys, at most 500', async () => {
  const database = await newDatabase(mysql.url)
  const service = await startInstance({ DATABASE_TIMEOUT: '30s' }, database)
  await service.rest('GET', '/pets')
  await using locker = await openSql(service.databaseUrl)
  await locker('lock tables api_keys write')
  const connections = 1_200
  const misses = () => service.metric('petstore_key_lookups_total{cache="miss"}')
  const before = await misses()
  const statuses = Array.from({ length: connections }, async () => {
    const request = `GET /v1/pets HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${unknownKey()}\r\n\r\n`
    const { answers } = await converse(service.origin, request, { timeout: 40_000 })
    return answers[0]?.status
  })
  await until('all keys wait', async () => (await misses()) - before === connections, 25_000)
  const { statements = [] } = service.proxy ?? {}
  await locker('unlock tables')
  expect(new Set(await Promise.all(statuses))).toEqual(new Set([401]))
  const sizes = statements
    .filter((text) => /from `api_keys`/.test(text))
    .map((text) => text.match(/[\da-f]{64}/g)?.length ?? 0)
  expect(Math.max(...sizes)).toBeLessThanOrEqual(500)
  expect(Math.max(...sizes), 'the most keys in one query').toBeGreaterThan(100)
  expect((await service.rest('GET', '/pets')).status).toBe(200)
  await locker.close()
  await service.stop()
})

test('at most ten thousand keys wait for a look-up', async () => {
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
        `GET /v1/pets HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${unknownKey()}\r\n\r\n`,
      )
      sockets.push(socket)
    }
    await until('all keys wait', async () => (await misses()) === sockets.length, 25_000)
  }
  expect(new Set(refusals)).toEqual(new Set(['503']))
  expect(refusals.length).toBe(sockets.length - 10_000)
  for (const socket of sockets) socket.destroy()
  await locker.close()
  await service.stop()
})

const unknownKey = () => `petstore_${randomBytes(32).toString('base64url')}`
