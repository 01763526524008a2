/** What stops a process: signals, exceptions, timeouts, ports in use. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { afterAll, expect, onTestFinished, test } from 'vitest'
import { connect } from '../../db/connect.ts'
import { migrate } from '../../db/migrate.ts'
import { TITLE } from '../../src/config/product.ts'
import { beginCreation } from '../support/creation.ts'
import { newDatabase } from '../support/database.ts'
import { holdWrites } from '../support/hold.ts'
import { until } from '../support/instance.ts'
import { freePort } from '../support/mysql.ts'
import {
  failToStart,
  type Program,
  programs,
  runProgram,
  runServer,
  type ServerProgram,
} from '../support/process.ts'
import { isListening, keepAlive, requestText } from '../support/raw.ts'
import { keyedFetch } from '../support/rest.ts'
import { createKey } from '../support/service.ts'
import { readSlowly } from '../support/slow-reader.ts'
import { openSql } from '../support/sql.ts'
import { runFirst } from '../support/watched.ts'

const database = await newDatabase()
const DATABASE_URL = database.url
const key = await createKey(DATABASE_URL)
afterAll(database.remove)

async function start(variables: Record<string, string> = {}): Promise<ServerProgram> {
  const server = await runServer({ DATABASE_URL, ...variables })
  onTestFinished(async () => void (await server.end()))
  return server
}

function starting(variables: Record<string, string>): Program {
  const program = runProgram(programs.server, variables)
  onTestFinished(async () => void (await program.end()))
  return program
}

/** The milliseconds between the log entries with these messages, by the clock of the process. */
function between({ entries }: Program, first: RegExp, second: RegExp): number {
  const timeOf = (pattern: RegExp) =>
    Number(entries().find((entry) => pattern.test(JSON.stringify(entry)))?.time)
  return timeOf(second) - timeOf(first)
}

const created = expect.stringMatching(/^HTTP\/1\.1 201 Created/)

test('SIGTERM during the start: the start completes, and the process exits with 0', async () => {
  const fresh = await newDatabase()
  onTestFinished(fresh.remove)
  const db = await connect(fresh.url)
  await migrate(db)
  await db.destroy()
  // The process will listen, and wait to create the first key.
  const release = await holdWrites(fresh.url)
  const port = await freePort()
  const program = starting({ DATABASE_URL: fresh.url, PORT: String(port) })
  await until('it listens', () => isListening(port))
  program.child.kill('SIGTERM')
  expect((await fetch(`http://127.0.0.1:${port}/healthz`)).status).toBe(200)
  await release()
  expect(await program.exited).toBe(0)
  expect(program.stdout).toMatch(/petstore_[\w-]{43}/)
  expect(program.stderr).toContain('"Stopped"')
})

// As process 1 of a container, a program must handle signals itself to exit at them.
test.each(['SIGTERM', 'SIGINT'] as const)(
  '%s before the database answers: the process exits with 0 at once',
  async (signal) => {
    const silent = createServer().listen(0, '127.0.0.1')
    onTestFinished(() => void silent.close())
    await once(silent, 'listening')
    const { port } = silent.address() as AddressInfo
    const program = starting({ DATABASE_URL: `mysql://root@127.0.0.1:${port}/petstore` })
    await once(silent, 'connection')
    expect(await program.end(signal)).toBe(0)
    expect(program.stderr).toBe('')
  },
)

test('a response in progress is sent completely to a slow client', async () => {
  await using sql = await openSql(DATABASE_URL)
  const row = `('${'\u{1F415}'.repeat(255)}', 3, 'pending')`
  await sql(`insert into pets (name, category_id, status) values ${Array(100).fill(row).join()}`)
  const path = '/v1/pets?limit=100&status=pending'
  const server = await start()
  const whole = await (await keyedFetch(server.origin, key)(path)).text()
  expect(Buffer.byteLength(whole)).toBeGreaterThan(100_000)
  const { read } = await readSlowly(server.port, requestText(`GET ${path}`, { key }))
  server.child.kill('SIGTERM')
  await until('new connections are refused', async () => !(await isListening(server.port)))
  const answer = await read()
  expect(answer).toMatch(/^HTTP\/1\.1 200 OK\r\n/)
  expect(answer.slice(answer.indexOf('\r\n\r\n') + 4) === whole).toBe(true)
  expect(await server.exited).toBe(0)
  expect(server.stderr).not.toContain('cut off')
})

