/** The log is written in batches, and no entry is lost when the process ends. */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, existsSync, openSync } from 'node:fs'
import { text } from 'node:stream/consumers'
import { setTimeout } from 'node:timers/promises'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import { startInstance, until } from '../support/instance.ts'
import type { ServerProgram } from '../support/process.ts'
import { isListening } from '../support/raw.ts'

async function start(variables: Record<string, string> = {}): Promise<ServerProgram> {
  const { program, stop } = await startInstance(variables)
  onTestFinished(async () => void (await stop('SIGKILL')))
  return program
}

/** Starts a service, stops to read its log, and makes 1.5 MB of entries, each with its path. */
async function startUnread(rounds = 1): Promise<ServerProgram> {
  const server = await start()
  server.child.stderr?.pause()
  const path = `/${'x'.repeat(15_000)}`
  for (let round = 0; round < rounds; round++) {
    const answers = Array.from({ length: 100 }, () => fetch(server.origin + path))
    const statuses = (await Promise.all(answers)).map(({ status }) => status)
    expect(statuses).toEqual(Array(100).fill(404))
  }
  return server
}

/** Code that creates the log of the service. */
const CREATE_LOG = `
  const { createLog } = await import(${JSON.stringify(import.meta.resolve('../../src/observe/log.ts'))})
  const log = await createLog()`

const requests = ({ stderr }: ServerProgram) =>
  stderr.split('\n').filter((line) => /"msg":"request"/.test(line)).length

test('an entry does not wait for others, each is one line, and a stop loses none', async () => {
  const server = await start()
  const ask = () => fetch(`${server.origin}/nothing`)
  await ask()
  await server.logged(/"msg":"request"/)
  for (let count = 1; count < 200; count++) await ask()
  expect(await server.end('SIGTERM')).toBe(0)
  expect(server.entries().at(-1)).toMatchObject({ msg: 'Stopped' })
  expect(requests(server)).toBe(200)
})

test('health has a line only when it fails or is back, and a file of the docs page only when it fails', async () => {
  const { program, fetch, sql, stop } = await startInstance()
  onTestFinished(async () => void (await stop('SIGKILL')))
  const ask = async (path: string) => (await fetch(path)).status
  for (const path of ['/healthz', '/readyz', '/docs/docs.js', '/docs/docs.css', '/docs/icon.svg']) {
    for (let count = 0; count < 3; count++) expect(await ask(path)).toBe(200)
  }
  await sql('alter table kysely_migration rename to away')
  for (let count = 0; count < 2; count++) expect(await ask('/readyz')).toBe(503)
  await sql('alter table away rename to kysely_migration')
  for (let count = 0; count < 3; count++) expect(await ask('/readyz')).toBe(200)
  expect(await ask('/docs/none.js')).toBe(404)
  expect(await program.end('SIGTERM')).toBe(0)
  const lines = program.entries().filter(({ msg }) => msg === 'request')
  expect(lines.map(({ path, status }) => [path, status])).toEqual([
    ['/readyz', 503],
    ['/readyz', 503],
    ['/readyz', 200],
    ['/docs/none.js', 404],
  ])
})

test('LOG_LEVEL=error leaves out requests and the stop', async () => {
  const server = await start({ LOG_LEVEL: 'error' })
  await fetch(`${server.origin}/nothing`)
  expect(await server.end('SIGTERM')).toBe(0)
  expect(server.stderr).toBe('')
})

/** Code that makes 40 MB of entries, many in each turn: several times as much as the log may keep. */
const load = (turn: string) => `
  import { setImmediate } from 'node:timers/promises'
  ${CREATE_LOG}
  for (let turn = 0; turn < 1_000; turn++) {
    for (let line = 0; line < 40; line++) log.info('x'.repeat(900))
    ${turn}
  }`

test('under load, each entry is written to a file', async () => {
  const script =
    'log=$(mktemp) && "$0" --input-type=module -e "$1" 2>"$log" && wc -l <"$log" && rm "$log"'
  const code = load('await setImmediate()')
  const { stdout } = await promisify(execFile)('sh', ['-c', script, process.execPath, code])
  expect(Number(stdout)).toBe(40_000)
})

test('under load, each entry is written to a pipe whose reader keeps up', async () => {
  // It answers each line by a byte: on a busy machine it may be late by more than the log may keep.
  const code = `
    let read = 0
    process.stdin.on('data', (bytes) => (read += bytes.length)).unref()
    ${load('do await setImmediate(); while (turn * 40 - read > 4_000)')}`
  const child = spawn(process.execPath, ['--input-type=module', '-e', code])
  onTestFinished(() => void child.kill('SIGKILL'))
  child.stdin.on('error', () => {}) // it has ended before its last lines are read
  let lines = 0
  for await (const part of child.stderr.setEncoding('utf8')) {
    const more = part.split('\n').length - 1
    lines += more
    child.stdin.write('.'.repeat(more))
  }
  expect(lines).toBe(40_000)
})

