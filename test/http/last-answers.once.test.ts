/** Each executed request gets a response, and no request behind Connection: close is executed. */
import { once } from 'node:events'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { setTimeout } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { accepted } from '../support/accepted.ts'
import { converse, requestText } from '../support/raw.ts'
import { type Service, startService } from '../support/service.ts'

const pet = '{"name":"Rex","categoryId":3}'

let service: Service
beforeEach(async () => {
  service = await startService()
})
afterEach(() => service.stop())

const post = (version: '1.0' | '1.1', ...headers: string[]) =>
  requestText('POST /v1/pets', { key: service.key, headers, body: pet, version })

/** Sends on one connection, which the server must close; returns the statuses of the responses. */
async function statuses(...parts: string[]): Promise<number[]> {
  const { answers, closed } = await converse(service.origin, parts, { expected: 9 })
  expect(closed).toBe(true)
  expect(answers.at(-1)?.headers.get('connection')).toBe('close')
  return answers.map(({ status }) => status)
}

const pets = async () => (await service.trpc.listPets.query()).length

test.for<[string, (request: string) => string[]]>([
  ['one byte', (request) => [`${request}x`]],
  ['one byte in a separate packet', (request) => [request, 'x']],
  ['an empty line', (request) => [`${request}\r\n`, 'x']],
  ['another creation', (request) => [request + post('1.1')]],
  ['another creation in a separate packet', (request) => [request, post('1.1')]],
])('a creation with Connection: close, followed by %s, gets a response', async ([, parts]) => {
  expect(await statuses(...parts(post('1.1', 'Connection: close')))).toEqual([201])
  expect(await pets()).toBe(1)
})

test('the first of two pipelined HTTP/1.0 creations is executed, and gets a response', async () => {
  const both = post('1.0', 'Connection: keep-alive').repeat(2)
  expect(await statuses(both)).toEqual([201])
  expect(await pets()).toBe(1)
})

test.for([
  'GARBAGE\r\n\r\n',
  'CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n',
  'POST / HTTP/1.1\r\nA b: c',
])('a creation before %j gets a response', async (garbage) => {
  expect(await statuses(post('1.1') + garbage)).toEqual([201])
  expect(await pets()).toBe(1)
})

test.for<[string, () => string]>([
  ['garbage', () => 'GARBAGE\r\n\r\n'],
  ['another creation', () => post('1.1')],
])(
  '%s that arrives while a creation is served is not executed, and the response is the last',
  async ([, more]) => {
    const [head = '', body = ''] = post('1.1', 'Expect: 100-continue').split(/(?<=\r\n\r\n)/)
    const socket = connect(Number(new URL(service.origin).port), '127.0.0.1')
    socket.write(head)
    await once(socket, 'data') // the server has sent 100 Continue
    socket.write(body + more())
    const answer = await text(socket)
    expect(answer).toMatch(/^HTTP\/1\.1 201 Created\r\n.*\r\nConnection: close\r\n.*"Rex"/s)
    expect(answer.match(/HTTP\/1\.1/g)).toHaveLength(1)
    expect(await pets()).toBe(1)
  },
)

test.for([2, 20])(
  'of %i pipelined creations only the first is executed, and its response is the last',
  async (count) => {
    expect(await statuses(post('1.1').repeat(count))).toEqual([201])
    expect(await pets()).toBe(1)
  },
)

test.for<[string, number]>([
  ['the first', 0],
  ['the second', 1],
])(
  '%s request of a connection, whose head arrives during the stop, gets a response',
  async ([, before]) => {
    const serving = accepted()
    const socket = connect(Number(new URL(service.origin).port), '127.0.0.1')
    const served = await serving
    const request = post('1.1')
    for (let count = 0; count < before; count++) {
      socket.write(request)
      await once(socket, 'data')
    }
    const { bytesRead } = served
    socket.write(request.slice(0, 20))
    while (served.bytesRead === bytesRead) await setTimeout(1)
    const stopping = service.stop()
    await setTimeout(200) // the server closes idle connections repeatedly
    socket.write(request.slice(20))
    expect(await text(socket)).toMatch(/^HTTP\/1\.1 201 .*\r\nConnection: close\r\n/s)
    await stopping
    service = await startService() // for afterEach, which stops it
  },
)

test.for([
  ['its timeout', {}, { clientTimeouts: { headers: 1_000, request: 1_000, keepAlive: 60_000 } }],
  ['half of SHUTDOWN_TIMEOUT', { SHUTDOWN_TIMEOUT: '2s', SHUTDOWN_DELAY: '1s' }, {}],
] as const)(
  'a head that does not end delays a stop until %s at most',
  async ([, settings, surroundings]) => {
    const slow = await startService(settings, surroundings)
    const serving = accepted()
    const socket = connect(Number(new URL(slow.origin).port), '127.0.0.1')
    const served = await serving
    socket.write('GET /healthz HTTP/1.1\r\n')
    while (served.bytesRead === 0) await setTimeout(1)
    const began = performance.now()
    await slow.stop()
    expect(performance.now() - began).toBeLessThan(8_000)
    expect(await text(socket)).toMatch(/^HTTP\/1\.1 408 /)
  },
)
