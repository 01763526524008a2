/** A client that half-closes its connection still gets the response (RFC 9112, section 9.6). */
import { once } from 'node:events'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { engine } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'
import { holdWrites } from '../support/hold.ts'
import { running, until } from '../support/instance.ts'
import { countPets } from '../support/pets.ts'
import { requestText } from '../support/raw.ts'
import { serviceForFile } from '../support/service.ts'

const service = await serviceForFile()

const rex = '{"name":"Rex","categoryId":3}'
const headers = ['X-Request-Id: half-closed']
const request = (line: string, body?: string, version: '1.0' | '1.1' = '1.1') =>
  requestText(line, { key: service.key, headers, version, ...(body && { body }) })

/** A connection that can be half-closed. */
const open = () =>
  connect({ port: Number(new URL(service.origin).port), allowHalfOpen: true }).on('error', () => {})

/** Sends `sent`, half-closes the connection, and returns everything that is received. */
async function sendAndClose(sent: string): Promise<string> {
  const socket = open()
  socket.end(sent)
  return await text(socket)
}

const inserting = () => running(service.sql, 'insert into `pets`%')
const statuses = () =>
  service.logged
    .map((line) => JSON.parse(line))
    .flatMap(({ requestId, status }) => (requestId === 'half-closed' ? [status] : []))

test.each([
  ['GET /healthz', '', 200],
  ['GET /v1/pets', '', 200],
  ['GET /trpc/listPets', '', 200],
  ['POST /v1/pets', rex, 201],
  ['POST /trpc/createPet', JSON.stringify('[{"name":1,"categoryId":2},"Rex",3]'), 200],
])('%s gets a response, and the connection closes', async (line, body, status) => {
  for (const version of ['1.1', '1.0'] as const) {
    const before = await countPets(service.sql)
    const answer = await sendAndClose(request(line, body, version))
    expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `))
    expect(await countPets(service.sql)).toBe(before + (body === '' ? 0 : 1))
  }
})

test('a client that half-closes in the middle of a body creates nothing', async () => {
  const before = await countPets(service.sql)
  expect(await sendAndClose(request('POST /v1/pets', rex).slice(0, -1))).toMatch(/^HTTP\/1\.1 400 /)
  expect(await countPets(service.sql)).toBe(before)
})

test('a client that half-closes after the response is disconnected', async () => {
  const socket = open()
  socket.write(request('GET /healthz'))
  await once(socket, 'data')
  socket.end()
  expect(await text(socket)).toBe('')
})

test.runIf(engine === 'mysql')('a half-closed client can wait for the response', async () => {
  const release = await holdWrites(service.databaseUrl)
  const answer = sendAndClose(request('POST /v1/pets', rex))
  await until('the insert waits', async () => (await inserting()).length === 1)
  await release()
  expect(await answer).toMatch(/^HTTP\/1\.1 201 .*"Rex"/s)
})

test.runIf(engine === 'mysql')('a client that resets its connection ends its call', async () => {
  const release = await holdWrites(service.databaseUrl)
  const socket = open()
  socket.write(request('POST /v1/pets', rex))
  await until('the insert waits', async () => (await inserting()).length === 1)
  socket.resetAndDestroy()
  await eventually(() => expect(statuses().at(-1)).toBe(499))
  await release()
})
