/** Malformed HTTP, request smuggling, timeouts, upgrades and clients that disconnect. */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { afterAll, afterEach, expect, test } from 'vitest'
import { eventually } from '../support/eventually.ts'
import {
  expectRefusal,
  expectRestError,
  expectServing,
  expectTrpcError,
} from '../support/expect.ts'
import { converse, type RawAnswer, requestText, unreadAnswer } from '../support/raw.ts'
import { serviceForFile } from '../support/service.ts'

const clientTimeouts = { headers: 150, request: 300, keepAlive: 500 }
const json = 'Content-Type: application/json'
const chunked = 'Transfer-Encoding: chunked'
const pet = '{"name":"Rex","categoryId":3}'

const service = await serviceForFile({}, { clientTimeouts })
const uncaught: unknown[] = []
const onUncaught = (error: unknown) => void uncaught.push(error)
process.on('uncaughtException', onUncaught)
afterEach(async () => {
  await expectServing(service)
  expect(uncaught).toEqual([])
})
afterAll(() => void process.off('uncaughtException', onUncaught))

const request = (line: string, headers: readonly string[] = []) =>
  requestText(line, { key: service.key, headers })
/** A creation; `body` follows the empty line. */
const post = (headers: readonly string[], body: string, path = '/v1/pets') =>
  request(`POST ${path}`, [json, ...headers]) + body

/** Opens a connection that stays open on this side when the server half-closes it. */
async function open(): Promise<Socket> {
  const { hostname, port } = new URL(service.origin)
  const socket = connect({ port: Number(port), host: hostname, allowHalfOpen: true })
  socket.on('error', () => {})
  await once(socket, 'connect')
  return socket
}

/** The log entries of the requests with this prefix of their id. */
const logged = (id: string, { logged: lines } = service) =>
  lines.map((line) => JSON.parse(line)).filter(({ requestId }) => requestId?.startsWith(id))

/** The names of all pets. */
async function names(): Promise<string[]> {
  const { body } = await service.rest('GET', '/pets?limit=100')
  return (body as { name: string }[]).map(({ name }) => name)
}

/** Sends `parts`; checks that there is one response and that the server closes the connection. */
async function lastAnswer(parts: Parameters<typeof converse>[1]): Promise<RawAnswer> {
  const { answers, closed } = await converse(service.origin, parts, { expected: 2 })
  expect(closed).toBe(true)
  expect(answers).toHaveLength(1)
  expect(answers[0]?.headers.get('connection')).toBe('close')
  return answers[0] as RawAnswer
}

test.for<[string, string[]]>([
  ['Content-Length before Transfer-Encoding', ['Content-Length: 5', chunked]],
  ['Transfer-Encoding before Content-Length', [chunked, 'Content-Length: 5']],
  ['a Transfer-Encoding that does not end with chunked', ['Transfer-Encoding: chunked, identity']],
  ['an unknown Transfer-Encoding', ['Transfer-Encoding: xchunked']],
  ['two Transfer-Encodings', [chunked, 'Transfer-Encoding: identity']],
  ['a folded Transfer-Encoding', ['Transfer-Encoding:\r\n chunked', 'Content-Length: 5']],
  ['a space before the colon', ['Transfer-Encoding : chunked', 'Content-Length: 5']],
  ['a vertical tab before chunked', ['Transfer-Encoding: \vchunked', 'Content-Length: 5']],
  ['two Content-Lengths', ['Content-Length: 5', 'Content-Length: 6']],
  ['the same Content-Length twice', ['Content-Length: 5', 'Content-Length: 5']],
  ['a list of Content-Lengths', ['Content-Length: 5, 5']],
  ['a Content-Length with a sign', ['Content-Length: +5']],
  ['a negative Content-Length', ['Content-Length: -5']],
  ['a hexadecimal Content-Length', ['Content-Length: 0x5']],
])('a request with %s cannot smuggle another one', async ([, headers]) => {
  const hidden = post([`Content-Length: ${pet.length}`], pet)
  expectRefusal(await lastAnswer(post(headers, `0\r\n\r\n${hidden}`)), 400, 'BAD_REQUEST')
  expect((await service.rest('GET', '/pets')).body).toEqual([])
})

test.for<[string, string]>([
  ['an invalid chunk size', `zz\r\n${pet}\r\n0\r\n\r\n`],
  ['a chunk size beyond 64 bits', `fffffffffffffffff\r\n${pet}`],
  ['a chunk longer than its size', `2\r\n${pet}\r\n0\r\n\r\n`],
  ['lines that end with LF alone', `2\n{}\n0\n\n`],
  ['endless chunk extensions', `2;${'x'.repeat(20_000)}`],
])('a body with %s returns 400', async ([, body]) => {
  // The head is sent first, so that the server waits for the body.
  for (const path of ['/v1/pets', '/trpc/createPet']) {
    expectRefusal(await lastAnswer([post([chunked], '', path), body]), 400, 'BAD_REQUEST')
  }
})

