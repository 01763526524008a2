/** More requests and more strange keys at once than the database can be asked for. */
import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { newDatabase } from '../support/database.ts'
import { startInstance, until } from '../support/instance.ts'
import { type MysqlServer, startMysql } from '../support/mysql.ts'
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
  const list = async () => {
    const answer = await fetch(`${service.origin}/v1/pets`, { headers })
    await answer.body?.cancel()
    return answer.status
  }
  await list()
  const locker = await openSql(service.databaseUrl)
  await locker('lock tables pets write')
  const first = Array.from({ length: 10 }, list)
  const state = async () => [
    await service.metric('petstore_database_connections_used'),
    await service.metric('petstore_database_connections_waiting'),
  ]
  await until('ten are in use', async () => (await state())[0] === 10)
  const others = Array.from({ length: 1_000 }, list)
  await until('a thousand wait', async () => (await state())[1] === 1_000)
  const start = performance.now()
  expect(await Promise.all([list(), list(), list()])).toEqual([503, 503, 503])
  expect(performance.now() - start, 'at once').toBeLessThan(5_000)
  await locker('unlock tables')
  expect(new Set(await Promise.all([...first, ...others]))).toEqual(new Set([200]))
  expect(await state()).toEqual([0, 0])
  await locker.close()
  await service.stop()
})

test('keys that wait to be looked up: at most 500 in one look-up, at most 10,000 waiting', async () => {
  const database = await newDatabase(mysql.url)
  const service = await startInstance({ DATABASE_TIMEOUT: '30s' }, database)
  await service.rest('GET', '/pets')
  const locker = await openSql(service.databaseUrl)
  await locker('lock tables api_keys write')
  // 11,000 strange keys, 20 at a time on each connection.
  const [connections, each] = [550, 20]
  const misses = () => service.metric('petstore_key_lookups_total{cache="miss"}')
  const before = await misses()
  const statuses = Array.from({ length: connections }, async () => {
    const requests = Array.from(
      { length: each },
      () => `GET /v1/pets HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${strangeKey()}\r\n\r\n`,
    )
    const { answers } = await converse(service.origin, requests.join(''), {
      expected: each,
      patience: 40_000,
    })
    return answers.map(({ status }) => status)
  })
  await until('all are there', async () => (await misses()) - before === connections * each, 25_000)
  const { statements = [] } = service.proxy ?? {}
  await locker('unlock tables')
  const all = (await Promise.all(statuses)).flat()
  const count = (status: number) => all.filter((other) => other === status).length
  expect(all).toHaveLength(connections * each)
  expect(count(401) + count(503)).toBe(connections * each)
  // Ten thousand wait, beside those of the look-up that hangs.
  expect(count(401)).toBeGreaterThanOrEqual(10_000)
  expect(count(401)).toBeLessThanOrEqual(10_500)
  const sizes = statements
    .filter((text) => /from `api_keys`/.test(text))
    .map((text) => text.match(/[\da-f]{64}/g)?.length ?? 0)
  expect(Math.max(...sizes)).toBeLessThanOrEqual(500)
  expect(Math.max(...sizes), 'many are asked for together').toBeGreaterThan(100)
  expect((await service.rest('GET', '/pets')).status).toBe(200)
  await locker.close()
  await service.stop()
})

const strangeKey = () => `petstore_${randomBytes(32).toString('base64url')}`