test('a line has at most 16 KiB, and is an entry, whatever is long', async () => {
  const long = {
    'a path of backslashes': "log.info({ path: '\\\\'.repeat(16_000) }, 'request')",
    'a long message': "log.info('x'.repeat(20_000))",
    'characters of several bytes': "log.info({ a: '\u{1F415}'.repeat(5_000) }, 'x')",
    'an error with a long message, a stack and causes': `
      const cause = new Error('c'.repeat(9_000), { cause: new Error('d'.repeat(9_000)) })
      const err = new AggregateError([cause, cause], 'e'.repeat(9_000), { cause })
      log.error({ requestId: 'r', err }, 'Internal server error')`,
    'a long list': "log.info({ list: Array(9_000).fill({ a: 1 }) }, 'x')",
    'many fields':
      "log.info(Object.fromEntries(Array.from({ length: 3_000 }, (_, at) => ['f' + at, at])), 'x')",
  }
  const code = [CREATE_LOG, ...Object.values(long)].join('\n')
  const words = ['--input-type=module', '-e', code]
  const { stderr } = await promisify(execFile)(process.execPath, words)
  const lines = stderr.split(/(?<=\n)/)
  expect(lines).toHaveLength(Object.keys(long).length)
  for (const [index, name] of Object.keys(long).entries()) {
    const line = `${lines[index]}`
    expect(Buffer.byteLength(line), name).toBeLessThanOrEqual(16_384)
    expect(JSON.parse(line), name).toMatchObject({
      level: expect.stringMatching(/info|error/),
      time: expect.any(Number),
      msg: expect.stringMatching(/^(request|x+…?|Internal server error)$/),
    })
  }
})

test('a log that is not read does not fill the memory: further entries are dropped', async () => {
  const server = await startUnread(7)
  server.child.stderr?.resume()
  await server.logged(/entries were dropped/)
  expect(await server.end('SIGTERM')).toBe(0)
  expect(requests(server)).toBeGreaterThan(500)
  expect(server.stderr.length).toBeLessThan(10_000_000)
  const message = 'The log was not read fast enough: entries were dropped'
  const dropped = server.entries().filter(({ level, msg }) => level === 'error' && msg === message)
  const count = dropped.reduce((sum, { entries }) => sum + Number(entries), 0)
  expect(requests(server) + count).toBe(700)
})

test('a full log is written once it is read again, also while more entries arrive', async () => {
  const code = `
    import { setTimeout } from 'node:timers/promises'
    ${CREATE_LOG}
    const fill = (size) => log.info('x'.repeat(size))
    for (let count = 0; count < 600; count++) fill(16_000)
    for (let size = 8_000; size > 100; size /= 2) {
      fill(size)
      await setTimeout(150)
    }
    setInterval(() => log.info('more'), 10)
    process.stdout.write('full')`
  const child = spawn(process.execPath, ['--input-type=module', '-e', code])
  onTestFinished(() => void child.kill('SIGKILL'))
  await once(child.stdout, 'data')
  let end = ''
  for await (const part of child.stderr.setEncoding('utf8')) {
    if (/entries were dropped/.test(end + part)) return
    end = part.slice(-100)
  }
  expect.unreachable('The process has ended without the rest of its log')
})

test('a process that ends logs the number of entries that were dropped just before', async () => {
  const code = `${CREATE_LOG}
    for (let count = 0; count < 700; count++) log.info('x'.repeat(16_000))
    process.stdout.write('full')
    process.exit()`
  const child = spawn(process.execPath, ['--input-type=module', '-e', code])
  await once(child.stdout, 'data')
  const lines = (await text(child.stderr)).trimEnd().split('\n')
  const { entries, ...last } = JSON.parse(String(lines.pop()))
  expect(last).toMatchObject({ level: 'error' })
  expect(entries).toBeGreaterThan(0)
  expect(lines.length + entries).toBe(700)
})

test('a stop waits for a reader that is slow, and loses no entry', async () => {
  const server = await startUnread()
  server.child.kill('SIGTERM')
  await until('it has stopped', async () => !(await isListening(server.port)))
  server.child.stderr?.resume()
  expect(await server.exited).toBe(0)
  expect(requests(server)).toBe(100)
  expect(server.stderr).toMatch(/"msg":"Stopped"\}\n$/)
})

test('a process that ends writes megabytes of entries to a reader that is slow', async () => {
  const code = `${CREATE_LOG}
    for (let count = 0; count < 400; count++) log.info('x'.repeat(16_000))
    process.exit()`
  const child = spawn(process.execPath, ['--input-type=module', '-e', code])
  let lines = 0
  for await (const part of child.stderr.setEncoding('utf8')) {
    lines += part.split('\n').length - 1
    await setTimeout(5)
  }
  expect(lines).toBe(400)
})

test('a log that is not read does not keep a process from ending', async () => {
  const { child } = await startUnread()
  const ended = once(child, 'exit')
  child.kill('SIGTERM')
  await ended
  child.stderr?.resume()
})

test.runIf(existsSync('/dev/full')).each(['a full disk', 'a closed pipe'])(
  '%s for the log does not keep a process from ending',
  async (to) => {
    const code = `${CREATE_LOG}\nlog.info('Lost')`
    const stderr = to === 'a full disk' ? openSync('/dev/full', 'w') : 'pipe'
    const child = spawn(process.execPath, ['--input-type=module', '-e', code], {
      stdio: ['ignore', 'ignore', stderr],
    })
    if (typeof stderr === 'number') closeSync(stderr)
    onTestFinished(() => void child.kill('SIGKILL'))
    child.stderr?.destroy()
    expect(await once(child, 'exit', { signal: AbortSignal.timeout(10_000) })).toEqual([0, null])
  },
)
