/** The process: how it stops, and what it says of itself. */
import { once } from 'node:events'
import { connect as connectSocket } from 'node:net'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { connect } from '../db/connect.ts'
import { migrate } from '../db/migrate.ts'
import { createKey } from '../src/keys/store.ts'
import { engine, newDatabase, type TestDatabase } from './support/database.ts'
import { freePort } from './support/mysql.ts'
import { runProgram, runServer, type ServerProgram } from './support/process.ts'

let database: TestDatabase
let key: string
let server: ServerProgram

beforeEach(async () => {
  database = await newDatabase()
  const db = connect(database.url)
  await migrate(db)
  key = (await createKey(db, 'test')).key
  await db.destroy()
})

afterEach(async () => {
  server.child.kill('SIGKILL')
  await server.exited
  await database.remove()
})

async function start(variables: Record<string, string> = {}): Promise<void> {
  server = await runServer({ DATABASE_URL: database.url, ...variables })
}

const get = (path: string, headers: Record<string, string> = {}) =>
  fetch(`${server.origin}${path}`, { headers: { authorization: `Bearer ${key}`, ...headers } })

/** A creation whose last byte is not sent yet. */
async function unfinished() {
  const body = JSON.stringify({ name: 'Rex', categoryId: 3 })
  const socket = connectSocket(server.port, '127.0.0.1')
  await once(socket, 'connect')
  socket.write(
    `POST /v1/pets HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body.slice(0, -1)}`,
  )
  let received = ''
  socket.on('data', (chunk) => (received += chunk))
  const closed = once(socket, 'close')
  await new Promise((resolve) => setTimeout(resolve, 100)) // it is with the server now
  return {
    async finish() {
      socket.write('}')
      await closed
      return received
    },
    closed,
  }
}

describe('SIGTERM', () => {
  test('finishes what is in flight, takes nothing new, and exits with 0', async () => {
    await start()
    const request = await unfinished()
    server.child.kill('SIGTERM')
    await server.logged(/Stopping/)
    await expect(get('/healthz')).rejects.toThrow()
    expect(await request.finish()).toMatch(/^HTTP\/1.1 201 Created/)
    expect(await server.exited).toBe(0)
    expect(server.stderr).not.toContain('cut off')
  })

  test('with SHUTDOWN_DELAY it serves on, and says that it is not ready', async () => {
    await start({ SHUTDOWN_DELAY: '1s' })
    expect((await get('/readyz')).status).toBe(200)
    server.child.kill('SIGTERM')
    await server.logged(/Stopping/)
    const ready = await get('/readyz')
    expect(ready.status).toBe(503)
    expect(await ready.json()).toMatchObject({ code: 'SERVICE_UNAVAILABLE', status: 503 })
    const answer = await get('/v1/pets')
    expect([answer.status, answer.headers.get('connection')]).toEqual([200, 'close'])
    expect(await server.exited).toBe(0)
  })

  test('does not wait longer than SHUTDOWN_TIMEOUT', async () => {
    await start({ SHUTDOWN_TIMEOUT: '300ms' })
    const request = await unfinished()
    server.child.kill('SIGTERM')
    expect(await server.exited).toBe(0)
    await request.closed
    expect(server.stderr).toContain('cut off')
  })

  test('a second signal ends it at once', async () => {
    await start()
    await unfinished()
    server.child.kill('SIGTERM')
    await server.logged(/Stopping/)
    server.child.kill('SIGTERM')
    expect(await server.exited).toBe(1)
  })
})

test.each(engine === 'mysql' ? ['1', '2'] : ['1'])(
  'with %s WORKERS, a port that is taken stops the start in words',
  async (workers) => {
    await start()
    const port = String(server.port)
    const variables = { DATABASE_URL: database.url, WORKERS: workers }
    const busy = runProgram('src/server.ts', { ...variables, PORT: port })
    expect(await busy.exited).toBe(1)
    expect(busy.stderr).toContain(`PORT: cannot listen on ${port} (EADDRINUSE)\n`)
    expect(busy.stderr).not.toContain('    at ')
    const metrics = runProgram('src/server.ts', { ...variables, PORT: '0', METRICS_PORT: port })
    expect(await metrics.exited).toBe(1)
    expect(metrics.stderr).toContain(`METRICS_PORT: cannot listen on 127.0.0.1:${port}`)
    expect(metrics.stderr).not.toContain('    at ')
  },
)

