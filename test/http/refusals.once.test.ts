/** Requests that the HTTP parser refuses: answer, log entry and metrics. None of them has an effect. */
import { once } from 'node:events'
import { connect } from 'node:net'
import { hostname } from 'node:os'
import { text } from 'node:stream/consumers'
import { createTRPCClient, httpBatchLink, httpLink } from '@trpc/client'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createPetstoreClient, isApiError } from '../support/client.ts'
import { everyHeader, expectRefusal } from '../support/expect.ts'
import { holdWrites } from '../support/hold.ts'
import { until } from '../support/instance.ts'
import { newMetrics } from '../support/metrics.ts'
import { countPets } from '../support/pets.ts'
import { converse, type RawAnswer, requestText, unfinished, unreadAnswer } from '../support/raw.ts'
import { type AppRouter, transformer } from '../support/router.ts'
import { errorOf, serviceForFile, startService } from '../support/service.ts'

const metrics = await newMetrics()
const service = await serviceForFile(metrics.variables)
const database = { url: service.databaseUrl, remove: async () => {} }
/** For the requests that do not arrive in full. */
const patient = await serviceForFile({}, { database })
/** For connections on which nothing happens. */
const hurried = await serviceForFile(
  { KEEP_ALIVE_TIMEOUT: '1s', DATABASE_TIMEOUT: '3s' },
  { database },
)
// The look-up of a key that is not cached could be later than what is wrong.
beforeAll(() => service.rest('GET', '/pets'))
afterAll(async () => expect(await countPets(service.sql)).toBe(0))

const open = ({ origin } = service) =>
  connect({ port: Number(new URL(origin).port), allowHalfOpen: true }).on('error', () => {})

type Conversation = Awaited<ReturnType<typeof converse>>
const send = (parts: string | string[]) => converse(service.origin, parts, { expected: 2 })
const lastAnswer = async (parts: string | string[]) => onlyAnswer(await send(parts))

/** The only response on a connection, which the server has then closed. */
function onlyAnswer({ answers, closed }: Conversation): RawAnswer {
  expect({ count: answers.length, closed }).toEqual({ count: 1, closed: true })
  return answers[0] as RawAnswer
}

/** The log entries of the request with this id. */
const entriesOf = (id: string | null, { logged } = service) =>
  logged.map((line) => JSON.parse(line)).filter(({ requestId }) => requestId === id)

/** The log entry of a response: there must be exactly one. */
async function entryOf({ headers }: RawAnswer, from = service): Promise<Record<string, unknown>> {
  const id = headers.get('x-request-id')
  await until('it is logged', () => entriesOf(id, from).length > 0)
  expect(entriesOf(id, from)).toHaveLength(1)
  return entriesOf(id, from)[0]
}

const pet = '{"name":"Rex","categoryId":3}'
const chunked = 'Transfer-Encoding: chunked'
const long = 'x'.repeat(20_000)
const get = (...headers: string[]) => requestText('GET /v1/pets', { headers })
const post = (path: string, headers: string[], body = '') =>
  requestText(`POST ${path}`, {
    key: service.key,
    headers: ['Content-Type: application/json', ...headers],
  }) + body

type Row = [what: string, status: number, parts: (path: string) => string[]]

/** A request whose body another parser might take for a creation. */
const smuggling = (...headers: string[]): Row => [
  headers.join(', '),
  400,
  (path) => [post(path, headers, `0\r\n\r\n${post('/v1/pets', ['Content-Length: 29'], pet)}`)],
]

