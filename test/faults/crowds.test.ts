/** More requests and more strange keys at once than the database can be asked for. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { newDatabase } from '../support/database.ts'
import { startInstance, until } from '../support/instance.ts'
import { type MysqlServer, startMysql } from '../support/mysql.ts'
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
