/** The stop of the process: signals, exceptions, timeouts, and the database afterwards. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { type AddressInfo, connect, createServer } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { beginCreation } from '../support/creation.ts'
import { engine, newDatabase, type TestDatabase } from '../support/database.ts'
import { eventually, outOfThree } from '../support/eventually.ts'
import { holdWrites } from '../support/hold.ts'
import { startInstance } from '../support/instance.ts'
import { freePort } from '../support/mysql.ts'
import {
  programs,
  runProgram,
  runServer,
  runToEnd,
  type ServerProgram,
} from '../support/process.ts'
import { isListening, keepAlive, requestText } from '../support/raw.ts'
import { keyedFetch } from '../support/rest.ts'
import { createKey } from '../support/service.ts'
import { readSlowly } from '../support/slow-reader.ts'
import { openSql } from '../support/sql.ts'
import { runFirst } from '../support/watched.ts'

// What does not touch the database is the same on both engines.
const testOnce = test.runIf(engine === 'sqlite')

let database: TestDatabase
let key: string
let server: ServerProgram

beforeAll(async () => {
  database = await newDatabase()
  key = await createKey(database.url)
})
afterAll(() => database.remove())

async function start(variables: Record<string, string> = {}): Promise<void> {
  server = await runServer({ DATABASE_URL: database.url, ...variables })
  const started = server
  onTestFinished(async () => void (await started.end()))
}

const get = (path: string, headers?: Record<string, string>) =>
  keyedFetch(server.origin, key)(path, { ...(headers && { headers }) })

/** Opens a keep-alive connection that is idle after a response. */
async function keepConnection() {
  const socket = await keepAlive(server.port)
  return { closed: new Promise((resolve) => socket.resume().once('close', resolve)) }
}

/** Sends a request, and returns a function that reads the response. */
async function readLater(path: string): Promise<() => Promise<string>> {
  return (await readSlowly(server.port, requestText(`GET ${path}`, { key }))).read
}

/** The milliseconds until `work` is done. */
async function timeOf(work: Promise<unknown>): Promise<number> {
  const began = performance.now()
  await work
  return performance.now() - began
}

