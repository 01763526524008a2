/** A database server without consecutive ids: concurrent creations are inserted one by one. */
import { setTimeout } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { newDatabase } from '../support/database.ts'
import { type MysqlServer, startMysql } from '../support/mysql.ts'
import { startService } from '../support/service.ts'
import { openSql } from '../support/sql.ts'

let mysql: MysqlServer
beforeAll(async () => {
  mysql = await startMysql()
})
afterAll(() => mysql.remove())

test.each([
  ['1', 100, 'shared'],
  ['3', 100, 'alone'],
  ['3', 3, 'alone'],
])('auto_increment_increment %s, %i concurrent creations: %s', async (increment, count, how) => {
  await using root = await openSql(`${mysql.url}/mysql`)
  await root(`set global auto_increment_increment = ${increment}`)
  const service = await startService({}, { database: await newDatabase(mysql.url) })
  const inserts = async () => {
    const [row] = await root("show global status like 'Com_insert'")
    return Number(row?.Value)
  }
  // All requests arrive before the first response.
  await using locker = await openSql(service.databaseUrl)
  await locker('lock tables pets write')
  const before = await inserts()
  const names = Array.from({ length: count }, (_, index) => `Pet ${index}`)
  const calls = names.map((name) =>
    service.rest('POST', '/pets', { body: { name, categoryId: 3 } }),
  )
  await setTimeout(500)
  await locker.close()
  const answers = await Promise.all(calls)
  const made = (await inserts()) - before
  if (how === 'alone') expect(made).toBe(count)
  else expect(made).toBeLessThan(50)
  for (const { status, body } of answers) {
    expect(status).toBe(201)
    const { id, name } = body as { id: number; name: string }
    const found = await service.rest('GET', `/pets/${id}`)
    expect(found.body).toMatchObject({ id, name })
  }
  await root.close()
  await service.stop()
})
