/** Answers that are not taken: nothing is done beyond them, and what the server holds is bounded. */
import type { Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { eventually } from '../../support/eventually.ts'
import { expectServing } from '../../support/expect.ts'
import { unreadAnswer } from '../../support/raw.ts'
import { type Service, startService } from '../../support/service.ts'

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

/** A client that sends this and never reads, until the server holds a part of an answer. */
async function silentReader(request: string) {
  const reader = await unreadAnswer(service.origin, request)
  sockets.push(reader.socket)
  return reader
}

// Not once(): that would fail with the error that comes before.
const closeOf = (socket: Socket) => new Promise((resolve) => socket.once('close', resolve))

const requests = () => service.logged.filter((line) => /"requestId":"unread"/.test(line)).length

test('a request behind an answer that is not taken is not done, and the connection is closed', async () => {
  const { socket, sent } = await silentReader(docs)
  socket.write(docs.repeat(10))
  await expectServing(service)
  expect((await text(socket)).match(/^HTTP\/1\.1 200 OK\r\n/gm)).toHaveLength(sent)
  expect(requests()).toBe(sent)
})

test('requests that come too early count for what they hold: those that stand still for longest are dropped', async () => {
  const [first, second] = [await silentReader(docs), await silentReader(docs)]
  const dropped = closeOf(first.served)
  for (const { socket, served } of [first, second]) {
    const before = served.bytesRead
    socket.write('GET / HTTP/1.1\r\n\r\n'.repeat(3_000)) // one packet of what Node reads at once
    await eventually(() => expect(served.bytesRead).toBeGreaterThan(before))
  }
  await dropped
  expect(second.served.destroyed).toBe(false)
  await expectServing(service)
})

test('an answer that a slow client is still reading is sent whole when the server stops', async () => {
  const { socket, served, sent } = await silentReader(docs)
  const stopping = service.stop()
  expect(served.destroyed).toBe(false)
  const received = await text(socket)
  const lengths = [...received.matchAll(/^Content-Length: (\d+)\r\n/gm)].map(([, length]) => length)
  expect(lengths).toHaveLength(sent)
  const bodies = received.split(/^HTTP\/1\.1 200 OK\r\n.*?\r\n\r\n/ms).slice(1)
  expect(bodies.map((body) => String(Buffer.byteLength(body)))).toEqual(lengths)
  await stopping
  service = await startService() // for what stops it after each test
})
