/** The log is written in batches, and no entry is lost when the process ends. */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, existsSync, openSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import { promisify } from 'node:util'
import { afterEach, expect, onTestFinished, test, vi } from 'vitest'
import { newDatabase, type TestDatabase } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'
import { runServer, type ServerProgram } from '../support/process.ts'

let database: TestDatabase | undefined
let server: ServerProgram
afterEach(async () => {
  if (!database) return
  await server.end()
  await database.remove()
  database = undefined
})

async function start(variables: Record<string, string> = {}): Promise<void> {
  database = await newDatabase()
  server = await runServer({ DATABASE_URL: database.url, ...variables })
}

const ask = async (count: number) => {
  for (let index = 0; index < count; index++) await fetch(`${server.origin}/healthz`)
}

/** Code that creates the log of the service. */
const CREATE_LOG = `
  const { createLog } = await import(${JSON.stringify(import.meta.resolve('../../src/observe/log.ts'))})
  const log = await createLog()`

const requests = () => server.stderr.split('\n').filter((line) => /"msg":"request"/.test(line))

test('an entry does not wait for others, each is one line, and a stop loses none', async () => {
  await start()
  await ask(1)
  await eventually(() => expect(requests()).toHaveLength(1))
  await ask(199)
  expect(await server.end('SIGTERM')).toBe(0)
  expect(requests()).toHaveLength(200)
  for (const line of server.stderr.trim().split('\n')) JSON.parse(line)
  expect(server.stderr).toMatch(/"msg":"Stopped"/)
})

test('LOG_LEVEL=error leaves out requests and the stop', async () => {
  await start({ LOG_LEVEL: 'error' })
  await ask(1)
  expect(await server.end('SIGTERM')).toBe(0)
  expect(server.stderr).toBe('')
})

test.each([
  { to: 'a pipe', script: '{ "$0" --input-type=module -e "$1" 2>&1 1>/dev/null | wc -l; }' },
  {
    to: 'a file',
    script:
      'log=$(mktemp) && "$0" --input-type=module -e "$1" 2>"$log" && wc -l <"$log" && rm "$log"',
  },
])(
  'under load, each entry is written to $to, also when many arrive in each turn',
  async ({ script }) => {
    // 40 MB of entries, several times as much as the log may keep.
    const code = `
    import { setImmediate, setTimeout } from 'node:timers/promises'
    ${CREATE_LOG}
    for (let turn = 0; turn < 1_000; turn++) {
      for (let line = 0; line < 40; line++) log.info('x'.repeat(900))
      await (turn % 20 ? setImmediate() : setTimeout(5))
    }`
    const { stdout } = await promisify(execFile)('sh', ['-c', script, process.execPath, code])
    expect(Number(stdout)).toBe(40_000)
  },
)

test('a log that is not read does not fill the memory: further entries are dropped', async () => {
  await start()
  const { child } = server
  child.stderr?.pause()
  // 30 MB of entries, each with its path.
  const path = `/${'x'.repeat(15_000)}`
  for (let round = 0; round < 20; round++) {
    const answers = Array.from({ length: 100 }, () => fetch(server.origin + path))
    const statuses = (await Promise.all(answers)).map(({ status }) => status)
    expect(statuses).toEqual(Array(100).fill(404))
  }
  child.stderr?.resume()
  await vi.waitFor(() => expect(requests().length).toBeGreaterThan(500), 30_000)
  child.kill('SIGTERM')
  expect(await server.exited).toBe(0)
  expect(requests().length).toBeGreaterThan(500)
  expect(server.stderr.length).toBeLessThan(14_000_000)
  const message = 'The log was not read fast enough: entries were dropped'
  const dropped = server.entries().filter(({ level, msg }) => level === 'error' && msg === message)
  const count = dropped.reduce((sum, { entries }) => sum + Number(entries), 0)
  expect(requests().length + count).toBe(2_000)
})

test('a stop waits for a reader that is slow, and loses no entry', async () => {
  await start()
  const { child } = server
  child.stderr?.pause()
  const path = `/${'x'.repeat(15_000)}`
  await Promise.all(Array.from({ length: 100 }, () => fetch(server.origin + path)))
  child.kill('SIGTERM')
  await setTimeout(300)
  child.stderr?.resume()
  expect(await server.exited).toBe(0)
  expect(requests()).toHaveLength(100)
  expect(server.stderr).toMatch(/"msg":"Stopped"\}\n$/)
})

test('a log that is not read does not delay a stop', async () => {
  await start()
  const { child } = server
  child.stderr?.pause()
  const path = `/${'x'.repeat(15_000)}`
  await Promise.all(Array.from({ length: 100 }, () => fetch(server.origin + path)))
  const ended = once(child, 'exit')
  const began = performance.now()
  child.kill('SIGTERM')
  await ended
  expect(performance.now() - began).toBeLessThan(5_000)
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

test('a second signal, which ends the process at once, loses no entry', async () => {
  await start({ SHUTDOWN_DELAY: '20s', SHUTDOWN_TIMEOUT: '30s' })
  await ask(20)
  server.child.kill('SIGTERM')
  await server.logged(/Stopping/)
  await ask(3)
  expect(await server.end('SIGINT')).toBe(1)
  expect(requests()).toHaveLength(23)
})
