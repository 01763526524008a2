/** Clients that do not read responses: no further requests are served, and memory is bounded. */
import type { Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { procedure, router } from '../../src/procedure/procedure.ts'
import { eventually } from '../support/eventually.ts'
import { expectServing } from '../support/expect.ts'
import { described, resourcesOf } from '../support/procedures.ts'
import { requestText, unreadAnswer } from '../support/raw.ts'
import { type Service, startService } from '../support/service.ts'

const served = router({
  large: procedure
    .meta(described('GET', '/large', { example: '' }))
    .input(z.object({}))
    .output(z.string())
    .query(async () => 'x'.repeat(12 * 1024 * 1024)), // a third of the limit
})

const docs = 'GET /docs/ HTTP/1.1\r\nHost: x\r\nX-Request-Id: unread\r\n\r\n'

let service: Service
let sockets: Socket[]
beforeEach(async () => {
  service = await startService()
  sockets = []
})
afterEach(async () => {
  for (const socket of sockets) socket.destroy()
  await service.stop()
})

/** Opens a client that never reads; resolves when the server holds a part of a response. */
async function silentReader(request: string) {
  const reader = await unreadAnswer(service.origin, request)
  sockets.push(reader.socket)
  return reader
}

// Not once(), which would reject with the error before the close.
const closeOf = (socket: Socket) => new Promise((resolve) => socket.once('close', resolve))

const requests = () => service.logged.filter((line) => /"requestId":"unread"/.test(line)).length

test('requests behind an unread response are not served, and the connection closes', async () => {
  const { socket, sent } = await silentReader(docs)
  socket.write(docs.repeat(50))
  await expectServing(service)
  expect((await text(socket)).match(/^HTTP\/1\.1 200 OK\r\n/gm)).toHaveLength(sent)
  expect(requests()).toBe(sent)
})

test('a client that sends hundreds of requests before it reads an answer is disconnected', async () => {
  const { socket, served } = await silentReader(docs)
  const dropped = closeOf(served)
  socket.write(docs.repeat(200))
  await dropped
  await expectServing(service)
})

describe('large responses', () => {
  const large = () => silentReader(requestText('GET /v1/large', { key: service.key }))
  beforeEach(async () => {
    await service.stop()
    service = await startService({}, { resources: resourcesOf(served) })
  })

  test('unsent ones count as memory: the connection that is idle for longest is dropped', async () => {
    const read = await large()
    read.socket.resume()
    await eventually(() => expect(read.served.writableLength).toBe(0))
    const [first, second] = [await large(), await large()]
    const dropped = closeOf(first.served)
    const third = await large()
    await dropped
    const kept = [read, second, third] // the first one holds nothing
    expect(kept.map(({ served }) => served.destroyed)).toEqual([false, false, false])
  })

  test.for<[string, (socket: Socket) => unknown]>([
    ['are read in full', (socket) => socket.resume()],
    ['are lost with their connection', (socket) => socket.destroy()],
  ])('those that %s no longer count as memory', async ([, finish]) => {
    const first = await large()
    for (let round = 0; round < 3; round++) {
      const { socket, served } = await large()
      finish(socket)
      await eventually(() => expect(served.destroyed || served.writableLength === 0).toBe(true))
    }
    expect(first.served.destroyed).toBe(false)
  })
})

test('a stop sends the whole response to a slow client', async () => {
  const { socket, served, sent } = await silentReader(docs)
  const stopping = service.stop()
  expect(served.destroyed).toBe(false)
  const received = await text(socket)
  const lengths = [...received.matchAll(/^Content-Length: (\d+)\r\n/gm)].map(([, length]) => length)
  expect(lengths).toHaveLength(sent)
  const bodies = received.split(/^HTTP\/1\.1 200 OK\r\n.*?\r\n\r\n/ms).slice(1)
  expect(bodies.map((body) => String(Buffer.byteLength(body)))).toEqual(lengths)
  await stopping
  service = await startService() // for afterEach, which stops it
})
