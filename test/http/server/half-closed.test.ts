/** A client that has closed its side after its request still gets the answer (RFC 9112, section 9.6). */
import { once } from 'node:events'
import { IncomingMessage } from 'node:http'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { setTimeout } from 'node:timers/promises'
import { queryObjects } from 'node:v8'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { engine } from '../../support/database.ts'
import { eventually } from '../../support/eventually.ts'
import { holdWrites } from '../../support/hold.ts'
import { countPets } from '../../support/pets.ts'
import { type Service, startService } from '../../support/service.ts'

let service: Service
beforeAll(async () => {
  service = await startService()
})
afterAll(() => service.stop())

const rex = '{"name":"Rex","categoryId":3}'
const request = (line: string, body = '', version = '1.1') =>
  [
    `${line} HTTP/${version}`,
    'Host: petstore.example',
    `Authorization: Bearer ${service.key}`,
    'X-Request-Id: half-closed',
    ...(body === '' ? [] : ['Content-Type: application/json', `Content-Length: ${body.length}`]),
    '',
    body,
  ].join('\r\n')

/** A connection that is left open on the other side when this one is closed. */
const open = () =>
  connect({ port: Number(new URL(service.origin).port), allowHalfOpen: true }).on('error', () => {})

/** All that comes on a connection on which this was sent, and this side closed. */
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
])('%s is answered, and the connection is closed', async (line, body, status) => {
  for (const version of ['1.1', '1.0']) {
    const before = await countPets(service.sql)
    const answer = await sendAndClose(request(line, body, version))
    expect(answer).toMatch(new RegExp(`^(HTTP/1\\.1 102 Processing\r\n\r\n)*HTTP/1\\.1 ${status} `))
    expect(await countPets(service.sql)).toBe(before + (body === '' ? 0 : 1))
  }
})

test('of a client that closes its side in the middle of a body nothing is done', async () => {
  const before = await countPets(service.sql)
  const seen = statuses().length
  expect(await sendAndClose(request('POST /v1/pets', rex).slice(0, -1))).toBe('')
  await eventually(() => expect(statuses().slice(seen)).toEqual([499]))
  expect(await countPets(service.sql)).toBe(before)
})

test('a client that closes its side after an answer is let go of', async () => {
  const socket = open()
  socket.write(request('GET /healthz'))
  await once(socket, 'data')
  socket.end()
  expect(await text(socket)).toBe('')
})

describe.runIf(engine === 'mysql')('while its answer is being made', () => {
  test.each([
    [
      '1.1',
      /^(HTTP\/1\.1 102 Processing\r\n\r\n){2,}HTTP\/1\.1 201 .*\r\nConnection: close\r\n.*"Rex"/s,
    ],
    ['1.0', /^HTTP\/1\.1 201 .*\r\nConnection: close\r\n.*"Rex"/s], // it knows no interim answers (RFC 9110, section 15.2)
  ])('a client of HTTP/%s may wait', async (version, expected) => {
    const letGo = await holdWrites(service.databaseUrl)
    const answer = sendAndClose(request('POST /v1/pets', rex, version))
    await setTimeout(1_300)
    await letGo()
    expect(await answer).toMatch(expected)
  })

  test('a client that goes then, as one that went before, is given up', async () => {
    const letGo = await holdWrites(service.databaseUrl)
    const seen = statuses().length
    const socket = open()
    socket.end(request('POST /v1/pets', rex))
    await once(socket, 'data') // the first interim answer
    socket.destroy()
    await eventually(() => expect(statuses().slice(seen)).toEqual([499]))
    await letGo()
  })

  test('nothing is kept of the request once it is answered', async () => {
    const requests = () => queryObjects(IncomingMessage, { format: 'count' })
    const before = requests()
    await Promise.all(Array.from({ length: 40 }, () => sendAndClose(request('POST /v1/pets', rex))))
    await eventually(() => expect(requests()).toBeLessThan(before + 20))
  })
})
