/** The host of the database leads to another server than before, as behind a load balancer. */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import { createConnection, type RowDataPacket } from 'mysql2/promise'
import { expect, test, vi } from 'vitest'
import { mysqlForFile, newDatabase } from '../support/database.ts'
import { startService } from '../support/service.ts'

const [former, other] = await Promise.all([mysqlForFile(), mysqlForFile()])

/** Forwards each new connection to the current server of `balancer.url`. */
async function startBalancer(balancer: { url: string }): Promise<number> {
  const server = createServer((client) => {
    const upstream = connect(Number(new URL(balancer.url).port), '127.0.0.1')
    client.pipe(upstream).pipe(client)
    for (const socket of [client, upstream]) socket.on('error', () => {})
  })
  server.listen(0, '127.0.0.1').unref()
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}

test('a timeout kills no statement on another server', async () => {
  const database = await newDatabase(former.url)
  const balancer = { url: former.url }
  const url = new URL(database.url)
  url.port = String(await startBalancer(balancer))
  const service = await startService(
    { DATABASE_TIMEOUT: '500ms' },
    { database: { ...database, url: url.href } },
  )
  await service.rest('GET', '/pets')
  const admin = await createConnection(database.url)
  await admin.query('lock tables pets write')

  balancer.url = other.url
  const otherAdmin = await createConnection(other.url)
  await otherAdmin.query(`create database ${url.pathname.slice(1)}`)
  const others = await Promise.all(Array.from({ length: 50 }, () => createConnection(other.url)))
  const answer = service.rest('GET', '/pets')
  const waiting = await vi.waitFor(async () => {
    const [rows] = await admin.query<RowDataPacket[]>(
      "select id from information_schema.processlist where info like 'select%pets%' and id <> connection_id()",
    )
    expect(rows).toHaveLength(1)
    return rows[0]?.id
  }, 30_000)
  const namesakes = others.filter(({ threadId }) => threadId === Number(waiting))
  expect(namesakes).toHaveLength(1)
  expect((await answer).status).toBe(503)
  await setTimeout(500) // a wrong kill would happen by now
  await Promise.all(others.map((connection) => connection.query('select 1')))

  for (const connection of [admin, otherAdmin, ...others]) connection.destroy()
  await service.stop()
})
