/** Answers that nobody takes: nothing is produced beyond them, and what waits is bounded. */
import { connect, type Socket } from 'node:net'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { accepted } from '../support/accepted.ts'
import { expectServing } from '../support/expect.ts'
import { type Service, startService } from '../support/service.ts'

const docs = 'GET /docs/ HTTP/1.1\r\nHost: x\r\n\r\n'

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

/** A client that sends and never reads, with the server's side of it. */
async function silentReader(text: string): Promise<{ socket: Socket; served: Socket }> {
  const serving = accepted()
  const socket = connect(Number(new URL(service.origin).port), '127.0.0.1')
  socket.on('error', () => {}).pause()
  sockets.push(socket)
  const served = await serving
  await new Promise((resolve) => socket.write(text, resolve))
  return { socket, served }
}

// Not once(): that would fail with the error that comes before.
const closeOf = (socket: Socket) => new Promise((resolve) => socket.once('close', resolve))

const requests = () => service.logged.filter((line) => /"msg":"request"/.test(line)).length

test('the next request is begun when the answer before it was taken', async () => {
  const { socket, served } = await silentReader(docs.repeat(500))
  await expectServing(service)
  await expectServing(service)
  const dropped = closeOf(served)
  socket.destroy()
  await dropped
  await expectServing(service)
  // A few answers fit into what lies between two sockets; 500 would be some 20 MB.
  expect(requests()).toBeLessThan(250)
})

test('of those that wait too long in too large a crowd the first are dropped', async () => {
  const many = docs.repeat(1_100) // fits into one packet of what Node reads at once
  const first = await silentReader(many)
  const dropped = closeOf(first.served)
  const others = []
  for (let index = 0; index < 5; index++) others.push(await silentReader(many))
  await dropped
  expect(others.at(-1)?.served.destroyed).toBe(false)
  await expectServing(service)
})
