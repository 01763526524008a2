/** REUSE_PORT: several processes on one port. */
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { newDatabase } from '../support/database.ts'
import { freeze, thaw } from '../support/freeze.ts'
import { freePort } from '../support/mysql.ts'
import { failToStart, runServer, type ServerProgram } from '../support/process.ts'
import { firstLine, requestText } from '../support/raw.ts'
import { keyedFetch } from '../support/rest.ts'
import { createKey } from '../support/service.ts'

test.runIf(process.platform === 'linux')(
  'three processes share the connections of one port, and those that stay go on serving it',
  async () => {
    const database = await newDatabase()
    onTestFinished(database.remove)
    const key = await createKey(database.url)
    const PORT = String(await freePort())
    const variables = { DATABASE_URL: database.url, PORT, REUSE_PORT: 'true' }
    const servers: ServerProgram[] = []
    for (let started = 0; started < 3; started++) {
      const server = await runServer(variables)
      onTestFinished(async () => void (await server.end()))
      servers.push(server)
    }
    const [first] = servers as [ServerProgram]
    const call = keyedFetch(first.origin, key)
    // Each request opens a connection.
    const callMany = async () => {
      for (let round = 0; round < 60; round++) {
        const answer = await call('/v1/pets', { headers: { connection: 'close' } })
        expect(answer.status).toBe(200)
        await answer.arrayBuffer()
      }
    }
    await callMany()
    expect(await first.end('SIGTERM')).toBe(0)
    await callMany()
    const without = { ...variables, REUSE_PORT: 'false' }
    const alone = await failToStart(without)
    expect(alone).toMatchObject({ code: 1, message: expect.stringContaining('EADDRINUSE') })

    for (const server of servers.slice(1)) expect(await server.end('SIGTERM')).toBe(0)
    const counts = servers.map(
      ({ entries }) => entries().filter(({ operation }) => operation === 'listPets').length,
    )
    expect(Math.min(...counts)).toBeGreaterThan(0)
    expect(counts.reduce((sum, count) => sum + count)).toBe(120)
  },
)

/** Linux, where a process that stops may leave its waiting connections to the others on its port. */
const MIGRATE = '/proc/sys/net/ipv4/tcp_migrate_req'

/** Whether this process may change that setting: not in every container. */
function mayMigrate(): boolean {
  try {
    writeFileSync(MIGRATE, readFileSync(MIGRATE))
    return true
  } catch {
    return false
  }
}

test.runIf(mayMigrate())(
  'a process that stops answers each connection that it has accepted, and leaves the others to the next process',
  async () => {
    const before = readFileSync(MIGRATE)
    writeFileSync(MIGRATE, '1')
    onTestFinished(() => writeFileSync(MIGRATE, before))
    const database = await newDatabase()
    onTestFinished(database.remove)
    const PORT = String(await freePort())
    const variables = { DATABASE_URL: database.url, PORT, REUSE_PORT: 'true' }
    const stopping = await runServer(variables)
    const staying = await runServer(variables)
    onTestFinished(async () => void (await Promise.all([stopping.end(), staying.end()])))
    const [first, second] = [Number(stopping.child.pid), Number(staying.child.pid)]
    await freeze(first)
    await freeze(second)
    const calls = Array.from({ length: 20 }, async () => {
      const socket = connect(Number(PORT), '127.0.0.1')
      await once(socket, 'connect')
      socket.write(requestText('GET /healthz', { headers: ['Connection: close'] }))
      return socket
    })
    const answers = (await Promise.all(calls)).map(firstLine)
    stopping.child.kill('SIGTERM')
    thaw(first)
    expect(await stopping.exited).toBe(0)
    thaw(second)
    expect(await Promise.all(answers)).toEqual(Array(20).fill('HTTP/1.1 200 OK'))
  },
)
