/** The default timeouts of clients, the stop and commands. These tests mostly wait. */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { expect, test } from 'vitest'
import { beginCreation } from '../support/creation.ts'
import { newFolder } from '../support/database.ts'
import { instanceForFile } from '../support/instance.ts'
import { programs, runProgram, runServer, runToEnd } from '../support/process.ts'
import { requestText } from '../support/raw.ts'
import { readSlowly } from '../support/slow-reader.ts'
import { openSql } from '../support/sql.ts'

const { key, databaseUrl, program: server } = await instanceForFile()

/** Opens a connection and sends a text. */
async function send(text: string): Promise<Socket> {
  const socket = connect(server.port, '127.0.0.1').on('error', () => {})
  await once(socket, 'connect')
  if (text !== '') socket.write(text)
  return socket
}

/** What a connection receives until the server closes it, and the seconds until then. */
async function readToEnd(socket: Socket): Promise<{ text: string; seconds: number }> {
  const began = performance.now()
  let text = ''
  socket.on('data', (chunk) => (text += chunk))
  await once(socket, 'close')
  return { text, seconds: (performance.now() - began) / 1_000 }
}

/** Checks a duration, with a tolerance for a busy machine. */
function expectAbout(seconds: number, expected: number): void {
  expect(seconds).toBeGreaterThan(expected - 0.5)
  expect(seconds).toBeLessThan(expected + 4)
}

test.concurrent('the headers time out after 10 seconds', { timeout: 90_000 }, async () => {
  const socket = await send('GET /v1/pets HTTP/1.1\r\nHost: x\r\nX-Slow: ')
  const drip = setInterval(() => socket.write('x'), 500)
  const { text, seconds } = await readToEnd(socket)
  clearInterval(drip)
  expect(text).toMatch(/^HTTP\/1\.1 408 .*"code":"TIMEOUT"/s)
  expectAbout(seconds, 10)
})

test.concurrent('a whole request times out after 30 seconds', { timeout: 90_000 }, async () => {
  const body = `{${' '.repeat(999)}`
  const socket = await send(requestText('POST /v1/pets', { key, body }).slice(0, -999))
  const drip = setInterval(() => socket.write(' '), 500)
  const { text, seconds } = await readToEnd(socket)
  clearInterval(drip)
  expect(text).toMatch(/^HTTP\/1\.1 408 .*"code":"TIMEOUT"/s)
  expectAbout(seconds, 30)
})

test.concurrent('an idle connection is closed 65 seconds after a response', {
  timeout: 90_000,
}, async () => {
  const socket = await send(requestText('GET /v1/pets', { key }))
  const { text, seconds } = await readToEnd(socket)
  expect(text).toMatch(/^HTTP\/1\.1 200 OK.*\r\nKeep-Alive: timeout=65\r\n/s)
  expect(text.match(/^HTTP/gm)).toHaveLength(1)
  expectAbout(seconds, 65)
})

test.concurrent('a connection without a request times out', {
  timeout: 90_000,
}, async () => {
  const { text, seconds } = await readToEnd(await send(''))
  expect(text === '' || text.startsWith('HTTP/1.1 408 ')).toBe(true)
  expect(seconds).toBeGreaterThan(9.5)
  expect(seconds).toBeLessThan(69)
})

test.concurrent('a stop lets a request that is still arriving time out after 5 seconds', {
  timeout: 90_000,
}, async () => {
  const stopping = await runServer({ DATABASE_URL: databaseUrl })
  const request = await beginCreation(stopping.port, key)
  const began = performance.now()
  stopping.child.kill('SIGTERM')
  await request.closed
  expect(await stopping.exited).toBe(0)
  expectAbout((performance.now() - began) / 1_000, 5)
  expect(stopping.entries().map(({ status }) => status)).toContain(408)
})

test.concurrent('a stop ends after 10 seconds, although a client does not read its response', {
  timeout: 90_000,
}, async ({ onTestFinished }) => {
  const stopping = await runServer({ DATABASE_URL: databaseUrl })
  await readSlowly(stopping.port, requestText('GET /docs/'), onTestFinished)
  const began = performance.now()
  stopping.child.kill('SIGTERM')
  expect(await stopping.exited).toBe(1)
  expectAbout((performance.now() - began) / 1_000, 10)
  expect(stopping.stderr).toContain('cut off')
})

test.concurrent('restore waits at most 30 seconds for a database that another process holds', {
  timeout: 90_000,
}, async ({ onTestFinished }) => {
  const folder = newFolder(onTestFinished)
  const url = `sqlite:${folder}/pets.db`
  const run = (program: 'migrate' | 'backup' | 'restore', more = '', ...operands: string[]) =>
    runToEnd(programs[program], { DATABASE_URL: url + more }, operands, folder)
  expect(await run('migrate', '?create')).toMatchObject({ code: 0 })
  expect(await run('backup', '', 'monday.db')).toMatchObject({ code: 0 })
  await using holder = await openSql(url)
  await holder('begin immediate')
  const began = performance.now()
  expect(await run('restore', '', 'monday.db')).toEqual({
    code: 1,
    stdout: '',
    stderr: `Cannot restore monday.db to ${folder}/pets.db: other processes hold the database\n`,
  })
  expectAbout((performance.now() - began) / 1_000, 30)
  await holder.close()
})

test.concurrent('a command waits for one minute for a database that sends nothing', {
  timeout: 90_000,
}, async () => {
  let clients = 0
  const silent = createServer(() => void clients++).listen(0, '127.0.0.1')
  await once(silent, 'listening')
  const { port } = silent.address() as AddressInfo
  const began = performance.now()
  const program = runProgram(programs.migrate, {
    DATABASE_URL: `mysql://root@127.0.0.1:${port}/pets`,
  })
  expect(await program.exited).toBe(1)
  expect(program.stderr.trim().split('\n')).toHaveLength(1)
  expectAbout((performance.now() - began) / 1_000, 60)
  expect(clients, 'a server that hangs counts each').toBe(2)
  silent.close()
})
