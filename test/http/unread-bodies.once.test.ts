/** Unwanted bodies are not read: the response is sent at once, and the connection closes. */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import { beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { accepted } from '../support/accepted.ts'
import { expectRestError, expectTrpcError } from '../support/expect.ts'
import { usedMemory } from '../support/memory.ts'
import { converse, requestText } from '../support/raw.ts'
import { serviceForFile } from '../support/service.ts'

const json = 'Content-Type: application/json'

const service = await serviceForFile()

const head = (line: string, ...headers: string[]) => requestText(line, { headers })
const keyed = (line: string, ...headers: string[]) =>
  head(line, `Authorization: Bearer ${service.key}`, ...headers)

const short = 'Content-Length: 20'
test.for<[what: string, status: number, code: string, headers: string[]]>([
  ['too large', 413, 'PAYLOAD_TOO_LARGE', [json, 'Content-Length: 10000000']],
  ['of another type', 415, 'UNSUPPORTED_MEDIA_TYPE', ['Content-Type: text/plain', short]],
  ['compressed', 415, 'UNSUPPORTED_MEDIA_TYPE', [json, 'Content-Encoding: gzip', short]],
])(
  'a body that is %s by its headers returns %i without 100 Continue',
  async ([, status, code, headers]) => {
    const announced = [...headers, 'Expect: 100-continue']
    for (const [path, expectError] of [
      ['/v1/pets', expectRestError],
      ['/trpc/createPet', expectTrpcError],
    ] as const) {
      const { answers, closed } = await converse(
        service.origin,
        keyed(`POST ${path}`, ...announced),
        { expected: 2 },
      )
      expect(answers).toHaveLength(1)
      if (answers[0]) expectError(answers[0], status, code)
      expect(answers[0]?.headers.get('connection')).toBe('close')
      expect(closed).toBe(true)
    }
  },
)

const chunked = 'Transfer-Encoding: chunked'
const endless: [status: number, head: () => string][] = [
  [401, () => head('POST /v1/pets', json, chunked)],
  [401, () => head('POST /trpc/createPet', json, chunked)],
  [404, () => keyed('POST /v1/nothing', json, chunked)],
  [405, () => keyed('PUT /v1/pets', json, chunked)],
  [413, () => keyed('POST /v1/pets', json, chunked)],
  [413, () => keyed('POST /trpc/createPet', json, chunked)],
  [413, () => keyed('POST /v1/pets', json, 'Content-Length: 1000000000')],
  [415, () => keyed('POST /v1/pets', 'Content-Type: text/plain', chunked)],
  [200, () => head('GET /healthz', chunked)],
  [200, () => keyed('GET /v1/pets', chunked)],
]

/** Sends an endless body on a new connection; returns the response, after the server has closed the connection. */
async function sendEndless(begin: string) {
  const serving = accepted()
  const socket = connect(Number(new URL(service.origin).port), '127.0.0.1')
  socket.on('error', () => {}) // the server closes while this side still sends
  const served = await serving
  const dropped = once(served, 'close')
  const answering = once(socket, 'data')
  socket.write(begin)
  const chunk = `10000\r\n${'x'.repeat(65_536)}\r\n`
  const send = () => {
    while (!socket.destroyed && socket.write(chunk));
  }
  socket.on('drain', send)
  send()
  const over = Promise.all([answering, dropped]).then(([[answer]]) => {
    socket.destroy()
    return { answer: String(answer) }
  })
  return { over }
}

describe('an endless body', () => {
  // Sent concurrently: each connection closes a second after its response.
  const sent: Awaited<ReturnType<typeof sendEndless>>[] = []
  beforeAll(async () => {
    for (const [, begin] of endless) sent.push(await sendEndless(begin()))
  })

  test.for(endless.map(([status], index) => [index, status] as const))(
    'case %i: the server returns %i, and closes the connection',
    async ([index, status]) => {
      const { answer = '' } = (await sent[index]?.over) ?? {}
      expect(answer).toContain(`HTTP/1.1 ${status} `)
      expect(answer).toContain('Connection: close')
    },
  )
})

test('a connection whose body has arrived stays open, whatever the status', async () => {
  const body = '{"name":"Rex","categoryId":3}'
  const refused = head('POST /v1/pets', json, `Content-Length: ${body.length}`) + body
  const healthy = `${head('GET /healthz', 'Content-Length: 4')}body`
  const { answers, closed } = await converse(service.origin, [refused, healthy, refused], {
    expected: 3,
    inTurn: true,
  })
  expect(answers.map(({ status }) => status)).toEqual([401, 200, 401])
  expect(closed).toBe(false)
})

test('a client that sends its body after the response is not reset at once', async () => {
  const socket = connect({
    port: Number(new URL(service.origin).port),
    host: '127.0.0.1',
    allowHalfOpen: true,
  }).on('error', () => {})
  const ended = once(socket.resume(), 'end')
  const headers = ['Connection: close', 'Content-Type: text/plain', 'Content-Length: 1000000']
  socket.write(keyed('POST /v1/pets', ...headers))
  await ended
  // It has a second to read the response.
  for (let part = 0; part < 5; part++) {
    socket.write('x'.repeat(1_000))
    await setTimeout(40)
  }
  expect(socket.errored).toBe(null)
  socket.destroy()
})

test('bodies that arrive in chunks leave nothing in memory', async () => {
  const body = '{"name":"","categoryId":3}'
  const sockets = Array.from({ length: 20 }, () =>
    connect(Number(new URL(service.origin).port), '127.0.0.1').setNoDelay(),
  )
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
  })
  const sendEach = (rounds: number) =>
    Promise.all(
      sockets.map(async (socket) => {
        for (let round = 0; round < rounds; round++) {
          socket.write(keyed('POST /v1/pets', json, `Content-Length: ${body.length}`) + body[0])
          // The server reads the first chunk before the second is sent.
          for (let turn = 0; turn < 3; turn++) await new Promise(setImmediate)
          socket.write(body.slice(1))
          const [answer] = await once(socket, 'data')
          expect(String(answer)).toContain('HTTP/1.1 400 ')
        }
      }),
    )
  await sendEach(50) // warms up caches and the compiler
  const before = usedMemory(service)
  await sendEach(150)
  expect(usedMemory(service) - before).toBeLessThan(3_000 * 300)
})