test.for<[string, string]>([
  ['a text that is not HTTP', 'hello\r\n\r\n'],
  ['HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
  ['an unknown version', 'GET /v1/pets HTTP/3.3\r\nHost: x\r\n\r\n'],
  ['HTTP/0.9 with headers', 'GET /v1/pets HTTP/0.9\r\nHost: x\r\n\r\n'],
  ['a request line without a version', 'GET /v1/pets\r\n\r\n'],
  ['HTTP/2.0 as text', 'GET /v1/pets HTTP/2.0\r\nHost: x\r\n\r\n'],
  ['RTSP/2.0', 'OPTIONS * RTSP/2.0\r\nCSeq: 1\r\n\r\n'],
  ['TLS', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03'],
  ['an unknown method', 'FETCH /v1/pets HTTP/1.1\r\nHost: x\r\n\r\n'],
  ['lines that end with LF alone', 'GET /v1/pets HTTP/1.1\nHost: x\n\n'],
  ['NUL in the target', 'GET /v1/pets/\0 HTTP/1.1\r\nHost: x\r\n\r\n'],
  ['a control character in a header', 'GET /v1/pets HTTP/1.1\r\nHost: x\r\nA: \x01\r\n\r\n'],
  ['a folded header', 'GET /v1/pets HTTP/1.1\r\nHost: x\r\nA: b\r\n c\r\n\r\n'],
  ['a space in a header name', 'GET /v1/pets HTTP/1.1\r\nHost: x\r\nA b: c\r\n\r\n'],
])('%s returns 400', async ([, text]) => {
  expectRefusal(await lastAnswer(Buffer.from(text, 'latin1')), 400, 'BAD_REQUEST')
})

test('a request in another protocol is told the versions of HTTP, and logged', async () => {
  for (const text of [
    'GET /v1/pets HTTP/2.0\r\nHost: x\r\n\r\n',
    'GET /v1/pets HTTP/0.9\r\nHost: x\r\n\r\n',
  ]) {
    const { headers, body } = await lastAnswer(text)
    expect(JSON.parse(body).message).toBe('The request must be one of HTTP/1.1 or HTTP/1.0')
    const entry = { surface: 'other', status: 400, address: '127.0.0.1' }
    expect(logged(String(headers.get('x-request-id')))).toMatchObject([entry])
  }
})

test('HTTP/1.0 without a Host is served, and the connection closes', async () => {
  const text = `GET /v1/pets HTTP/1.0\r\nAuthorization: Bearer ${service.key}\r\n\r\n`
  expect(await lastAnswer(text)).toMatchObject({ status: 200, body: '[]' })
})

test('trailers that are too long return 431', async () => {
  const long = 'x'.repeat(16_384)
  const chunk = `${pet.length.toString(16)}\r\n${pet}\r\n0\r\n`
  const trailed = [post([chunked], chunk), `X-Long: ${long}\r\n\r\n`]
  expectRefusal(await lastAnswer(trailed), 431, 'BAD_REQUEST')
})

test('more than a thousand headers return 431, with the limit in the message', async () => {
  const ask = (count: number) =>
    lastAnswer(
      `GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${'A: b\r\n'.repeat(count - 2)}\r\n`,
    )
  expect((await ask(1_000)).status).toBe(200)
  const rejected = await ask(1_001)
  expectRefusal(rejected, 431, 'BAD_REQUEST')
  expect(rejected.body).toContain('at most 16384 bytes, in at most 1000 headers')
})

test('headers that do not end return 408', async () => {
  const socket = await open()
  const began = performance.now()
  socket.write(`GET /v1/pets HTTP/1.1\r\nHost: x\r\nX-Slow: `)
  // Byte after byte: the timeout is for all headers, not for each pause.
  const drip = setInterval(() => socket.write('x'), 20)
  const [answer] = await once(socket, 'data')
  clearInterval(drip)
  socket.destroy()
  expect(String(answer)).toMatch(/^HTTP\/1\.1 408 .*"code":"TIMEOUT"/s)
  expect(performance.now() - began).toBeGreaterThan(clientTimeouts.headers - 10)
})

test('silent and idle connections are closed', async () => {
  const silent = await open()
  const idle = await open()
  idle.resume().write(request('GET /v1/pets'))
  silent.resume()
  await Promise.all([once(silent, 'end'), once(idle, 'end')])
  silent.destroy()
  idle.destroy()
})

test('a client that does not read its responses is disconnected', async () => {
  const asking = request('GET /docs/', ['X-Request-Id: unread'])
  const { socket } = await unreadAnswer(service.origin, asking)
  const entries = () => logged('unread').filter(({ status }) => status === 499)
  await eventually(() => expect(entries()).toMatchObject([{ level: 'info', path: '/docs/' }]))
  socket.destroy()
})

test('clients that reset their connection do not disturb the service', async () => {
  const connecting = 'CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n'
  const broken = [
    '',
    'GE',
    connecting,
    'GARBAGE\r\n\r\n',
    post([chunked], ''),
    post([chunked], 'zz'),
  ]
  for (const text of broken) {
    for (let attempt = 0; attempt < 5; attempt++) {
      const socket = await open()
      socket.write(text, () => socket.resetAndDestroy())
      await once(socket, 'close')
      expect((await fetch(`${service.origin}/healthz`)).status).toBe(200)
    }
  }
})

test('Expect: 100-continue gets 100 Continue; other expectations are ignored', async () => {
  const headers = ['Expect: 100-continue', 'Content-Length: 2']
  for (const expectation of ['Expect: 100-continue', 'expect: 100-Continue']) {
    const asking = post([expectation, 'Content-Length: 2'], '')
    const { answers } = await converse(service.origin, [asking, '{}'])
    expect(answers.map(({ status }) => status)).toEqual([100, 400])
  }
  const ignored = await converse(service.origin, request('GET /v1/pets', ['Expect: tea']))
  expect(ignored.answers).toMatchObject([{ status: 200 }])
  // HTTP/1.0 has no 100 Continue (RFC 9110, section 10.1.1).
  const old = post(headers, '').replace('HTTP/1.1', 'HTTP/1.0')
  const uninvited = await converse(service.origin, [old, '{}'])
  expect(uninvited.answers.map(({ status }) => status)).toEqual([400])
})

test.for<[string, string, string]>([
  ['/v1/pets', '/v1/pets', pet],
  ['/nothing', '/v1/pets', pet],
  ['/v1/pets', '/trpc/createPet', JSON.stringify('[{"name":1,"categoryId":2},"Rex",3]')],
])('a request behind an Upgrade header at %s is not executed: %s', async ([target, path, body]) => {
  const before = await names()
  const hidden = post([`Content-Length: ${body.length}`], body, path)
  for (const protocol of ['h2c', 'websocket']) {
    const offer = request(`GET ${target}`, ['Connection: Upgrade', `Upgrade: ${protocol}`])
    // In the same packet, in the next one, and as the rest when the first bytes are dropped.
    for (const parts of [
      [offer + hidden],
      [offer, hidden],
      [offer + hidden.slice(0, 30), hidden],
    ]) {
      const { answers, closed } = await converse(service.origin, parts, { expected: 2 })
      expect(answers).toHaveLength(1)
      expect(answers[0]?.status).toBe(target === '/nothing' ? 404 : 200)
      expect(answers[0]?.headers.get('connection')).toBe('close')
      expect(closed).toBe(true)
    }
  }
  expect(await names()).toEqual(before)
})

test('a request behind an Upgrade header, before its response, is not executed', async () => {
  const before = await names()
  // Node drops what it has read together with an Upgrade header, and parses what it reads next.
  // Empty lines before a request are ignored (RFC 9112, section 2.2), so the position of the next
  // read does not matter.
  const between = '\r\n'.repeat(150_000)
  for (const [path, body] of [
    ['/v1/pets', pet],
    ['/trpc/createPet', JSON.stringify('[{"name":1,"categoryId":2},"Rex",3]')],
  ] as const) {
    for (const target of ['/healthz', '/v1/pets', '/trpc/listPets']) {
      const offer = request(`GET ${target}`, ['Connection: Upgrade', 'Upgrade: h2c'])
      const hidden = post([`Content-Length: ${body.length}`], body, path)
      await converse(service.origin, offer + between + hidden, { expected: 2 })
    }
  }
  expect(await names()).toEqual(before)
})

const large = ' '.repeat(70_000)
const tooLarge = (path: string) => [
  post([`Content-Length: ${large.length}`], large, path),
  post([chunked], `11170\r\n${large}\r\n0\r\n\r\n`, path),
]

test('a body that is too large returns 413; a request behind it is not executed', async () => {
  const hidden = post([`Content-Length: ${pet.length}`], pet)
  const before = await names()
  for (const [path, check] of [
    ['/v1/pets', expectRestError],
    ['/trpc/createPet', expectTrpcError],
  ] as const) {
    for (const text of tooLarge(path)) {
      check(await lastAnswer(text + hidden), 413, 'PAYLOAD_TOO_LARGE')
    }
  }
  expect(await names()).toEqual(before)
})
