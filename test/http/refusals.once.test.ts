/** Requests that the HTTP parser rejects: response, log entry and metrics. */
import { once } from 'node:events'
import { connect } from 'node:net'
import { hostname } from 'node:os'
import { text } from 'node:stream/consumers'
import { setTimeout } from 'node:timers/promises'
import { createTRPCClient, httpBatchLink, httpLink } from '@trpc/client'
import { expect, test } from 'vitest'
import { createPetstoreClient, isApiError } from '../support/client.ts'
import { eventually } from '../support/eventually.ts'
import { expectRefusal } from '../support/expect.ts'
import { everyHeader } from '../support/headers.ts'
import { newMetrics } from '../support/metrics.ts'
import { converse, type RawAnswer } from '../support/raw.ts'
import { type AppRouter, transformer } from '../support/router.ts'
import { errorOf, serviceForFile, startService } from '../support/service.ts'

const metrics = await newMetrics()
const clientTimeouts = { headers: 300, request: 400, keepAlive: 2_000 }
const service = await serviceForFile(metrics.variables, { clientTimeouts })

const long = 'x'.repeat(20_000)
const refusals: [status: number, code: string, parts: (path: string) => string[]][] = [
  [400, 'BAD_REQUEST', (path) => [`GET ${path} HTTP/1.1\r\nHost: x\r\n`, 'A b: c\r\n\r\n']],
  [431, 'BAD_REQUEST', (path) => [`GET ${path} HTTP/1.1\r\nHost: x\r\n`, `A: ${long}\r\n\r\n`]],
  [431, 'BAD_REQUEST', (path) => [`GET ${path}?a=`, `${long} HTTP/1.1\r\nHost: x\r\n\r\n`]],
  [
    400,
    'BAD_REQUEST',
    (path) => [
      `POST ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${service.key}\r\n`,
      'Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n',
      'zz\r\n',
    ],
  ],
  [408, 'TIMEOUT', (path) => [`GET ${path} HTTP/1.1\r\nHost: x\r\n`]],
  [408, 'TIMEOUT', (path) => ['GE', `T ${path}`, ' HTTP/1.1\r\n']],
  [
    408,
    'TIMEOUT',
    (path) => [
      `POST ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${service.key}\r\n`,
      'Content-Type: application/json\r\nContent-Length: 7\r\n\r\n{',
    ],
  ],
]

const words: Record<number, string> = {
  400: 'The request is not well-formed HTTP',
  405: 'CONNECT is not supported',
  408: 'The request did not arrive in time',
  431: 'The URL and the headers must have at most 16384 bytes, in at most 1000 headers',
}

const messageOf = ({ body }: RawAnswer): string => JSON.parse(body).message

const refusalHeaders = {
  'cache-control': 'no-store',
  connection: 'close',
  'content-security-policy': "default-src 'none';frame-ancestors 'none'",
  'content-type': 'application/json',
  ...everyHeader,
}

async function refusal(parts: string | string[]): Promise<RawAnswer> {
  const { answers, closed } = await converse(service.origin, parts, { expected: 2 })
  expect(answers).toHaveLength(1)
  expect(closed).toBe(true)
  return answers[0] as RawAnswer
}

/** The log entry of a response: there must be exactly one. */
async function entryOf(answer: RawAnswer, { logged } = service): Promise<Record<string, unknown>> {
  const id = answer.headers.get('x-request-id')
  expect(id).toMatch(/^[\da-f-]{36}$/)
  const entries = () =>
    logged.map((line) => JSON.parse(line)).filter(({ requestId }) => requestId === id)
  while (entries().length === 0) await setTimeout(5)
  expect(entries()).toHaveLength(1)
  return entries()[0]
}

test.for(refusals.map((given, index) => [index, ...given] as const))(
  'case %i: %i with all headers and a log entry, in one packet and in several',
  async ([, status, code, parts]) => {
    for (const path of ['/v1/pets', '/trpc/createPet']) {
      const whole = parts(path)
      for (const sent of [whole, whole.join('')]) {
        const answer = await refusal(sent)
        expectRefusal(answer, status, code)
        expect(messageOf(answer)).toBe(words[status])
        const { date, 'content-length': length, ...headers } = Object.fromEntries(answer.headers)
        expect(Math.abs(Date.now() - Date.parse(String(date)))).toBeLessThan(60_000)
        expect(Number(length)).toBe(Buffer.byteLength(answer.body))
        const { time: _, hostname: __, duration, requestId, ...entry } = await entryOf(answer)
        expect(headers).toEqual({ ...refusalHeaders, 'x-request-id': requestId })
        // The request was served if its headers arrived before the invalid part.
        const [surface] = path.slice(1).split('/')
        const operation = { surface: surface === 'v1' ? 'rest' : 'trpc', operation: 'createPet' }
        const wasServed = 'operation' in entry
        expect(entry).toMatchObject({
          level: 'info',
          status,
          msg: 'request',
          ...(wasServed
            ? { ...operation, keyId: '1' }
            : { surface: 'other', address: '127.0.0.1' }),
        })
        // The server waited for the body.
        if (whole.length === 2 && status === 408) expect(wasServed).toBe(true)
      }
    }
  },
)

test('a request with an invalid body in the packet of its head is not served', async () => {
  const lookUps = async () =>
    (await metrics.read('petstore_key_lookups_total{cache="hit"}')) +
    (await metrics.read('petstore_key_lookups_total{cache="miss"}'))
  const before = await lookUps()
  const head = `POST /v1/pets HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${service.key}\r\n`
  const body = 'Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n'
  expectRefusal(await refusal(head + body), 400, 'BAD_REQUEST')
  expect(await lookUps()).toBe(before)
  await service.rest('GET', '/pets')
  expect(await lookUps()).toBe(before + 1)
})