/** Opens connections until the end of the test, and records whether the server closes them. */
async function connections(count: number) {
  const made = Array.from({ length: count }, () => {
    const socket = connect(Number(new URL(service.origin).port), '127.0.0.1')
    const connection = { socket, isClosed: false }
    socket.on('error', () => {}).on('close', () => (connection.isClosed = true))
    return connection
  })
  onTestFinished(() => {
    for (const { socket } of made) socket.destroy()
  })
  await Promise.all(made.map(({ socket }) => once(socket, 'connect')))
  return made
}

test('incomplete bodies are bounded per process: the connection that is idle for longest is dropped first', async () => {
  const name = 'x'.repeat(255)
  const body = JSON.stringify({ name, categoryId: 3, more: 'x'.repeat(60_000) })
  const begun = await connections(640)
  for (const { socket } of begun) {
    socket.write(keyed('POST /v1/pets', json, `Content-Length: ${body.length}`))
    await new Promise((resolve) => socket.write(body.slice(0, -2), resolve))
    for (let turn = 0; turn < 3; turn++) await new Promise(setImmediate) // the server reads it
    // The first connection sends another byte before the limit is reached.
    if (socket === begun[400]?.socket) begun[0]?.socket.write(body.slice(-2, -1))
  }
  const left = () => begun.filter(({ isClosed }) => !isClosed).length
  const mebibytes = () => (left() * body.length) / 1024 / 1024
  await vi.waitFor(() => expect(mebibytes()).toBeLessThan(33), { timeout: 15_000 })
  expect(begun.slice(0, 3).map(({ isClosed }) => isClosed)).toEqual([false, true, true])
  expect(mebibytes()).toBeGreaterThan(28)
  const last = begun.at(-1)?.socket
  last?.write(body.slice(-2))
  expect(String((await once(last as Socket, 'data'))[0])).toContain('HTTP/1.1 201 ')
})