const refusals: Row[] = [
  smuggling('Content-Length: 5', chunked),
  smuggling('Transfer-Encoding: chunked, identity'),
  smuggling('Transfer-Encoding : chunked', 'Content-Length: 5'),
  smuggling('Content-Length: 5', 'Content-Length: 5'),
  smuggling('Content-Length: +5'),
  ['a chunk of no size', 400, (path) => [post(path, [chunked]), `zz\r\n${pet}`]],
  ['endless chunk extensions', 400, (path) => [post(path, [chunked]), `2;${long}`]],
  ['a text that is not HTTP', 400, () => ['hello\r\n\r\n']],
  ['HTTP/2', 400, () => ['PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n']],
  ['an unknown method', 400, () => [get().replace('GET', 'FETCH')]],
  ['lines that end with LF alone', 400, () => [get().replaceAll('\r', '')]],
  ['a control character', 400, () => [get('A: \x01')]],
  ['a space in a header name', 400, () => ['GET / HTTP/1.1\r\nHost: x\r\n', 'A b: c\r\n\r\n']],
  ['a long header', 431, () => ['GET / HTTP/1.1\r\nHost: x\r\n', `A: ${long}\r\n\r\n`]],
  ['a long URL', 431, () => ['GET /?a=', `${long} HTTP/1.1\r\nHost: x\r\n\r\n`]],
  ['101 headers', 431, () => [get(...Array(100).fill('A: b'))]],
  ['CONNECT', 405, () => ['CONNECT x:22 HTTP/1.1\r\nHost: x\r\n\r\n']],
]
const unended: Row[] = [
  ['headers that do not end', 408, () => ['GE', 'T / HTTP/1.1\r\nHost: x\r\n']],
  ['a body that does not end', 408, (path) => [post(path, ['Content-Length: 7'], '{')]],
]

const words: Record<number, [code: string, message: string]> = {
  400: ['BAD_REQUEST', 'The request is not well-formed HTTP'],
  405: ['METHOD_NOT_SUPPORTED', 'CONNECT is not supported'],
  408: ['TIMEOUT', 'The request did not arrive in time'],
  431: [
    'BAD_REQUEST',
    'The URL and the headers must have at most 16384 bytes, in at most 100 headers',
  ],
}

const refused = '%s: %i with all headers, and a log entry'
test.concurrent.for(refusals)(refused, (row) =>
  expectRefused(row, service, (requests) => Promise.all(requests.map(send))),
)
// One after another: `unfinished` needs a server without other connections.
test.for(unended)(refused, (row) =>
  expectRefused(row, patient, (requests) => unfinished(patient.origin, requests)),
)

async function expectRefused(
  [, status, parts]: Row,
  from: typeof service,
  sendEach: (requests: string[][]) => Promise<Conversation[]>,
) {
  const [code, message] = words[status] ?? ['', '']
  for (const [path, surface] of [
    ['/v1/pets', 'rest'],
    ['/trpc/createPet', 'trpc'],
  ] as const) {
    const requests = [parts(path), [parts(path).join('')]]
    for (const conversation of await sendEach(requests)) {
      const answer = onlyAnswer(conversation)
      expectRefusal(answer, status, code)
      expect(JSON.parse(answer.body).message).toBe(message)
      const { date, ...headers } = Object.fromEntries(answer.headers)
      expect(Math.abs(Date.now() - Date.parse(`${date}`))).toBeLessThan(60_000)
      const { requestId, ...entry } = await entryOf(answer, from)
      expect(requestId).toMatch(/^[\da-f-]{36}$/)
      expect(headers).toEqual({
        'cache-control': 'no-store',
        connection: 'close',
        'content-length': `${Buffer.byteLength(answer.body)}`,
        'content-type': 'application/json',
        ...everyHeader,
        'x-request-id': requestId,
      })
      // A request whose head arrives before what is wrong has been served.
      const isServed = 'operation' in entry
      expect('address' in entry, 'an address where there is no key').toBe(!isServed)
      if (status === 408) expect(isServed).toBe(`${requests}`.includes('POST'))
      expect(entry).toMatchObject({
        status,
        ...(isServed
          ? { surface, operation: 'createPet', keyId: '1' }
          : { surface: 'other', address: '127.0.0.1' }),
      })
    }
  }
}

test('the entry of a refusal in full, and its metric', async () => {
  const answer = await lastAnswer('hello\r\n\r\n')
  expect(await entryOf(answer)).toEqual({
    level: 'info',
    time: expect.any(Number),
    pid: process.pid,
    hostname: hostname(),
    requestId: answer.headers.get('x-request-id'),
    surface: 'other',
    status: 400,
    duration: 0,
    address: '127.0.0.1',
    msg: 'request',
  })
  const name = 'petstore_requests_total{surface="other",operation="none",status="400"}'
  const before = await metrics.read(name)
  await lastAnswer('hello\r\n\r\n')
  expect(await metrics.read(name)).toBe(before + 1)
})

