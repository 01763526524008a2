/** More concurrent requests and unknown keys than the database can serve. */

import { expect, test } from 'vitest'
import { mysqlForFile, newDatabase } from '../support/database.ts'
import { freeze, thaw } from '../support/freeze.ts'
import { startInstance, until } from '../support/instance.ts'
import { occupy } from '../support/occupy.ts'
import { openSql } from '../support/sql.ts'

const mysql = await mysqlForFile()

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
  const state = async () => [await service.used(), await service.waiting()]
  const first = await occupy(10, list, async () => Number((await state())[0]))
  const lookUps = () => service.metric('petstore_key_lookups_total{cache="hit"}')
  const before = await lookUps()
  // Lists with the same parameters have a limit together.
  const others = Array.from({ length: 1_000 }, () => list())
  await until('a thousand calls wait', async () => (await lookUps()) >= before + 1_000)
  const start = performance.now()
  expect(await Promise.all([list(), list(), list()])).toEqual([503, 503, 503])
  expect(performance.now() - start, 'at once').toBeLessThan(5_000)
  // The log has a line a second, not one for each rejected call.
  await service.program.logged(/"level":"error".*"msg":"Too many calls wait for the database"/)
  await locker('unlock tables')
  expect(new Set(await Promise.all([...first, ...others]))).toEqual(new Set([200]))
  expect(await state()).toEqual([0, 0])
  await locker.close()
  await service.stop()
})

test('more than a thousand calls wait for single pets, a hundred in one query', async () => {
  const service = await startInstance({ DATABASE_TIMEOUT: '25s' }, await newDatabase(mysql.url))
  let serial = 0
  const get = async () => {
    const answer = await service.fetch(`/v1/pets/${++serial}`)
    await answer.body?.cancel()
    return answer.status
  }
  const calls: Promise<number>[] = []
  const send = (count: number) => calls.push(...Array.from({ length: count }, get))
  const lookUps = () => service.metric('petstore_key_lookups_total{cache="hit"}')
  await get()
  const before = await lookUps()
  await using locker = await openSql(service.databaseUrl)
  await locker('lock tables pets write')
  send(1)
  await until('one connection is in use', async () => (await service.used()) === 1)
  // Concurrent: a call that does not fit into one query does not wait for the end of that query.
  const { pid } = service.program.child
  await freeze(Number(pid))
  send(500)
  thaw(Number(pid))
  await until('six connections are in use', async () => (await service.used()) >= 6)
  // One kind of call has eight of ten connections.
  while ((await service.used()) < 8) {
    send(100)
    await until('they have arrived', async () => (await lookUps()) >= before + calls.length)
  }
  send(1_500 - (await service.waiting()))
  await until('they wait', async () => (await service.waiting()) === 1_500)
  await locker('unlock tables')
  const statuses = await Promise.all(calls)
  expect(statuses).toEqual(statuses.map(() => 404))
  const queries = service.proxy?.statements.filter((text) => text.includes(' in (')) ?? []
  const sizes = queries.map((text) => text.split(' in (')[1]?.split(',').length ?? 0)
  expect(Math.max(...sizes)).toBe(100)
  await locker.close()
  await service.stop()
})
