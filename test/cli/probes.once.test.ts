/** health.ts, which a container asks, and ready.ts, for which systemd waits. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer as createHttpServer } from 'node:http'
import { type AddressInfo, createServer } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { newDatabase } from '../support/database.ts'
import { programs, runServer, runToEnd } from '../support/process.ts'

const isFree = (port: number) =>
  new Promise<boolean>((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen(port, () => server.close(() => resolve(true)))
  })

/** A free port that `fetch` refuses (https://fetch.spec.whatwg.org/#port-blocking). */
async function refusedPort(): Promise<number> {
  for (const port of [6000, 6566, 6665, 6666, 6667, 6668, 6669, 6697, 10_080]) {
    if (await isFree(port)) return port
  }
  throw new Error('None of these ports is free')
}

test('both reach the process on a port that fetch refuses, and through no proxy', async () => {
  const database = await newDatabase()
  onTestFinished(database.remove)
  const PORT = `${await refusedPort()}`
  await expect(fetch(`http://127.0.0.1:${PORT}/readyz`)).rejects.toHaveProperty(
    'cause.message',
    'bad port',
  )
  const server = await runServer({ DATABASE_URL: database.url, PORT })
  onTestFinished(async () => void (await server.end()))
  const proxy = { NODE_USE_ENV_PROXY: '1', HTTP_PROXY: 'http://127.0.0.1:9' }
  const variables = { ...proxy, PORT, MAINPID: `${server.child.pid}` }
  for (const program of [programs.health, programs.ready]) {
    expect(await runToEnd(program, variables), program).toEqual({ code: 0, stdout: '', stderr: '' })
  }
})

test.each([
  ['where nothing listens', () => refusedPort()],
  ['with a variable that the service refuses', () => 'abc'],
])('%s, health fails, and ready waits for the end of the process', async (_, portOf) => {
  const PORT = `${await portOf()}`
  const main = spawn('sleep', ['1'])
  const failed = { code: 1, stdout: '', stderr: '' }
  expect(await runToEnd(programs.health, { PORT })).toEqual(failed)
  expect(await runToEnd(programs.ready, { PORT, MAINPID: `${main.pid}` })).toEqual(failed)
  expect(main.exitCode).toBe(0)
})

test('ready fails where another program answers with 200, and the process has ended', async () => {
  const other = createHttpServer((_, res) => res.end()).listen(0, '127.0.0.1')
  onTestFinished(() => void other.close())
  await once(other, 'listening')
  const { port } = other.address() as AddressInfo
  const main = spawn('true')
  await once(main, 'exit')
  const variables = { METRICS_PORT: `${port}`, MAINPID: `${main.pid}` }
  expect(await runToEnd(programs.ready, variables)).toEqual({ code: 1, stdout: '', stderr: '' })
})