test('an exception that nobody caught: what is in flight is finished, then it ends with 1', async () => {
  const fault = `process.on('SIGUSR2', () => { throw new Error('boom') })`
  await start({ NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(fault)}` })
  const request = await unfinished()
  server.child.kill('SIGUSR2')
  const line = await server.logged(/Uncaught exception/)
  expect(JSON.parse(line)).toMatchObject({ level: 60, err: { message: 'boom' } })
  expect(await request.finish()).toMatch(/^HTTP\/1.1 201 Created/)
  expect(await server.exited).toBe(1)
})

describe('the log', () => {
  test('has one line of JSON a request, with its id, and neither key nor body', async () => {
    await start()
    const answer = await get('/v1/pets?status=sold', { 'x-request-id': 'report-7' })
    expect(answer.headers.get('x-request-id')).toBe('report-7')
    const line = await server.logged(/report-7/)
    expect(JSON.parse(line)).toMatchObject({
      msg: 'request',
      requestId: 'report-7',
      surface: 'rest',
      operation: 'listPets',
      method: 'GET',
      status: 200,
      keyId: '1',
      duration: expect.any(Number),
    })
    expect(server.stderr).not.toContain(key)
    expect(server.stderr).not.toContain('sold')
  })

  test('takes no X-Request-Id that is not sane', async () => {
    await start()
    for (const id of ['', 'two words', 'x'.repeat(129), '{"a":1}']) {
      const answer = await get('/v1/pets', { 'x-request-id': id })
      expect(answer.headers.get('x-request-id')).toMatch(/^[\da-f-]{36}$/)
    }
  })

  test('names the tRPC procedure', async () => {
    await start()
    await get('/trpc/listPets', { 'x-request-id': 'one' })
    await get('/trpc/listPets,getPet?batch=1', { 'x-request-id': 'two' })
    await get('/trpc/nothing', { 'x-request-id': 'three' })
    const operation = async (id: string) =>
      JSON.parse(await server.logged(new RegExp(`"requestId":"${id}"`))).operation
    expect(await operation('one')).toBe('listPets')
    expect(await operation('two')).toBe('batch')
    expect(await operation('three')).toBe('unknown')
  })
})

test('the metrics count requests, look-ups and connections, on a port of their own', async () => {
  const metricsPort = await freePort()
  await start({ METRICS_PORT: String(metricsPort) })
  await get('/v1/pets')
  await get('/v1/pets/1')
  const answer = await fetch(`http://127.0.0.1:${metricsPort}/metrics`)
  expect(answer.headers.get('content-type')).toMatch('text/plain')
  const text = await answer.text()
  expect(text).toContain(
    'petstore_requests_total{surface="rest",operation="listPets",status="200"} 1',
  )
  expect(text).toContain(
    'petstore_requests_total{surface="rest",operation="getPet",status="404"} 1',
  )
  expect(text).toContain('petstore_key_lookups_total{cache="miss"} 1')
  expect(text).toContain('petstore_key_lookups_total{cache="hit"} 1')
  expect(text).toMatch(/^petstore_database_connections_used 0$/m)
  expect(text).toMatch(/^nodejs_eventloop_lag_seconds /m)
  expect((await get('/metrics')).status).toBe(404)
})

describe.runIf(engine === 'mysql')('with WORKERS', () => {
  const workers = (variables = {}) => start({ WORKERS: '2', ...variables })

  test('serves, adds up the metrics, and stops in order', async () => {
    const metricsPort = await freePort()
    await workers({ METRICS_PORT: String(metricsPort) })
    await Promise.all(Array.from({ length: 10 }, () => get('/v1/pets', { connection: 'close' })))
    const text = await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text()
    expect(text).toContain(
      'petstore_requests_total{surface="rest",operation="listPets",status="200"} 10',
    )
    server.child.kill('SIGTERM')
    expect(await server.exited).toBe(0)
    await expect(get('/healthz')).rejects.toThrow()
  })

  test('finishes what is in flight when the primary process is killed', async () => {
    await workers()
    const request = await unfinished()
    server.child.kill('SIGKILL')
    expect(await request.finish()).toMatch(/^HTTP\/1.1 201 Created/)
  })

  test('replaces a worker that dies', async () => {
    await workers()
    await get('/v1/pets', { 'x-request-id': 'before' })
    const { pid } = JSON.parse(await server.logged(/before/))
    expect(pid).not.toBe(server.child.pid)
    process.kill(pid, 'SIGKILL')
    await server.logged(/A worker died/)
    expect((await get('/v1/pets')).status).toBe(200)
    server.child.kill('SIGINT')
    expect(await server.exited).toBe(0)
  })
})
