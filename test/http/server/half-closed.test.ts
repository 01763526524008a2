/** A client that half-closes its connection still gets the response (RFC 9112, section 9.6). */
import { once } from 'node:events'
import { IncomingMessage } from 'node:http'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { setTimeout } from 'node:timers/promises'
import { queryObjects } from 'node:v8'
import { describe, expect, test } from 'vitest'
import { engine } from '../../support/database.ts'
import { eventually } from '../../support/eventually.ts'
import { holdWrites } from '../../support/hold.ts'
import { countPets } from '../../support/pets.ts'
import { requestText, unreadAnswer } from '../../support/raw.ts'
import { serviceForFile } from '../../support/service.ts'

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
    expect(answer).toMatch(new RegExp(`^(HTTP/1\\.1 102 Processing\r\n\r\n)*HTTP/1\\.1 ${status} `))
    expect(await countPets(service.sql)).toBe(before + (body === '' ? 0 : 1))
  }
})

test('a client that half-closes in the middle of a body creates nothing and is logged with 499', async () => {
  const before = await countPets(service.sql)
  const seen = statuses().length
  expect(await sendAndClose(request('POST /v1/pets', rex).slice(0, -1))).toBe('')
  await eventually(() => expect(statuses().slice(seen)).toEqual([499]))
  expect(await countPets(service.sql)).toBe(before)
})

test('a client that half-closes in the middle of a later body is logged with 499, too', async () => {
  const seen = statuses().length
  const socket = open()
  socket.write(request('GET /healthz'))
  await once(socket, 'data')
  socket.end(request('POST /v1/pets', rex).slice(0, -1))
  expect(await text(socket)).toBe('')
  await eventually(() => expect(statuses().slice(seen)).toEqual([200, 499]))
})

test('a client that half-closes after the response is disconnected', async () => {
  const socket = open()
  socket.write(request('GET /healthz'))
  await once(socket, 'data')
  socket.end()
  expect(await text(socket)).toBe('')
})

// An interim response behind the headers would be an uncaught error, which fails the run.
test('a half-closed client that reads slowly receives nothing behind the response', async () => {
  const { socket } = await unreadAnswer(service.origin, request('GET /docs/'))
  socket.end()
  await setTimeout(700) // longer than between two interim responses
  expect(await text(socket)).toMatch(/^HTTP\/1\.1 200 .*<\/html>\n$/s)
})

describe.runIf(engine === 'mysql')('while the request is served', () => {
  test.each([
    [
      '1.1',
      /^(HTTP\/1\.1 102 Processing\r\n\r\n){2,12}HTTP\/1\.1 201 .*\r\nConnection: close\r\n.*"Rex"/s,
    ],
    // HTTP/1.0 has no interim responses (RFC 9110, section 15.2).
    ['1.0', /^HTTP\/1\.1 201 .*\r\nConnection: close\r\n.*"Rex"/s],
  ] as const)(
    'a half-closed HTTP/%s client can wait for the response',
    async (version, expected) => {
      const release = await holdWrites(service.databaseUrl)
      const answer = sendAndClose(request('POST /v1/pets', rex, version))
      await setTimeout(1_300)
      await release()
      expect(await answer).toMatch(expected)
    },
  )

  test('a half-closed client that disconnects is logged with 499', async () => {
    const release = await holdWrites(service.databaseUrl)
    const seen = statuses().length
    const socket = open()
    socket.end(request('POST /v1/pets', rex))
    await once(socket, 'data') // the first interim response
    socket.destroy()
    await eventually(() => expect(statuses().slice(seen)).toEqual([499]))
    await release()
  })

  test('a request leaves nothing in memory after its response', async () => {
    const requests = () => queryObjects(IncomingMessage, { format: 'count' })
    const before = requests()
    await Promise.all(Array.from({ length: 40 }, () => sendAndClose(request('POST /v1/pets', rex))))
    await eventually(() => expect(requests()).toBeLessThan(before + 20))
  })
})
