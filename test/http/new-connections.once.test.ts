/** New connections while the process is busy: it accepts them soon, and the system keeps them until then. */
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { expect, onTestFinished, test, vi } from 'vitest'
import { freeze, thaw } from '../support/freeze.ts'
import { instanceForFile } from '../support/instance.ts'
import { requestText } from '../support/raw.ts'

vi.setConfig({ testTimeout: 60_000 })

const { program: server, key } = await instanceForFile()

const destroyed = (socket: Socket) => {
  onTestFinished(() => void socket.destroy())
  return socket
}
const open = () => destroyed(connect(server.port, '127.0.0.1'))

const queue = () => Number(readFileSync('/proc/sys/net/core/somaxconn', 'utf8'))
test.runIf(process.platform === 'linux' && queue() >= 1_024)(
  'a process that does nothing for a moment loses none of 1,000 new connections',
  async () => {
    const pid = Number(server.child.pid)
    await freeze(pid)
    onTestFinished(() => thaw(pid))
    let connected = 0
    for (let count = 1; count < 1_000; count++) open().on('connect', () => connected++)
    await vi.waitFor(() => expect(connected).toBe(999), 10_000)
    const answer = once(open().end(requestText('GET /healthz')), 'data')
    thaw(pid)
    expect(String(await answer)).toContain(' 200 OK')
  },
)

/** More connections than requests are served in a turn. */
const CROWD = 400

test('connections of a crowd that asks without a pause are accepted before it is answered again and again', async () => {
  const pid = Number(server.child.pid)
  await freeze(pid)
  onTestFinished(() => thaw(pid))
  const ask = requestText(`GET /trpc/${Array(20).fill('getPet')}?batch=1`, { key })
  let answers = 0
  let connected = 0
  for (let count = 0; count < CROWD; count++) {
    const socket = open().on('connect', () => connected++)
    socket.write(ask)
    // Each answer is one piece: its body is short.
    socket.on('data', () => {
      answers++
      socket.write(ask)
    })
  }
  await vi.waitFor(() => expect(connected).toBe(CROWD), 10_000)
  const answer = once(open().end(requestText('GET /healthz')), 'data')
  thaw(pid)
  expect(String(await answer)).toContain(' 200 OK')
  // Its own connection comes last, and so does its request.
  expect(answers).toBeLessThan(2 * CROWD)
})
