/** health.ts, which a container asks. */
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import path from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { newDatabase, newFolder } from '../support/database.ts'
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

test('reaches the process on a port that fetch refuses, through no proxy, by the environment before .env', async () => {
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
  const folder = newFolder()
  writeFileSync(path.join(folder, '.env'), 'PORT=9\nLISTEN_HOST=192.0.2.1\n')
  const variables = { ...proxy, PORT, LISTEN_HOST: '' }
  expect(await runToEnd(programs.health, variables, [], folder)).toEqual({
    ...{ code: 0, stdout: '', stderr: '' },
  })
})

test.each([
  ['where nothing listens', () => refusedPort()],
  ['with a variable that the service refuses', () => 'abc'],
])('fails %s', async (_, portOf) => {
  const PORT = `${await portOf()}`
  expect(await runToEnd(programs.health, { PORT })).toEqual({ code: 1, stdout: '', stderr: '' })
})
