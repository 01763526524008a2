/** Connections: one request at a time, the last answer, clients that end their side, bodies and stops. */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { setTimeout } from 'node:timers/promises'
import { afterEach, expect, onTestFinished, test } from 'vitest'
import { expectRestError, expectServing, expectTrpcError } from '../support/expect.ts'
import { holdWrites } from '../support/hold.ts'
import { until } from '../support/instance.ts'
import { countPets } from '../support/pets.ts'
import { accepted, converse, requestText, unreadAnswer } from '../support/raw.ts'
import { serviceForFile, startService } from '../support/service.ts'

const service = await serviceForFile({ CORS_ORIGINS: 'https://shop.example' })
afterEach(() => expectServing(service))

const pet = '{"name":"Rex","categoryId":3}'
const trpcPet = JSON.stringify('[{"name":1,"categoryId":2},"Rex",3]')
const json = 'Content-Type: application/json'
const chunked = 'Transfer-Encoding: chunked'
const keyed = (line: string, ...headers: string[]) =>
  requestText(line, { key: service.key, headers })
const post = (version: '1.0' | '1.1', ...headers: string[]) =>
  requestText('POST /v1/pets', { key: service.key, headers, body: pet, version })

/** A connection that this side can end while it still reads, with the server's side of it. */
async function open({ origin } = service): Promise<{ socket: Socket; served: Socket }> {
  const serving = accepted()
  const socket = connect({ port: Number(new URL(origin).port), allowHalfOpen: true })
  socket.on('error', () => {})
  return { socket, served: await serving }
}

/** The statuses of all responses on a connection that the server closes, and the pets that were made. */
async function outcome(...parts: string[]) {
  const before = await countPets(service.sql)
  const { answers, closed } = await converse(service.origin, parts, { expected: 9 })
  expect(closed).toBe(true)
  expect(answers.at(-1)?.headers.get('connection')).toBe('close')
  return {
    statuses: answers.map(({ status }) => status),
    made: (await countPets(service.sql)) - before,
  }
}

test.for<[what: string, parts: () => string[]]>([
  ['one byte', () => [`${post('1.1', 'Connection: close')}x`]],
  ['one byte in another packet', () => [post('1.1', 'Connection: close'), 'x']],
  ['another creation', () => [post('1.1', 'Connection: close') + post('1.1')]],
  ['another one later', () => [post('1.1', 'Connection: close'), post('1.1')]],
  ['a pipelined creation', () => [post('1.1').repeat(2)]],
  ['twenty pipelined creations', () => [post('1.1').repeat(20)]],
  ['a pipelined one in HTTP/1.0', () => [post('1.0', 'Connection: keep-alive').repeat(2)]],
  ['what is not HTTP', () => [`${post('1.1')}GARBAGE\r\n\r\n`]],
  ['CONNECT', () => [`${post('1.1')}CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n`]],
])('of a creation and %s, the creation gets the last response', async ([, parts]) => {
  expect(await outcome(...parts())).toEqual({ statuses: [201], made: 1 })
})

test.for(['GARBAGE\r\n\r\n', post('1.1')])(
  'what arrives while a creation is served is not done, and its response is the last: %j',
  async (more) => {
    const [head = '', body = ''] = post('1.1', 'Expect: 100-continue').split(/(?<=\r\n\r\n)/)
    const { socket } = await open()
    socket.write(head)
    await once(socket, 'data') // the server has sent 100 Continue
    socket.write(body + more)
    const answer = await text(socket)
    expect(answer).toMatch(/^HTTP\/1\.1 201 Created\r\n.*\r\nConnection: close\r\n.*"Rex"/s)
    expect(answer.match(/HTTP\/1\.1/g)).toHaveLength(1)
  },
)

test('Expect: 100-continue, in any case, gets 100 Continue; other expectations are ignored', async () => {
  const statuses = async (...parts: string[]) =>
    (await converse(service.origin, parts)).answers.map(({ status }) => status)
  for (const expectation of ['Expect: 100-continue', 'expect: 100-Continue']) {
    const asking = keyed('POST /v1/pets', json, expectation, 'Content-Length: 2')
    expect(await statuses(asking, '{}'), expectation).toEqual([100, 400])
    // HTTP/1.0 has no 100 Continue (RFC 9110, section 10.1.1).
    const old = asking.replace('HTTP/1.1', 'HTTP/1.0')
    expect(await statuses(old, '{}'), expectation).toEqual([400])
  }
  expect(await statuses(keyed('GET /v1/pets', 'Expect: tea'))).toEqual([200])
})

test.for(['/healthz', '/v1/pets', '/trpc/listPets'])(
  'a request behind an Upgrade header at %s is not executed',
  async (target) => {
    const offer = keyed(`GET ${target}`, 'Connection: Upgrade', 'Upgrade: h2c')
    // In the same packet, in the next one, and as the rest when the first bytes are dropped.
    const hidden = post('1.1')
    for (const parts of [
      [offer + hidden],
      [offer, hidden],
      [offer + hidden.slice(0, 30), hidden],
    ]) {
      expect(await outcome(...parts)).toEqual({ statuses: [200], made: 0 })
    }
    // Node drops what it has read together with the header, and parses what it reads next. Empty lines
    // before a request are ignored (RFC 9112, section 2.2): the place of the next read does not matter.
    const before = await countPets(service.sql)
    await converse(service.origin, offer + '\r\n'.repeat(150_000) + hidden, { expected: 2 })
    expect(await countPets(service.sql)).toBe(before)
  },
)

