/** REUSE_PORT: several processes on one port. */
import { expect, onTestFinished, test } from 'vitest'
import { newDatabase } from '../support/database.ts'
import { freePort } from '../support/mysql.ts'
import { failToStart, runServer, type ServerProgram } from '../support/process.ts'
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