describe('SIGTERM', () => {
  test.each(['SIGTERM', 'SIGINT'] as const)(
    '%s: requests in flight finish, new connections are refused, the process exits with 0',
    async (signal) => {
      const metricsPort = await freePort()
      await start({ METRICS_PORT: String(metricsPort) })
      const request = await beginCreation(server.port, key)
      // A slow reader of the metrics does not delay the stop.
      const reader = connect(metricsPort, '127.0.0.1').on('error', () => {})
      reader.write('GET /metrics HTTP/1.1\r\n')
      const idle = await keepConnection()
      // Accepted before the following request, and never used.
      const silent = connect(server.port, '127.0.0.1').on('error', () => {})
      await once(silent, 'connect')
      expect((await get('/healthz')).status).toBe(200)
      server.child.kill(signal)
      await server.logged(/Stopping/)
      await idle.closed
      await eventually(async () => expect(await isListening(server.port)).toBe(false))
      // Metrics are served during the stop.
      const metrics = await fetch(`http://127.0.0.1:${metricsPort}/metrics`)
      expect(await metrics.text()).toMatch(/^petstore_requests_total\{/m)
      const answer = await request.finish()
      expect(answer).toMatch(/^HTTP\/1\.1 201 Created/)
      expect(answer).toMatch(/\{"id":\d+,.*\}$/)
      // Long before SHUTDOWN_TIMEOUT: no leftover keeps the process running.
      expect(await timeOf(server.exited)).toBeLessThan(5_000)
      expect(await server.exited).toBe(0)
      expect(server.stderr).not.toContain('cut off')
      silent.destroy()
      // The file alone is the whole database after the stop.
      const file = database.url.slice('sqlite:'.length)
      if (engine === 'sqlite') expect(existsSync(`${file}-wal`)).toBe(false)
      const entries = server
        .entries()
        .map(({ level, msg, operation, path, status }) => [level, msg, operation ?? path, status])
      expect(entries).toEqual([
        ['info', 'request', '/healthz', 200],
        ['info', 'request', '/healthz', 200],
        ['info', 'Stopping: finishing the requests in flight', undefined, undefined],
        ['info', 'request', 'createPet', 201],
        ['info', 'Stopped', undefined, undefined],
      ])
    },
  )

  testOnce('during the start: the start completes, and the process exits with 0', async () => {
    const fresh = await newDatabase()
    onTestFinished(fresh.remove)
    await runToEnd(programs.migrate, { DATABASE_URL: fresh.url })
    // The process will listen, and wait to create the first key.
    const release = await holdWrites(fresh.url)
    const port = await freePort()
    const starting = runProgram(programs.server, { DATABASE_URL: fresh.url, PORT: String(port) })
    onTestFinished(() => void starting.child.kill('SIGKILL'))
    await eventually(async () => expect(await isListening(port)).toBe(true))
    starting.child.kill('SIGTERM')
    await wait(300) // an exit at the signal would come meanwhile
    await release()
    expect(await starting.exited).toBe(0)
    expect(starting.stdout).toMatch(/petstore_[\w-]{43}/)
    expect(starting.stderr).toContain('"Stopped"')
  })

  // As process 1 of a container, a program must handle signals itself to exit at them.
  testOnce.each(['SIGTERM', 'SIGINT'] as const)(
    'before the database answers: at %s the process exits with 0 at once',
    async (signal) => {
      const silent = createServer().listen(0, '127.0.0.1')
      onTestFinished(() => void silent.close())
      await once(silent, 'listening')
      const { port } = silent.address() as AddressInfo
      const starting = runProgram(programs.server, {
        DATABASE_URL: `mysql://root@127.0.0.1:${port}/petstore`,
      })
      onTestFinished(() => void starting.child.kill('SIGKILL'))
      await once(silent, 'connection')
      starting.child.kill(signal)
      expect(await timeOf(starting.exited)).toBeLessThan(3_000)
      expect(await starting.exited).toBe(0)
      expect(starting.stderr).toBe('')
    },
  )

  test('the last uses of keys are stored', async () => {
    const used = await createKey(database.url)
    await start()
    const began = Date.now()
    const answer = await get('/v1/pets', { authorization: `Bearer ${used}` })
    expect(answer.status).toBe(200)
    expect(await server.end('SIGTERM')).toBe(0)
    expect(server.stderr).not.toContain('Could not record when keys wer')
    const { stdout } = await runToEnd(programs.keys, { DATABASE_URL: database.url }, [
      'list',
      '--json',
    ])
    const [last] = JSON.parse(stdout).reverse()
    expect(used.startsWith(last.prefix)).toBe(true)
    expect(Date.parse(last.lastUsedAt)).toBeGreaterThanOrEqual(began)
    expect(Date.parse(last.lastUsedAt)).toBeLessThanOrEqual(Date.now())
  })

  test('a response in progress is sent completely to a slow client', async () => {
    await using sql = await openSql(database.url)
    const row = `('${'\u{1F415}'.repeat(255)}', 3, 'pending')`
    await sql(`insert into pets (name, category_id, status) values ${Array(100).fill(row).join()}`)
    await sql.close()
    const path = '/v1/pets?limit=100&status=pending'
    await start()
    const whole = await (await get(path)).text()
    expect(Buffer.byteLength(whole)).toBeGreaterThan(100_000)
    const read = await readLater(path)
    server.child.kill('SIGTERM')
    await server.logged(/Stopping/)
    await wait(200)
    const answer = await read()
    expect(answer).toMatch(/^HTTP\/1\.1 200 OK\r\n/)
    expect(answer.slice(answer.indexOf('\r\n\r\n') + 4) === whole).toBe(true)
    expect(await timeOf(server.exited)).toBeLessThan(5_000)
    expect(await server.exited).toBe(0)
    expect(server.stderr).not.toContain('cut off')
  })

  testOnce(
    'with SHUTDOWN_DELAY the process keeps serving, and is not ready',
    outOfThree,
    async () => {
      await start({ SHUTDOWN_DELAY: '1s' })
      expect((await get('/readyz')).status).toBe(200)
      const idle = await keepConnection()
      const began = performance.now()
      server.child.kill('SIGTERM')
      await server.logged(/Stopping/)
      const ready = await get('/readyz')
      expect(ready.status).toBe(503)
      expect(await ready.json()).toEqual({
        code: 'SERVICE_UNAVAILABLE',
        message: 'The service is not ready',
        status: 503,
      })
      expect((await get('/healthz')).status).toBe(200)
      expect(await isListening(server.port)).toBe(true)
      for (const path of ['/v1/pets', '/trpc/listPets', '/nothing']) {
        // Keep-alive clients must open a new connection for the next request.
        expect((await get(path)).headers.get('connection'), path).toBe('close')
      }
      // … also clients whose body arrives later.
      expect(await (await beginCreation(server.port, key)).finish()).toMatch(
        /^HTTP\/1\.1 201 .*\r\nConnection: close\r\n/s,
      )
      const answer = await get('/v1/pets')
      expect(answer.status).toBe(200)
      await idle.closed
      expect(await server.exited).toBe(0)
      expect(performance.now() - began).toBeGreaterThan(990)
      const timeLogged = (message: RegExp) =>
        Number(server.entries().find(({ msg }) => message.test(String(msg)))?.time)
      expect(timeLogged(/^Stopped/) - timeLogged(/^Stopping/)).toBeGreaterThan(990)
      expect(timeLogged(/^Stopped/) - timeLogged(/^Stopping/)).toBeLessThan(1_900)
      // Not being ready is not logged as an error.
      const others = server.entries().filter(({ msg }) => msg !== 'request')
      expect(others.map(({ level, msg }) => `${level} ${msg}`)).toEqual([
        'info Stopping: finishing the requests in flight',
        'info Stopped',
      ])
    },
  )

  testOnce(
    'the stop takes at most SHUTDOWN_TIMEOUT, which includes SHUTDOWN_DELAY',
    outOfThree,
    async () => {
      await start({ SHUTDOWN_TIMEOUT: '1500ms', SHUTDOWN_DELAY: '1400ms' })
      await readLater('/docs/')
      server.child.kill('SIGTERM')
      await server.logged(/Stopping/)
      const time = await timeOf(server.exited)
      expect(time).toBeGreaterThan(1_300)
      expect(time).toBeLessThan(2_500)
      expect(await server.exited).toBe(1)
      expect(server.entries().at(-1)).toMatchObject({
        level: 'warn',
        msg: 'The stop did not finish within 1500 ms (SHUTDOWN_TIMEOUT): the rest is cut off',
      })
    },
  )

  testOnce(
    'a request that does not arrive in half of SHUTDOWN_TIMEOUT gets 408, and the process exits with 0',
    outOfThree,
    async () => {
      await start({ SHUTDOWN_TIMEOUT: '3s' })
      const request = await beginCreation(server.port, key)
      server.child.kill('SIGTERM')
      const began = performance.now()
      await request.closed
      expect(performance.now() - began).toBeGreaterThan(1_400)
      expect(await server.exited).toBe(0)
      expect(server.entries().map(({ status }) => status)).toContain(408)
      expect(server.stderr).not.toContain('cut off')
    },
  )

  // At Ctrl-C the terminal signals the whole process group, and npm forwards the same signal.
  testOnce(
    'an immediate repetition of a signal is ignored; a later one ends the process',
    async () => {
      await start()
      const request = await beginCreation(server.port, key)
      server.child.kill('SIGINT')
      await server.logged(/Stopping/)
      server.child.kill('SIGINT')
      await wait(100)
      expect(await request.finish()).toMatch(/^HTTP\/1\.1 201 Created/)
      expect(await server.exited).toBe(0)

      await start()
      await beginCreation(server.port, key)
      server.child.kill('SIGTERM')
      await wait(1_100)
      expect(server.child.exitCode).toBeNull()
      server.child.kill('SIGTERM')
      expect(await timeOf(server.exited)).toBeLessThan(3_000)
      expect(await server.exited).toBe(1)
    },
  )

  testOnce('npm start forwards the signal', async () => {
    const { PATH = '', HOME = '' } = process.env
    const variables = { PORT: '0', DATABASE_URL: database.url }
    const npm = spawn('npm', ['start'], {
      env: { PATH, HOME, ...variables },
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true, // its own process group, to kill all of it
    })
    onTestFinished(() => {
      try {
        process.kill(-Number(npm.pid), 'SIGKILL')
      } catch {} // it has exited, as expected
    })
    let stdout = ''
    let stderr = ''
    npm.stderr.on('data', (chunk) => (stderr += chunk))
    npm.stdout.on('data', (chunk) => (stdout += chunk))
    const port = () => stdout.match(/http:\/\/localhost:(\d+)\/v1\/pets/)?.[1]
    while (port() === undefined) await once(npm.stdout, 'data')
    const request = await beginCreation(Number(port()), key)
    npm.kill('SIGTERM')
    while (!/Stopping/.test(stderr)) await once(npm.stderr, 'data')
    const ended = once(npm, 'close')
    expect(await request.finish()).toMatch(/^HTTP\/1\.1 201 Created/)
    await ended
    expect(stderr).toContain('Stopped')
    expect(await isListening(Number(port()))).toBe(false)
  })
})

describe('SIGTERM ends a hanging process within SHUTDOWN_TIMEOUT', outOfThree, () => {
  describe.runIf(engine === 'mysql')('a hanging database', () => {
    /** Starts a service, uses its database, and then makes that hang. */
    async function startHanging(variables: Record<string, string>) {
      const service = await startInstance(variables, database)
      onTestFinished(async () => void (await service.stop('SIGKILL')))
      for (let round = 0; round < 4; round++) {
        expect((await service.rest('GET', '/pets')).status).toBe(200)
      }
      service.proxy?.stall()
      return service
    }

    test('that loses only the last uses of keys: exit code 0', async () => {
      const { program } = await startHanging({ DATABASE_TIMEOUT: '30s' })
      program.child.kill('SIGTERM')
      expect(await timeOf(program.exited)).toBeLessThan(5_000)
      expect(await program.exited).toBe(0)
      expect(program.stderr).toContain('Could not record when keys wer')
      expect(program.stderr).toContain('"Stopped"')
    })

    test('that requests wait for: exit code 1', async () => {
      const { program, rest } = await startHanging({ SHUTDOWN_TIMEOUT: '1s' })
      const requests = Array.from({ length: 4 }, () =>
        rest('GET', '/pets/1').then(
          () => 'answered',
          () => 'cut off',
        ),
      )
      await wait(100)
      program.child.kill('SIGTERM')
      expect(await timeOf(program.exited)).toBeLessThan(3_000)
      expect(await program.exited).toBe(1)
      expect(program.stderr).toContain('cut off')
      expect(await Promise.all(requests)).toContain('cut off')
    })
  })

  testOnce('a database connection that does not close: exit code 1', async () => {
    const kysely = import.meta.resolve('kysely')
    const fault = `import { Kysely } from '${kysely}'
      const hang = () => { Kysely.prototype.destroy = () => new Promise(() => {}) }
      process.once('SIGTERM', hang)`
    await start({ SHUTDOWN_TIMEOUT: '1s', ...runFirst(fault) })
    expect((await get('/v1/pets')).status).toBe(200)
    server.child.kill('SIGTERM')
    expect(await timeOf(server.exited)).toBeLessThan(3_000)
    expect(await server.exited).toBe(1)
    expect(server.stderr).toContain('cut off')
  })
})

testOnce.each(['SIGHUP', 'SIGUSR2'] as const)('%s stops as SIGTERM does', async (signal) => {
  await start()
  const request = await beginCreation(server.port, key)
  server.child.kill(signal)
  await server.logged(/Stopping/)
  expect(await request.finish()).toMatch(/^HTTP\/1\.1 201 Created/)
  expect(await server.exited).toBe(0)
})

testOnce('a port in use fails the start with a message', async () => {
  await start()
  const port = String(server.port)
  const variables = { DATABASE_URL: database.url }
  const busy = runProgram(programs.server, { ...variables, PORT: port })
  expect(await busy.exited).toBe(1)
  expect(busy.stderr).toContain(
    `PORT: cannot listen on ${port} (EADDRINUSE): another program listens there; set another port, or 0 for any that is free\n`,
  )
  expect(busy.stderr).not.toContain('    at ')
  const metrics = runProgram(programs.server, { ...variables, PORT: '0', METRICS_PORT: port })
  expect(await metrics.exited).toBe(1)
  expect(metrics.stderr).toContain(
    `METRICS_PORT: cannot listen on ${port} of 127.0.0.1 (EADDRINUSE): another program listens there; set another port, or 0 for any that is free\n`,
  )
  expect(metrics.stderr).not.toContain('    at ')
  expect((await get('/healthz')).status).toBe(200)
})

testOnce('a port that may not be listened on fails the start with its error code', async () => {
  const fault = `import { Server } from 'node:net'
    Server.prototype.listen = function () {
      const error = Object.assign(new Error('listen EACCES'), { code: 'EACCES' })
      setImmediate(() => this.emit('error', error))
      return this
    }`
  const ended = await runToEnd(programs.server, {
    DATABASE_URL: database.url,
    PORT: '80',
    ...runFirst(fault),
  })
  expect(ended).toEqual({
    code: 1,
    stdout: '',
    stderr: 'PORT: cannot listen on 80 (EACCES)\n',
  })
})

test.runIf(engine === 'sqlite').each([
  ['exception', `throw new Error('boom')`],
  ['rejection', `void Promise.reject(new Error('boom'))`],
])('an uncaught %s: requests in flight finish, and the process exits with 1', async (_, code) => {
  const fault = `process.on('SIGCONT', () => { ${code} })`
  await start(runFirst(fault))
  const request = await beginCreation(server.port, key)
  server.child.kill('SIGCONT')
  const line = await server.logged(/Uncaught exception/)
  expect(JSON.parse(line)).toMatchObject({ level: 'fatal', err: { message: 'boom' } })
  server.child.kill('SIGCONT') // a second one changes nothing
  const reports = () => server.entries().filter(({ level }) => level === 'fatal')
  await eventually(() => expect(reports()).toHaveLength(2))
  expect(await request.finish()).toMatch(/^HTTP\/1\.1 201 Created/)
  expect(await timeOf(server.exited)).toBeLessThan(5_000)
  expect(await server.exited).toBe(1)
  expect(server.stderr).not.toContain('cut off')
})

test('the database has exactly the acknowledged creations', async () => {
  await using sql = await openSql(database.url)
  const count = async () => Number((await sql('select count(*) as n from pets'))[0]?.n)
  const before = await count()
  await start()
  const request = await beginCreation(server.port, key)
  const aborted = await beginCreation(server.port, key)
  server.child.kill('SIGTERM')
  await server.logged(/Stopping/)
  aborted.leave()
  await request.finish()
  expect(await server.exited).toBe(0)
  expect(await count()).toBe(before + 1)
})
