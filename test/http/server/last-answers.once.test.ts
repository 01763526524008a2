/** Whatever is executed is answered, and nothing is executed behind a last answer. */
import { once } from 'node:events'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { setTimeout } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { accepted } from '../../support/accepted.ts'
import { converse } from '../../support/raw.ts'
import { type Service, startService } from '../../support/service.ts'

const pet = '{"name":"Rex","categoryId":3}'

let service: Service
beforeEach(async () => {
  service = await startService()
})
afterEach(() => service.stop())

const post = (version: string, ...headers: string[]) =>
  [
    `POST /v1/pets HTTP/${version}`,
    'Host: petstore.example',
    `Authorization: Bearer ${service.key}`,
    'Content-Type: application/json',
    `Content-Length: ${pet.length}`,
    ...headers,
    '',
    pet,
  ].join('\r\n')

/** The statuses of the answers to what is sent on one connection, which must then be closed. */
async function statuses(...parts: string[]): Promise<number[]> {
  const { answers, closed } = await converse(service.origin, parts, { expected: 9 })
  expect(closed).toBe(true)
  expect(answers.at(-1)?.headers.get('connection')).toBe('close')
  return answers.map(({ status }) => status)
}

const pets = async () => (await service.trpc.listPets.query()).length

test.for<[string, (request: string) => string[]]>([
  ['one byte', (request) => [`${request}x`]],
  ['one byte, in a packet of its own', (request) => [request, 'x']],
  ['a line of nothing', (request) => [`${request}\r\n`, 'x']],
  ['another creation', (request) => [request + post('1.1')]],
  ['another creation, in a packet of its own', (request) => [request, post('1.1')]],
])('with Connection: close and %s behind it, a creation is answered', async ([, parts]) => {
  expect(await statuses(...parts(post('1.1', 'Connection: close')))).toEqual([201])
  expect(await pets()).toBe(1)
})

test('of two creations in HTTP/1.0 as many are answered as are made', async () => {
  const both = post('1.0', 'Connection: keep-alive').repeat(2)
  expect(await statuses(both)).toEqual([201])
  expect(await pets()).toBe(1)
})

test('behind an offer to upgrade nothing is executed', async () => {
  const offer = post('1.1', 'Connection: Upgrade', 'Upgrade: h2c')
  expect(await statuses(offer + post('1.1'), post('1.1'))).toEqual([201])
  expect(await pets()).toBe(1)
})

test.for([
  'GARBAGE\r\n\r\n',
  'CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n',
  'POST / HTTP/1.1\r\nA b: c',
])('what came before %j is answered', async (garbage) => {
  expect(await statuses(post('1.1') + garbage)).toEqual([201])
  expect(await pets()).toBe(1)
})

test('garbage that comes with a body ends the connection, as the answer says', async () => {
  const [head = '', body = ''] = post('1.1', 'Expect: 100-continue').split(/(?<=\r\n\r\n)/)
  const socket = connect(Number(new URL(service.origin).port), '127.0.0.1')
  socket.write(head)
  await once(socket, 'data') // the server has begun, and asks for the body
  socket.write(`${body}GARBAGE\r\n\r\n`)
  const answer = await text(socket)
  expect(answer).toMatch(/^HTTP\/1\.1 201 Created\r\n.*\r\nConnection: close\r\n.*"Rex"/s)
  expect(answer.match(/HTTP\/1\.1/g)).toHaveLength(1)
})

test.for([2, 3, 20])(
  'of %i creations that come at once the first is made, and its answer is the last',
  async (count) => {
    expect(await statuses(post('1.1').repeat(count))).toEqual([201])
    expect(await pets()).toBe(1)
  },
)

test('a request that comes while another one is served is not done, and is told so', async () => {
  const [head = '', body = ''] = post('1.1', 'Expect: 100-continue').split(/(?<=\r\n\r\n)/)
  const socket = connect(Number(new URL(service.origin).port), '127.0.0.1')
  socket.write(head)
  await once(socket, 'data') // the server has begun, and asks for the body
  socket.write(body + post('1.1'))
  const answer = await text(socket)
  expect(answer).toMatch(/^HTTP\/1\.1 201 Created\r\n.*\r\nConnection: close\r\n.*"Rex"/s)
  expect(answer.match(/HTTP\/1\.1/g)).toHaveLength(1)
  expect(await pets()).toBe(1)
})

test('requests that each wait for the answer before are all answered, on one connection', async () => {
  const { answers, closed } = await converse(service.origin, Array(20).fill(post('1.1')), {
    expected: 20,
    inTurn: true,
  })
  expect(answers.map(({ status }) => status)).toEqual(Array(20).fill(201))
  expect(closed).toBe(false)
})

test('a request whose head is arriving when the server stops is answered', async () => {
  const serving = accepted()
  const socket = connect(Number(new URL(service.origin).port), '127.0.0.1')
  const served = await serving
  const request = post('1.1')
  socket.write(request.slice(0, 20))
  while (served.bytesRead === 0) await setTimeout(1)
  const stopping = service.stop()
  await setTimeout(200) // idle connections are closed again and again
  socket.write(request.slice(20))
  expect(await text(socket)).toMatch(/^HTTP\/1\.1 201 .*\r\nConnection: close\r\n/s)
  await stopping
  service = await startService() // for what stops it after each test
})