test('with SHUTDOWN_DELAY the process keeps serving, and is not ready; a second signal ends it', async () => {
  const server = await start({ SHUTDOWN_DELAY: '50s', SHUTDOWN_TIMEOUT: '60s' })
  const get = (path: string) => keyedFetch(server.origin, key)(path)
  expect((await get('/readyz')).status).toBe(200)
  const idle = await keepAlive(server.port)
  server.child.kill('SIGTERM')
  server.child.kill('SIGHUP') // as systemd may
  await server.logged(/Stopping/)
  const ready = await get('/readyz')
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
  expect(idle.closed).toBe(false)
  await until('a later signal ends it', () => {
    server.child.kill('SIGINT')
    return server.child.exitCode !== null
  })
  expect(await server.exited).toBe(1)
  // The end loses no entry, and that the service is not ready is not logged as an error.
  expect(server.entries().filter(({ msg }) => msg === 'request')).toHaveLength(5)
  const others = server.entries().filter(({ msg }) => msg !== 'request')
  expect(others).toMatchObject([
    { level: 'info', msg: `${TITLE} is running` },
    { level: 'info', msg: 'Stopping: finishing the requests in flight' },
  ])
})

test('the stop takes at most SHUTDOWN_TIMEOUT, which includes SHUTDOWN_DELAY', async () => {
  const server = await start({ SHUTDOWN_TIMEOUT: '2s', SHUTDOWN_DELAY: '1900ms' })
  await readSlowly(server.port, requestText('GET /docs/', { key }))
  expect(await server.end('SIGTERM')).toBe(1)
  const last = /The stop did not finish within 2000 ms \(SHUTDOWN_TIMEOUT\): the rest is cut off/
  expect(server.entries().at(-1)).toMatchObject({ level: 'warn', msg: expect.stringMatching(last) })
  expect(between(server, /Stopping/, last)).toBeGreaterThan(1_900)
  expect(between(server, /Stopping/, last)).toBeLessThan(3_800)
})

// At Ctrl-C the terminal signals the whole process group, and npm forwards the same signal.
test('an immediate repetition of a signal is ignored, a later one ends the process', async () => {
  const server = await start()
  const request = await beginCreation(server.port, key)
  server.child.kill('SIGINT')
  await until('it stops', async () => !(await isListening(server.port)))
  server.child.kill('SIGINT')
  expect(await request.finish()).toEqual(created)
  expect(await server.exited).toBe(0)

  const other = await start()
  await beginCreation(other.port, key)
  await until('a repetition ends it', () => {
    other.child.kill('SIGTERM')
    return other.child.exitCode !== null
  })
  expect(await other.exited).toBe(1)
})

test.each([
  ['SIGHUP', '1s'],
  ['SIGUSR2', '0s'],
] as const)('%s stops as SIGTERM does, after SHUTDOWN_DELAY=%s', async (signal, SHUTDOWN_DELAY) => {
  const sdk = `import { trace } from '${import.meta.resolve('@opentelemetry/api')}'
    const forceFlush = async () => console.error('{"msg":"Flushed"}')
    trace.setGlobalTracerProvider({ forceFlush })`
  const server = await start({ SHUTDOWN_DELAY, ...runFirst(sdk) })
  const request = await beginCreation(server.port, key)
  server.child.kill(signal)
  expect(await request.finish()).toEqual(created)
  expect(await server.exited).toBe(0)
  // The last spans are sent, and the file alone is the whole database.
  expect(server.stderr).toContain('{"msg":"Flushed"}')
  expect(existsSync(`${DATABASE_URL.slice('sqlite:'.length)}-wal`)).toBe(false)
  const least = Number.parseInt(SHUTDOWN_DELAY, 10) * 990
  expect(between(server, /Stopping/, /Stopped/)).toBeGreaterThanOrEqual(least)
})