test('clients of both surfaces can parse the error', async () => {
  const headers = { 'x-long': long }
  const expected = { code: 'BAD_REQUEST', status: 431, message: words[431] }
  const { error, ...body } = (await service.rest('GET', '/pets', { headers })).body as Record<
    string,
    unknown
  >
  expect(body).toEqual(expected)
  expect(error).toMatch(/^\[/)
  for (const link of [httpLink, httpBatchLink]) {
    const client = createTRPCClient<AppRouter>({
      links: [link({ url: `${service.origin}/trpc`, transformer, headers })],
    })
    expect(await errorOf(client.listPets.query())).toEqual(expected)
  }
  const petstore = createPetstoreClient({
    url: `${service.origin}/trpc`,
    apiKey: service.key + long,
  })
  const thrown = await petstore.listPets.query().catch((error: unknown) => error)
  expect(isApiError(thrown) && [thrown.code, thrown.status]).toEqual(['BAD_REQUEST', 431])
})

test('a connection that sends nothing is closed in silence', async () => {
  const count = () =>
    metrics.read('petstore_requests_total{surface="other",operation="none",status="408"}')
  const [before, lines] = [await count(), service.logged.length]
  const silent = await converse(service.origin, [])
  expect(silent).toEqual({ answers: [], closed: true })
  expect(service.logged.slice(lines)).toEqual([])
  expect(await count()).toBe(before)
})

test('CONNECT is logged, and counted with surface="other"', async () => {
  const answer = await refusal('CONNECT x:22 HTTP/1.1\r\nHost: x\r\n\r\n')
  expectRefusal(answer, 405, 'METHOD_NOT_SUPPORTED')
  expect(messageOf(answer)).toBe(words[405])
  expect(await entryOf(answer)).toEqual({
    level: 'info',
    time: expect.any(Number),
    pid: process.pid,
    hostname: hostname(),
    requestId: answer.headers.get('x-request-id'),
    surface: 'other',
    status: 405,
    duration: 0,
    address: '127.0.0.1',
    msg: 'request',
  })
  const labels = 'surface="other",operation="none",status="405"'
  expect(await metrics.read(`petstore_requests_total{${labels}}`)).toBe(1)
})

const key = `petstore_${'k'.repeat(43)}`

test.each([
  ['*', '*'],
  ['/nothing?a=b?c', '/nothing'],
  ['http://elsewhere.example/nothing?a=b', '/nothing'],
  ['//elsewhere.example/nothing', '//elsewhere.example/nothing'],
  ['/n%6Fthing%20x', '/n%…'],
])('%s is logged as %s', async (target, path) => {
  const { answers } = await converse(service.origin, `GET ${target} HTTP/1.1\r\nHost: x\r\n\r\n`)
  expect(await entryOf(answers[0] as RawAnswer)).toMatchObject({ path, status: 404, method: 'GET' })
})

test.each([
  [key, '/petstore_…'],
  [key.replace('t', '%74'), '/pe%…'],
  [key.replaceAll('k', '%6b'), '/petstore_%…'],
  [key.replace(/k$/, '%256b'), '/petstore_…%…'],
])('a key in an unknown path is not logged: %s', async (path, logged) => {
  const { answers } = await converse(service.origin, `GET /${path} HTTP/1.1\r\nHost: x\r\n\r\n`)
  expect(await entryOf(answers[0] as RawAnswer)).toMatchObject({ path: logged })
})

test('a request without a valid key is logged with the IP address that TRUST_PROXY determines', async () => {
  const behind = await startService({ TRUST_PROXY: '1' })
  const requests: [method: string, path: string, status: number][] = [
    ['GET', '/v1/pets', 401],
    ['GET', '/trpc/listPets', 401],
    ['OPTIONS', '/v1/pets', 405],
    ['OPTIONS', '/trpc/createPet', 405],
    ['GET', '/nothing', 404],
    ['GET', '/healthz', 200],
  ]
  try {
    for (const [started, address] of [
      [behind, '192.0.2.7'],
      [service, '127.0.0.1'],
    ] as const) {
      for (const [method, path, status] of requests) {
        const text = `${method} ${path} HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 192.0.2.7\r\n`
        const preflight = 'Origin: https://shop.example\r\nAccess-Control-Request-Method: POST\r\n'
        const { answers } = await converse(
          started.origin,
          `${text}${preflight}Connection: close\r\n\r\n`,
        )
        const entry = await entryOf(answers[0] as RawAnswer, started)
        expect(entry, path).toMatchObject({ method, status, address })
      }
    }
  } finally {
    await behind.stop()
  }
})

test.each([
  ['on a new connection', ''],
  ['after a response', 'GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n'],
])('headers that end early %s return 400, with a log entry', async (_, before) => {
  const socket = connect({ port: Number(new URL(service.origin).port), allowHalfOpen: true })
  if (before) {
    socket.write(before)
    await once(socket, 'data')
  }
  socket.end('GET /v1/pets HTTP/1.1\r\nHost: x\r\n')
  const answer = await text(socket)
  expect(answer).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n.*"code":"BAD_REQUEST"/s)
  const id = /^x-request-id: (.+)\r$/im.exec(answer)?.[1]
  const entry = () =>
    service.logged.map((line) => JSON.parse(line)).find((line) => line.requestId === id)
  await eventually(() => expect(entry()).toMatchObject({ msg: 'request', status: 400 }))
})
