/** New connections while the process is busy: it accepts them soon, and the system keeps them until then. */
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { afterAll, expect, onTestFinished, test, vi } from 'vitest'
import { newDatabase } from '../support/database.ts'
import { freeze, thaw } from '../support/freeze.ts'
import { runServer, type ServerProgram } from '../support/process.ts'
import { keepAlive, requestText } from '../support/raw.ts'

vi.setConfig({ testTimeout: 60_000 })

const database = await newDatabase()
const server = await runServer({ DATABASE_URL: database.url })
afterAll(async () => {
  await server.end()
  await database.remove()
})

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

/** Starts a service of its own that may have this number of open files. */
async function startLimited(files: number): Promise<ServerProgram> {
  const own = await newDatabase()
  const start = ['prlimit', `--nofile=${files}:${files}`]
  const limited = await runServer({ DATABASE_URL: own.url }, undefined, start)
  onTestFinished(async () => {
    await limited.end()
    await own.remove()
  })
  return limited
}

test.runIf(process.platform === 'linux')(
  'more connections than open files: the log says it, and those that are open are served',
  async () => {
    const limited = await startLimited(256)
    const first = destroyed(await keepAlive(limited.port))
    let closed = 0
    for (let number = 0; number < 400; number++) {
      const socket = destroyed(connect(limited.port, '127.0.0.1'))
      socket.on('error', () => {}).on('close', () => closed++)
    }
    await limited.logged(/New connections were closed/)
    await vi.waitFor(() => expect(closed).toBeGreaterThan(200), 10_000)
    const message =
      'New connections were closed: the process may not have more open files (ulimit -n)'
    const reports = () => limited.entries().filter(({ msg }) => msg === message)
    const counts = () => reports().map(({ connections }) => Number(connections))
    await vi.waitFor(
      () => expect(counts().reduce((sum, count) => sum + count, 0)).toBe(closed),
      10_000,
    )
    expect(new Set(reports().map(({ level }) => level))).toEqual(new Set(['error']))
    expect(reports().length, 'one entry a second').toBeLessThan(20)
    first.write(requestText('GET /v1/openapi.json')) // reads files
    const [answer] = await once(first, 'data')
    expect(String(answer)).toMatch(/^HTTP\/1\.1 200 /)
    expect(closed, '192 of the files are for connections').toBeLessThan(230)
  },
)
