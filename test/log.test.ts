/** The log is written in batches, and nothing of it is lost when the process ends. */
import { afterEach, expect, test } from 'vitest'
import { newDatabase, type TestDatabase } from './support/database.ts'
import { runServer, type ServerProgram } from './support/process.ts'
import { converse } from './support/raw.ts'

let database: TestDatabase
let server: ServerProgram
afterEach(async () => {
  server.child.kill('SIGKILL')
  await server.exited
  await database.remove()
})

async function start(variables: Record<string, string> = {}): Promise<void> {
  database = await newDatabase()
  server = await runServer({ DATABASE_URL: database.url, ...variables })
}

const ask = async (count: number) => {
  for (let index = 0; index < count; index++) await fetch(`${server.origin}/healthz`)
}

const requests = () => server.stderr.split('\n').filter((line) => /"msg":"request"/.test(line))

test('a single entry does not wait for others', async () => {
  await start()
  await ask(1)
  await server.logged(/"msg":"request"/)
})

test('each entry is a line of its own, and a stop loses none', async () => {
  await start()
  await ask(200)
  server.child.kill('SIGTERM')
  expect(await server.exited).toBe(0)
  expect(requests()).toHaveLength(200)
  for (const line of server.stderr.trim().split('\n')) JSON.parse(line)
  expect(server.stderr).toMatch(/"msg":"Stopped"/)
})

test('a log that nobody reads does not fill the memory: what comes then is dropped', async () => {
  await start()
  const { child } = server
  child.stderr?.pause()
  // 30 MB of entries, each with its path.
  const path = `/${'x'.repeat(15_000)}`
  const request = `GET ${path} HTTP/1.1\r\nHost: petstore.example\r\n\r\n`
  for (let round = 0; round < 20; round++) {
    const { answers } = await converse(server.origin, Array(100).fill(request), {
      expected: 100,
      inTurn: true,
      patience: 60_000,
    })
    expect(answers.map(({ status }) => status)).toEqual(Array(100).fill(404))
  }
  child.stderr?.resume()
  child.kill('SIGTERM')
  expect(await server.exited).toBe(0)
  expect(requests().length).toBeGreaterThan(500)
  expect(server.stderr.length).toBeLessThan(22_000_000)
})

test('a second signal, which ends the process at once, loses none', async () => {
  await start({ SHUTDOWN_DELAY: '20s', SHUTDOWN_TIMEOUT: '30s' })
  await ask(20)
  server.child.kill('SIGTERM')
  await server.logged(/Stopping/)
  await ask(3)
  server.child.kill('SIGTERM')
  expect(await server.exited).toBe(1)
  expect(requests()).toHaveLength(23)
})