test.for<[line: string, body: string | undefined, status: number]>([
  ['GET /healthz', undefined, 200],
  ['GET /v1/pets', undefined, 200],
  ['POST /v1/pets', pet, 201],
  ['POST /trpc/createPet', trpcPet, 200],
])('a client that ends its side still gets the response of %s', async ([line, body, status]) => {
  for (const version of ['1.1', '1.0'] as const) {
    const { socket } = await open()
    socket.end(requestText(line, { key: service.key, version, ...(body && { body }) }))
    expect(await text(socket)).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `))
  }
})

test('a client that ends its side after a whole request gets the answer, however late', async () => {
  const release = await holdWrites(service.databaseUrl)
  const { socket, served } = await open()
  const ended = once(served, 'end')
  socket.end(post('1.1'))
  await ended
  await release()
  expect(await text(socket)).toMatch(/^HTTP\/1\.1 201 /)
})

test('a client that ends its side in a body creates nothing; after a response it is disconnected', async () => {
  const before = await countPets(service.sql)
  const { socket } = await open()
  socket.end(post('1.1').slice(0, -1))
  expect(await text(socket)).toMatch(/^HTTP\/1\.1 400 /)
  expect(await countPets(service.sql)).toBe(before)
  const { socket: other } = await open()
  other.write(keyed('GET /healthz'))
  await once(other, 'data')
  other.end()
  expect(await text(other)).toBe('')
})

const large = ' '.repeat(65_537)
const inChunks = `10001\r\n${large}\r\n0\r\n\r\n`
const expecting = 'Expect: 100-continue'
test.for<[what: string, status: number, code: string, headers: string[], body: string]>([
  ['too large', 413, 'PAYLOAD_TOO_LARGE', [json, 'Content-Length: 65537'], large],
  ['too large in chunks', 413, 'PAYLOAD_TOO_LARGE', [json, chunked], inChunks],
  ['announced', 413, 'PAYLOAD_TOO_LARGE', [json, 'Content-Length: 65537', expecting], ''],
  ['text', 415, 'UNSUPPORTED_MEDIA_TYPE', ['Content-Type: text/plain', chunked, expecting], ''],
  ['compressed', 415, 'UNSUPPORTED_MEDIA_TYPE', [json, 'Content-Encoding: br', chunked], ''],
])(
  'a body that is %s gets %i at once, as the last response',
  async ([, status, code, headers, body]) => {
    for (const [path, expectError] of [
      ['/v1/pets', expectRestError],
      ['/trpc/createPet', expectTrpcError],
    ] as const) {
      const sent = keyed(`POST ${path}`, ...headers) + (body && body + post('1.1'))
      const { answers, closed } = await converse(service.origin, sent, { expected: 2 })
      expect([answers.length, closed, answers[0]?.headers.get('connection')]).toEqual([
        1,
        true,
        'close',
      ])
      if (answers[0]) expectError(answers[0], status, code)
    }
  },
)

test('a preflight whose body does not arrive gets a response, and the connection closes', async () => {
  const headers = ['Origin: https://shop.example', 'Access-Control-Request-Method: POST']
  const preflight = requestText('OPTIONS /v1/pets', { headers: [...headers, 'Content-Length: 5'] })
  const { answers, closed } = await converse(service.origin, preflight, { expected: 2 })
  expect([answers.map(({ status }) => status), closed]).toEqual([[204], true])
})

test('a body that arrives slowly takes no time of DATABASE_TIMEOUT', async () => {
  const { fetch, stop } = await startService({ DATABASE_TIMEOUT: '500ms' })
  onTestFinished(stop)
  async function* slowly(text: string) {
    yield Buffer.from(text.slice(0, 5))
    await setTimeout(600)
    yield Buffer.from(text.slice(5))
  }
  const statuses = [
    ['/v1/pets', pet],
    ['/trpc/createPet', trpcPet],
  ].map(async ([path, text]) => {
    const body = ReadableStream.from(slowly(`${text}`))
    return (await fetch(`${path}`, { method: 'POST', body, duplex: 'half' })).status
  })
  expect(await Promise.all(statuses)).toEqual([201, 200])
})

test('a connection whose body has arrived stays open, whatever the status', async () => {
  const refused = requestText('POST /v1/pets', { body: pet })
  const healthy = `${requestText('GET /healthz', { headers: ['Content-Length: 4'] })}body`
  const parts = [refused, healthy, refused]
  const { answers, closed } = await converse(service.origin, parts, { expected: 3, inTurn: true })
  expect(answers.map(({ status }) => status)).toEqual([401, 200, 401])
  expect(closed).toBe(false)
})

test.concurrent.for<[status: number, head: () => string]>([
  [401, () => requestText('POST /v1/pets', { headers: [json, chunked] })],
  [404, () => keyed('POST /v1/nothing', json, chunked)],
  [405, () => keyed('PUT /v1/pets', json, chunked)],
  [413, () => keyed('POST /v1/pets', json, chunked)],
  [415, () => keyed('POST /trpc/createPet', 'Content-Type: text/plain', chunked)],
  [200, () => keyed('GET /v1/pets', chunked)],
])('an endless body: the server returns %i, and closes the connection', async ([status, head]) => {
  const socket = connect(Number(new URL(service.origin).port), '127.0.0.1').on('error', () => {})
  const answered = once(socket, 'data')
  const closed = new Promise((resolve) => socket.on('close', resolve)) // perhaps with an error
  const chunk = `10000\r\n${'x'.repeat(65_536)}\r\n`
  socket.write(head() + chunk + chunk)
  expect(`${await answered}`).toMatch(new RegExp(`^HTTP/1\\.1 ${status} .*Connection: close`, 's'))
  const send = () => {
    while (!socket.destroyed && socket.write(chunk));
  }
  socket.on('drain', send)
  send()
  await closed
})

test('a client that sends its body after the response is not reset at once', async () => {
  const { socket, served } = await open()
  socket.resume().write(keyed('POST /v1/pets', 'Content-Type: text/plain', 'Content-Length: 1000'))
  await once(socket, 'end')
  for (let bytes = 1; bytes <= 5; bytes++) {
    const { bytesRead } = served
    socket.write('x')
    await until('the server reads it', () => served.bytesRead > bytesRead)
  }
  expect(socket.errored).toBe(null)
  socket.destroy()
})

test.for([0, 1])(
  'request %i of a connection, whose head arrives during a stop, gets a response',
  async (before) => {
    const stopped = await startService()
    const { socket, served } = await open(stopped)
    const request = requestText('POST /v1/pets', { key: stopped.key, body: pet })
    for (let count = 0; count < before; count++) {
      socket.write(request)
      await once(socket, 'data')
    }
    const { bytesRead } = served
    socket.write(request.slice(0, 20))
    await until('the server reads it', () => served.bytesRead > bytesRead)
    const { socket: idle } = await open(stopped)
    const stopping = stopped.stop()
    await text(idle) // is closed
    socket.write(request.slice(20))
    expect(await text(socket)).toMatch(/^HTTP\/1\.1 201 .*\r\nConnection: close\r\n/s)
    await stopping
  },
)

test('a head that does not end delays a stop until half of SHUTDOWN_TIMEOUT at most', async () => {
  const stopped = await startService({ SHUTDOWN_TIMEOUT: '500ms' })
  const { socket, served } = await open(stopped)
  socket.write('GET /healthz HTTP/1.1\r\n')
  await until('the server reads it', () => served.bytesRead > 0)
  const began = performance.now()
  await stopped.stop()
  expect(await text(socket)).toMatch(/^HTTP\/1\.1 408 /)
  expect(performance.now() - began, 'the timeout of headers is 10 seconds').toBeLessThan(9_000)
})

const docs = requestText('GET /docs/', { headers: ['X-Request-Id: unread'] })

test('a request that is on its way when a stop begins is answered, on a new connection, too', async () => {
  const stopped = await startService()
  const { socket } = await open(stopped)
  const stopping = stopped.stop()
  await setTimeout(5) // after the end of new connections
  socket.write(requestText('GET /healthz'))
  expect(await text(socket)).toMatch(/^HTTP\/1\.1 200 .*\r\nConnection: close\r\n/s)
  await stopping
})

test('a stop sends the whole response to a slow client', async () => {
  const stopped = await startService()
  const { socket, served, sent } = await unreadAnswer(stopped.origin, docs)
  const stopping = stopped.stop()
  expect(served.destroyed).toBe(false)
  const received = await text(socket)
  const lengths = [...received.matchAll(/^Content-Length: (\d+)\r\n/gm)].map(([, length]) => length)
  expect(lengths).toHaveLength(sent)
  const bodies = received.split(/^HTTP\/1\.1 200 OK\r\n.*?\r\n\r\n/ms).slice(1)
  expect(bodies.map((body) => `${Buffer.byteLength(body)}`)).toEqual(lengths)
  await stopping
})

test('requests behind an unread response are not served, and the connection closes', async () => {
  const before = service.logged.length
  const { socket, sent } = await unreadAnswer(service.origin, docs)
  socket.write(docs.repeat(50))
  await expectServing(service)
  expect((await text(socket)).match(/^HTTP\/1\.1 200 OK\r\n/gm)).toHaveLength(sent)
  const logged = service.logged.slice(before).filter((line) => /"unread"/.test(line))
  expect(logged).toHaveLength(sent)
})

test('a client that sends over a hundred requests before it reads an answer is disconnected', async () => {
  for (const count of [100, 101, 200]) {
    const { socket, served } = await unreadAnswer(service.origin, docs)
    const end = served.bytesRead + count * docs.length
    socket.write(docs.repeat(count))
    await until('it has read them', () => served.destroyed || served.bytesRead === end)
    expect(served.destroyed).toBe(count > 100)
    socket.destroy()
  }
})
