/** How a process reads its environment and the file `.env`. */
import { execFileSync } from 'node:child_process'
import {
  closeSync,
  constants,
  existsSync,
  mkdirSync,
  openSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { beforeEach, expect, onTestFinished, test } from 'vitest'
import { newFolder } from '../support/database.ts'
import { until } from '../support/instance.ts'
import {
  failToStart,
  failureOf,
  programs,
  runProgram,
  runServer,
  runToEnd,
  type ServerProgram,
} from '../support/process.ts'
import { keyedFetch } from '../support/rest.ts'

let folder: string
let dotenv: string
beforeEach(() => {
  folder = newFolder()
  dotenv = path.join(folder, '.env')
})

async function start(text: string, variables: Record<string, string>): Promise<ServerProgram> {
  writeFileSync(dotenv, text)
  const server = await runServer(variables, folder)
  onTestFinished(async () => void (await server.end()))
  return server
}

test('a folder that has been removed ends a program with one line', async () => {
  const starter = ['sh', '-c', 'rmdir "$PWD"; exec "$@"', 'sh']
  for (const program of [programs.server, programs.keys]) {
    const { code, stdout, stderr } = await runToEnd(program, {}, [], newFolder(), starter)
    expect({ code, stdout, message: failureOf(stderr) }, program).toEqual({
      code: 1,
      stdout: '',
      message: 'The working folder has been removed: change to one that exists',
    })
  }
})

test('every variable takes effect, and the environment takes precedence over .env', async () => {
  const text = [
    '\uFEFFBASE_URL=https://pets.example/v1', // after a byte order mark
    'STAGING_URL=https://try.pets.example/v1',
    'CORS_ORIGINS=https://shop.example, https://admin.shop.example',
    'RATE_LIMIT=999',
    'TRUST_PROXY=1',
    'DATABASE_URL=sqlite:shop/pets.db?create',
  ].join('\n')
  const server = await start(text, { RATE_LIMIT: '3', CORS_ORIGINS: '' })
  expect(server.stdout).toContain('SQLite, embedded: shop/pets.db')
  const key = String(server.stdout.match(/petstore_[\w-]{43}/)?.[0])
  const document = await (await fetch(`${server.origin}/v1/openapi.json`)).json()
  expect(document).toMatchObject({
    servers: [{ url: 'https://pets.example/v1' }, { url: 'https://try.pets.example/v1' }],
  })
  const pet = { method: 'POST', body: '{"name":"Rex","categoryId":1}' }
  const made = await keyedFetch(server.origin, key)('/v1/pets', pet)
  expect(made.headers.get('location')).toBe('https://pets.example/v1/pets/1')
  expect(made.headers.get('ratelimit-policy')).toMatch(/q=3\b/)

  const from = async (address: string) => {
    const headers = { 'x-forwarded-for': address }
    return (await fetch(`${server.origin}/v1/pets`, { headers })).status
  }
  const statuses: number[] = []
  for (let call = 0; call < 4; call++) statuses.push(await from('192.0.2.1'))
  expect(statuses).toEqual([401, 401, 401, 429])
  expect(await from('192.0.2.2')).toBe(401)

  // Empty in the environment, so unset, although .env has a value.
  const origin = 'https://shop.example'
  const page = await fetch(`${server.origin}/v1/pets`, { headers: { origin } })
  expect(page.headers.get('access-control-allow-origin')).toBeNull()
})

test('variables can be in .env alone, an empty one counts as unset, and warnings are log lines', async () => {
  const text = 'CORS_ORIGINS=https://shop.example\nRATE_LIMIT=\nSHUTDOWN_DELAY=\n'
  const server = await start(text, { LISTEN_HOST: '127.0.0.2', RATELIMIT: '3' })
  const { port } = new URL(server.origin)
  const headers = { origin: 'https://shop.example' }
  const answer = await fetch(`http://127.0.0.2:${port}/v1/pets`, { headers })
  expect(answer.headers.get('access-control-allow-origin')).toBe('https://shop.example')
  expect(answer.headers.get('ratelimit')).toBeNull()
  expect(answer.headers.get('keep-alive')).toBe('timeout=65')
  expect(server.stdout).toContain('SQLite, embedded: data/petstore.db')
  await expect(fetch(`http://127.0.0.1:${port}/healthz`), 'LISTEN_HOST').rejects.toThrow()
  await server.logged(/"level":"warn".*did you mean RATE_LIMIT\?/)
})

test.each<[string, Buffer | undefined, string]>([
  [
    'in UTF-16',
    Buffer.from('\uFEFFRATE_LIMIT=7\n', 'utf16le'),
    'ERR_ENCODING_INVALID_ENCODED_DATA',
  ],
  ['in Latin-1', Buffer.from('DATABASE_URL=für\n', 'latin1'), 'ERR_ENCODING_INVALID_ENCODED_DATA'],
  ['that is a folder', undefined, 'EISDIR'], // as Docker makes where the file of a mount is missing
])('a .env %s stops the start with one line', async (_, bytes, code) => {
  if (bytes) writeFileSync(dotenv, bytes)
  else mkdirSync(dotenv)
  const message = `.env must be a text in UTF-8 that this user may read (${code})`
  expect(await failToStart({ PORT: '0' }, [], folder)).toEqual({ code: 78, stdout: '', message })
})

test.each<[string, (target: string) => Record<string, string>, (target: string) => string]>([
  [
    'a .env',
    (target) => {
      symlinkSync(target, dotenv)
      return {}
    },
    (target) => `.env is a link to ${target}, which is missing`,
  ],
  [
    'a file of DATABASE_URL_FILE',
    (target) => ({ DATABASE_URL_FILE: target }),
    (target) => `DATABASE_URL_FILE: ENOENT: no such file or directory, open '${target}'`,
  ],
])('%s that is not mounted yet fails the start, and the next one may succeed', async (...row) => {
  const [, prepare, messageOf] = row
  const target = path.join(folder, 'mount/file')
  const variables = { PORT: '0', ...prepare(target) }
  const message = messageOf(target)
  expect(await failToStart(variables, [], folder)).toEqual({ code: 1, stdout: '', message })
  expect(existsSync(path.join(folder, 'data'))).toBe(false)
})

test.each(['server', 'keys'] as const)(
  '%s waits for a .env that is a FIFO, and SIGTERM ends the wait',
  async (name) => {
    execFileSync('mkfifo', [dotenv])
    const run = () =>
      runProgram(programs[name], { PORT: 'x' }, name === 'keys' ? ['list'] : [], folder)
    const waiting = run()
    onTestFinished(async () => void (await waiting.end()))
    // Without a wait, only once another process opens it to read; and that one then waits for a text.
    let writer = -1
    await until('it opens the FIFO', () => {
      writer = openToWrite(dotenv)
      return writer >= 0
    })
    expect([await waiting.end('SIGTERM'), waiting.child.signalCode]).toEqual([null, 'SIGTERM'])
    closeSync(writer)
    const reading = run()
    await writeFile(dotenv, 'RATE_LIMIT=1\n')
    expect([await reading.exited, reading.stderr]).toEqual([
      78,
      expect.stringContaining('PORT must be an integer'),
    ])
  },
)

/** Opens a FIFO, and returns -1 while no process reads from it. */
function openToWrite(fifo: string): number {
  try {
    return openSync(fifo, constants.O_WRONLY | constants.O_NONBLOCK)
  } catch {
    return -1
  }
}