test('npm start forwards the signal', async () => {
  const { PATH = '', HOME = '' } = process.env
  const npm = spawn('npm', ['start'], {
    env: { PATH, HOME, PORT: '0', DATABASE_URL },
    stdio: ['ignore', 'ignore', 'pipe'],
    detached: true, // its own process group, to kill all of it
  })
  onTestFinished(() => {
    try {
      process.kill(-Number(npm.pid), 'SIGKILL')
    } catch {} // it has exited, as expected
  })
  let stderr = ''
  npm.stderr.on('data', (chunk) => (stderr += chunk))
  const port = () => Number(stderr.match(/http:\/\/localhost:(\d+)\/v1\/pets/)?.[1])
  while (!port()) await once(npm.stderr, 'data')
  const request = await beginCreation(port(), key)
  npm.kill('SIGTERM')
  const ended = once(npm, 'close')
  expect(await request.finish()).toEqual(created)
  await ended
  expect(stderr).toContain('Stopped')
  expect(await isListening(port())).toBe(false)
})

test('a database connection that does not close: exit code 1', async () => {
  const queue = import.meta.resolve('../../db/queue.ts')
  const fault = `import { Queue } from '${queue}'
    const hang = () => { Queue.prototype.end = () => new Promise(() => {}) }
    process.once('SIGTERM', hang)`
  const server = await start({ SHUTDOWN_TIMEOUT: '1s', ...runFirst(fault) })
  expect(await server.end('SIGTERM')).toBe(1)
  expect(server.stderr).toContain('cut off')
})

test('a port that cannot be listened on fails the start with one line, and creates no first key', async () => {
  const busy = createServer().listen(0, '127.0.0.1')
  onTestFinished(() => void busy.close())
  await once(busy, 'listening')
  const port = String((busy.address() as AddressInfo).port)
  const fresh = await newDatabase()
  onTestFinished(fresh.remove)
  const hint = 'it is taken; set another port, or 0 for any that is free'
  for (const [variables, line] of [
    [{ PORT: port }, `PORT: cannot listen on ${port} (EADDRINUSE): ${hint}`],
    [
      { PORT: '0', METRICS_PORT: port },
      `METRICS_PORT: cannot listen on ${port} of 127.0.0.1 (METRICS_HOST) (EADDRINUSE): ${hint}`,
    ],
    [
      { PORT: '0', LISTEN_HOST: '192.0.2.1' },
      'PORT: cannot listen on 0 of 192.0.2.1 (LISTEN_HOST) (EADDRNOTAVAIL)',
    ],
  ] as const) {
    const ended = await failToStart({ DATABASE_URL: fresh.url, ...variables })
    expect(ended).toEqual({ code: 1, stdout: '', message: line })
  }
  busy.close()
  const same = await failToStart({ DATABASE_URL: fresh.url, PORT: port, METRICS_PORT: port })
  expect(same.message).toBe(
    `PORT: cannot listen on ${port} (EADDRINUSE): METRICS_PORT is the same; set another port, or 0 for any that is free`,
  )
  await using sql = await openSql(fresh.url)
  expect(await sql('select id from api_keys')).toEqual([])
})

test('an uncaught exception or rejection: requests in flight finish, and the process exits with 1', async () => {
  const fault = `let count = 0
    process.on('SIGCONT', () => {
      if (count++ > 0) throw new Error('boom')
      void Promise.reject(new Error('rejected'))
    })`
  const server = await start(runFirst(fault))
  const request = await beginCreation(server.port, key)
  server.child.kill('SIGCONT')
  const line = await server.logged(/Uncaught exception/)
  expect(JSON.parse(line)).toMatchObject({ level: 'fatal', err: { message: 'rejected' } })
  server.child.kill('SIGCONT') // a second one changes nothing
  expect(JSON.parse(await server.logged(/boom/))).toMatchObject({ level: 'fatal' })
  expect(await request.finish()).toEqual(created)
  expect(await server.exited).toBe(1)
  expect(server.stderr).not.toContain('cut off')
})
