/** Long losses of connections to a MySQL server: locks, restarts, silence; the default timeout. */
import { randomUUID } from 'node:crypto'
import { setTimeout } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { mysqlForFile, newDatabase } from '../support/database.ts'
import { type Instance, running, startInstance, until } from '../support/instance.ts'
import { occupy } from '../support/occupy.ts'
import { openSql, type Sql } from '../support/sql.ts'

const mysql = await mysqlForFile()

const rex = { name: 'Rex', categoryId: 3 }

test('while rows are locked and writes use their connections, reads go on', async () => {
  const service = await startInstance({ DATABASE_TIMEOUT: '5s' }, await newDatabase(mysql.url))
  await using rival = await openSql(service.databaseUrl)
  await rival('begin')
  await rival('select * from pets for update')
  const creations: ReturnType<typeof service.rest>[] = []
  const create = () => {
    const headers = { 'idempotency-key': creations.length % 2 === 0 ? randomUUID() : undefined }
    creations.push(service.rest('POST', '/pets', { headers, body: rex }))
  }
  while ((await service.used()) < 6) {
    create()
    await setTimeout(60) // no two share a statement
  }
  for (let page = 0; page < 40; page++) {
    create()
    expect((await service.rest('GET', `/pets?cursor=${page}`)).status).toBe(200)
    expect((await fetch(`${service.origin}/readyz`)).status).toBe(200)
  }
  await rival('rollback')
  const ids = (await Promise.all(creations)).flatMap(({ status, body }) =>
    status === 201 ? (body as { id: number }).id : [],
  )
  const kept = (await service.sql('select id from pets')).map(({ id }) => Number(id))
  expect(ids.filter((id) => !kept.includes(id))).toEqual([])
  await service.idle()
  await service.stop()
})

test('after a restart of the database server, the service kills no connection of another client', async () => {
  const service = await startInstance({ DATABASE_TIMEOUT: '8s' }, await newDatabase(mysql.url))
  const proxy = service.proxy as NonNullable<Instance['proxy']>
  expect((await service.rest('GET', '/pets')).status).toBe(200)
  const rows = await service.sql(
    'select id from information_schema.processlist where db = database()',
  )
  const before = rows.map(({ id }) => Number(id))
  await using locker = await openSql(service.databaseUrl)
  await locker('lock tables pets write')
  const waiting = service.rest('GET', '/pets?cursor=1')
  await until('it waits', async () => (await running(service.sql, '%from `pets`%')).length > 0)
  // Its answer will not arrive, and the service does not notice the restart.
  proxy.forget()
  await setTimeout(1_500) // the server counts whole seconds
  await mysql.stop()
  await mysql.restart()
  // Other clients get the connection ids that the service had.
  const others: Sql[] = []
  const idOf = async (sql: Sql) => Number((await sql('select connection_id() as id'))[0]?.id)
  for (let last = 0; last <= Math.max(...before); ) {
    const other = await openSql(service.databaseUrl)
    last = await idOf(other)
    if (before.includes(last)) others.push(other)
    else await other.close()
  }
  expect(others).not.toEqual([])
  const sent = proxy.statements.length
  expect((await waiting).status).toBe(503)
  await until('the service looks for the connection', () =>
    proxy.statements.slice(sent).some((text) => text.startsWith('show')),
  )
  await setTimeout(500)
  for (const other of others) await idOf(other)
  for (const other of others) await other.close()
  await service.stop()
})

test('unused connections are closed', async () => {
  const service = await startInstance({}, await newDatabase(mysql.url))
  const proxy = service.proxy as NonNullable<Instance['proxy']>
  await using locker = await openSql(service.databaseUrl)
  await service.rest('GET', '/pets')
  await locker('lock tables pets write')
  const list = (query: string) => service.rest('GET', `/pets${query}`)
  const lists = await occupy(10, list, async () => proxy.clients)
  await locker('unlock tables')
  await Promise.all(lists)
  await until('no connection is open', () => proxy.clients === 0, 60_000)
  expect((await service.rest('GET', '/pets')).status).toBe(200)
  await service.stop()
})

test('DATABASE_TIMEOUT is 5 seconds by default', async () => {
  const database = await newDatabase(mysql.url)
  const service = await startInstance({ DATABASE_TIMEOUT: '' }, database)
  onTestFinished(async () => void (await service.stop()))
  await service.rest('GET', '/pets')
  await using locker = await openSql(service.databaseUrl)
  await locker('lock tables pets write')
  const calls = [service.rest('GET', '/pets'), service.rest('POST', '/pets', { body: rex })]
  expect((await Promise.all(calls)).map(({ status }) => status)).toEqual([503, 503])
  const causes = () =>
    service.program.entries().flatMap(({ err }) => (err as Error | undefined)?.message ?? [])
  await until('the log has both', () => causes().length === 2)
  for (const cause of causes()) expect(cause).toContain('did not answer within 5000 ms')
})
