/** Creations with Idempotency-Keys that share a transaction, when one client disconnects. */
import { once } from 'node:events'
import { connect } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { freeze, thaw } from '../support/freeze.ts'
import { startInstance, until } from '../support/instance.ts'
import { requestText } from '../support/raw.ts'
import { openSql } from '../support/sql.ts'

test('creations that share a transaction commit together, also the creation of a client that disconnects', async () => {
  const service = await startInstance({ DATABASE_TIMEOUT: '25s' })
  onTestFinished(async () => void (await service.stop()))
  expect((await service.rest('GET', '/pets')).status).toBe(200) // caches the API key
  await using locker = await openSql(service.databaseUrl)
  await locker('lock tables pets write')

  const pid = Number(service.program.child.pid)
  await freeze(pid) // all requests arrive before the first one is served
  const sockets = await Promise.all(
    Array.from({ length: 6 }, async (_, index) => {
      const body = JSON.stringify({ name: `Pet ${index}`, categoryId: 3 })
      const headers = [`Idempotency-Key: "shared ${index}"`]
      const request = requestText('POST /v1/pets', { key: service.key, headers, body })
      const socket = connect(service.program.port, '127.0.0.1').on('error', () => {})
      await once(socket, 'connect')
      await new Promise((resolve) => socket.write(request, resolve))
      return socket
    }),
  )
  thaw(pid)
  const statements = () => service.proxy?.statements ?? []
  const inserted = () => statements().filter((text) => text.startsWith('insert into `pets`'))
  const isSent = (_: unknown, index: number) => inserted().join().includes(`'Pet ${index}'`)
  await until('all inserts wait', () => sockets.every(isSent))
  const transactions = () => statements().filter((text) => text === 'begin').length
  const begun = transactions()
  // Most creations share a statement; one of their clients disconnects.
  const places = inserted().map((text) => Array.from(text.matchAll(/'Pet (\d)'/g)))
  const [[, place] = []] = places.find(({ length }) => length > 1) ?? []
  const staying = sockets.filter((_, index) => index !== Number(place))
  sockets[Number(place)]?.resetAndDestroy()
  await until('the log has the 499', () => /"status":499\b/.test(service.program.stderr))
  const answers = staying.map((socket) => once(socket, 'data'))
  await locker('unlock tables')
  for (const [data] of await Promise.all(answers)) expect(String(data)).toMatch(/ 201 /)
  expect(transactions()).toBe(begun)
  expect(await service.countPets()).toBe(6)
  const again = { headers: { 'idempotency-key': `"shared ${place}"` } }
  const body = { name: `Pet ${place}`, categoryId: 3 }
  expect((await service.rest('POST', '/pets', { ...again, body })).status).toBe(201)
  expect(await service.countPets()).toBe(6)
  for (const socket of staying) socket.destroy()
})