test.each([
  ['TLS', '\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03'],
  ['HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
  ['PROXY', `PROXY TCP4 192.0.2.1 192.0.2.2 56324 443\r\n${get()}`],
  ['PROXY', '\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c'],
])('the log names %s on the port of HTTP', async (protocol, bytes) => {
  expect(await entryOf(await lastAnswer(bytes))).toMatchObject({ status: 400, protocol })
})

test.for(['2.0', '0.9'])('HTTP/%s is told the versions of HTTP', async (version) => {
  const answer = await lastAnswer(get().replace('1.1', version))
  expect(JSON.parse(answer.body).message).toBe('The request must be one of HTTP/1.1 or HTTP/1.0')
  expect(await entryOf(answer)).toMatchObject({ surface: 'other', status: 400 })
})

test('HTTP/1.0 without a Host, and a hundred headers, are served', async () => {
  const old = `GET /v1/pets HTTP/1.0\r\nAuthorization: Bearer ${service.key}\r\n\r\n`
  expect(await lastAnswer(old)).toMatchObject({ status: 200, body: '[]' })
  const many = requestText('GET /healthz', {
    headers: ['Connection: close', ...Array(98).fill('A: b')],
  })
  expect((await lastAnswer(many)).status).toBe(200)
})

test('a request with an invalid body in the packet of its head is not served', async () => {
  const name = 'petstore_key_lookups_total{cache="hit"}'
  expect((await service.rest('GET', '/pets')).status).toBe(200) // caches the key
  const before = await metrics.read(name)
  expect((await lastAnswer(post('/v1/pets', [chunked], 'zz\r\n'))).status).toBe(400)
  expect(await metrics.read(name)).toBe(before)
})

test('clients of both surfaces can parse the error', async () => {
  const headers = { 'x-long': long }
  const expected = { code: 'BAD_REQUEST', status: 431, message: words[431]?.[1] }
  const { body } = await service.rest('GET', '/pets', { headers })
  expect(body).toEqual({ ...expected, error: expect.stringMatching(/^\[/) })
  for (const link of [httpLink, httpBatchLink]) {
    const client = createTRPCClient<AppRouter>({
      links: [link({ url: `${service.origin}/trpc`, transformer, headers })],
    })
    expect(await errorOf(client.listPets.query())).toEqual(expected)
  }
  const apiKey = service.key + long
  const petstore = createPetstoreClient({ url: `${service.origin}/trpc`, apiKey })
  const thrown = await petstore.listPets.query().catch((error: unknown) => error)
  expect(isApiError(thrown) && [thrown.code, thrown.status]).toEqual(['BAD_REQUEST', 431])
})

test('connections that send nothing, or no more, are closed in silence', async () => {
  const [lines, others] = [patient.logged.length, hurried.logged.length]
  const idle = open(hurried)
  idle.write(get('X-Request-Id: idle'))
  const silent = await unfinished(patient.origin, [[]])
  expect(silent).toEqual([{ answers: [], closed: true }])
  expect((await text(idle)).match(/^HTTP/gm)).toHaveLength(1)
  const logged = [...patient.logged.slice(lines), ...hurried.logged.slice(others)]
  expect(logged.map((line) => JSON.parse(line).requestId)).toEqual(['idle'])
})

test('a client whose answer takes longer than KEEP_ALIVE_TIMEOUT gets it', async () => {
  const release = await holdWrites(hurried.databaseUrl)
  const answer = await hurried.rest('POST', '/pets', { body: { name: 'Rex', categoryId: 3 } })
  await release()
  expect(answer.status).toBe(503) // after DATABASE_TIMEOUT
})

test('a client that does not read its responses is disconnected', async () => {
  const asking = requestText('GET /docs/', { headers: ['X-Request-Id: unread'] })
  const { socket } = await unreadAnswer(hurried.origin, asking)
  const gone = () => entriesOf('unread', hurried).filter(({ status }) => status === 499)
  await until('it is logged', () => gone().length > 0)
  expect(gone()).toMatchObject([{ level: 'info', path: '/docs/' }])
  socket.destroy()
})

test('clients that reset their connection do not disturb the service', async () => {
  const uncaught: unknown[] = []
  const onUncaught = (error: unknown) => void uncaught.push(error)
  process.on('uncaughtException', onUncaught)
  for (const sent of ['', 'GE', 'CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n', 'GARBAGE\r\n\r\n']) {
    const socket = open()
    await once(socket, 'connect')
    socket.write(sent, () => socket.resetAndDestroy())
    await once(socket, 'close')
    expect((await fetch(`${service.origin}/healthz`)).status).toBe(200)
  }
  process.off('uncaughtException', onUncaught)
  expect(uncaught).toEqual([])
})

const key = `petstore_${'k'.repeat(43)}`

test.for([
  ['*', '*'],
  ['/nothing?a=b?c', '/nothing'],
  ['http://elsewhere.example/nothing?a=b', '/nothing'],
  ['//elsewhere.example/nothing', '//elsewhere.example/nothing'],
  ['/n%6Fthing%20x', '/n%…'],
  [`/${key}`, '/petstore_…'],
  [`/${key.toUpperCase()}`, '/PETSTORE_…'],
  [`/petstore_read_${'k'.repeat(43)}`, '/petstore_read_…'],
  [`/petstore_${'k'.repeat(20)}/${'k'.repeat(23)}`, '/petstore_…'],
  [`/${key.replace('t', '%74')}`, '/pe%…'],
  [`/${key.replaceAll('k', '%6b')}`, '/petstore_%…'],
  [`/${key.replace(/k$/, '%256b')}`, '/petstore_…%…'],
  // What no URI has is cut, too.
  [`/x/petstore_${'k'.repeat(20)}"${'k'.repeat(23)}`, '/x/petstore_…"…'],
  [`/${key.replace('t', '"t')}`, '/pe"…'],
  [`/x\\${key}`, '/x\\…'],
  // … and what it may have, in any place of the key.
  [`/pet/store_${'k'.repeat(43)}`, '/pet/store_…'],
  [`/petstore_re.ad_${'k'.repeat(43)}`, '/petstore_re.ad_…'],
] as const)('%s is logged as %s', async ([target, path]) => {
  const { answers } = await converse(service.origin, `GET ${target} HTTP/1.1\r\nHost: x\r\n\r\n`)
  expect(await entryOf(answers[0] as RawAnswer)).toMatchObject({ path, status: 404, method: 'GET' })
})

test.for<[sent: string, keyPrefix: string | undefined]>([
  [key, 'petstore_kkkkkk'],
  [`petstore_read_${'k'.repeat(43)}`, 'petstore_read_kkkkkk'],
  [`${key}-`, undefined], // longer than a key
])('of the unknown key %s, the log shows %s', async ([sent, keyPrefix]) => {
  const asking = requestText('GET /v1/pets', { key: sent, headers: [`X-Request-Id: ${sent}`] })
  const { answers } = await converse(service.origin, asking)
  const { requestId, ...entry } = await entryOf(answers[0] as RawAnswer)
  expect([entry.status, entry.keyPrefix]).toEqual([401, keyPrefix])
  expect(requestId, 'an id with a key is replaced').toMatch(/^[\da-f-]{36}$/)
})

test('a request without a valid key is logged with the IP address that TRUST_PROXY determines', async () => {
  const behind = await startService({ TRUST_PROXY: '1' })
  for (const [started, address] of [
    [behind, '192.0.2.7'],
    [service, '127.0.0.1'],
  ] as const) {
    for (const [path, status] of [
      ['/v1/pets', 401],
      ['/trpc/listPets', 401],
      ['/nothing', 404],
    ] as const) {
      const headers = ['X-Forwarded-For: 192.0.2.7', 'Connection: close']
      const { answers } = await converse(started.origin, requestText(`GET ${path}`, { headers }))
      expect(await entryOf(answers[0] as RawAnswer, started)).toMatchObject({ status, address })
    }
  }
  await behind.stop()
})

test.for(['', requestText('GET /healthz')])(
  'headers that end early return 400, after %j',
  async (before) => {
    const socket = open()
    if (before) {
      socket.write(before)
      await once(socket, 'data')
    }
    socket.end('GET /v1/pets HTTP/1.1\r\nHost: x\r\n')
    const answer = await text(socket)
    expect(answer).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n.*"code":"BAD_REQUEST"/s)
    const id = /^x-request-id: (.+)\r$/im.exec(answer)?.[1] ?? ''
    await until('it is logged', () => entriesOf(id).length > 0)
    expect(entriesOf(id)).toMatchObject([{ msg: 'request', status: 400 }])
  },
)
