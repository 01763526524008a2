/** The service as a process: start, restart, concurrent starts. */
import { setTimeout } from 'node:timers/promises'
import { describe, expect, inject, onTestFinished, test, vi } from 'vitest'
import { connect } from '../../db/connect.ts'
import { migrate } from '../../db/migrate.ts'
import { readConfig } from '../../src/config/config.ts'
import { TITLE } from '../../src/config/product.ts'
import { createFirstKey } from '../../src/keys/store.ts'
import { texts } from '../../src/petstore/texts.ts'
import { startText as printedText } from '../../src/process/start-text.ts'
import { engine, newDatabase, newFolder, testOnce } from '../support/database.ts'
import { holdWrites } from '../support/hold.ts'
import { freePort } from '../support/mysql.ts'
import {
  failToStart,
  programs,
  runProgram,
  runServer,
  type ServerProgram,
} from '../support/process.ts'
import { keyedFetch, restClient } from '../support/rest.ts'
import { createKey } from '../support/service.ts'
import { openSql } from '../support/sql.ts'
import { openTerminal } from '../support/terminal.ts'

interface Place {
  folder: string
  /** The database; on SQLite the embedded one in the folder. */
  url: string
  variables: Record<string, string>
}

async function newPlace(): Promise<Place> {
  const folder = newFolder()
  const url = `sqlite:${folder}/data/petstore.db`
  if (engine === 'sqlite') return { folder, url, variables: {} }
  const database = await newDatabase()
  onTestFinished(database.remove)
  return { folder, url: database.url, variables: { DATABASE_URL: database.url } }
}

async function start({ folder, variables }: Place, more = {}): Promise<ServerProgram> {
  const server = await runServer({ ...variables, ...more }, folder)
  onTestFinished(async () => void (await server.end()))
  return server
}

const keyPattern = /petstore_[\w-]{43}/

const databaseOf = ({ variables: { DATABASE_URL: url } }: Place) =>
  url ? `MySQL: ${new URL(url).host}${new URL(url).pathname}` : 'SQLite, embedded: data/petstore.db'

/** The entry of a start in the log. */
function startEntry(port: number, place: Place) {
  const origin = `http://localhost:${port}`
  return {
    level: 'info',
    rest: `${origin}/v1/pets`,
    trpc: `${origin}/trpc`,
    openapi: `${origin}/v1/openapi.json`,
    docs: `${origin}/docs/`,
    baseUrl: `${origin}/v1`,
    database: databaseOf(place),
    msg: `${TITLE} is running`,
  }
}

const RUNNING = new RegExp(`${TITLE} is running`)

/** The whole start message on stdout. */
function startText(port: number, place: Place, key: string, pasted = '<API_KEY>'): string {
  const origin = `http://localhost:${port}`
  return `${TITLE} is running.

  REST      ${origin}/v1/pets
  tRPC      ${origin}/trpc
  OpenAPI   ${origin}/v1/openapi.json
  Docs      ${origin}/docs/
  Links     ${origin}/v1 (set BASE_URL where clients use another port or name)
  Database  ${databaseOf(place)}
  API key   ${key}

A first request:

  curl ${origin}/v1/pets -H 'Authorization: Bearer ${pasted}' \\
    -H 'Content-Type: application/json' -d '{"name": "Rex", "categoryId": 1}' -w '\\n'

`
}

test('the first start prints URLs, a key and a first request, or logs one entry; a restart keeps the pets', async () => {
  const place = await newPlace()
  const began = Date.now()
  const port = await freePort()
  const first = await start(place, { PORT: String(port) })
  const shown = first.stdout.match(keyPattern)?.[0]
  expect(first.stdout).toBe(
    engine === 'sqlite'
      ? startText(port, place, `${shown}\n            Keep it: it is not shown again.`, shown)
      : '',
  )
  const logged = await first.logged(RUNNING)
  expect(JSON.parse(logged)).toMatchObject(startEntry(port, place))
  await using sql = await openSql(place.url)
  const [row] = await sql('select * from api_keys')
  if (engine === 'sqlite') {
    const whole = { name: 'first key', expires_at: null, revoked_at: null, read_only: 0n }
    expect(row).toMatchObject(whole)
    expect(Number(row?.created_at)).toBeGreaterThanOrEqual(began)
    expect(Number(row?.created_at)).toBeLessThanOrEqual(Date.now())
  } else expect(row).toBeUndefined()
  const key = shown ?? (await createKey(place.url))
  const rest = restClient(first.origin, key)
  const made = await rest('POST', '/pets', { body: { name: 'Rex', categoryId: 1 } })
  expect(made.headers.get('location')).toBe(`http://localhost:${port}/v1/pets/1`)
  if (shown) expect(first.stderr).not.toContain(shown)
  expect(await first.end('SIGTERM')).toBe(0)

  // A start creates no key when all keys are revoked.
  await sql('update api_keys set revoked_at = 1')
  const BASE_URL = 'https://pets.example.com/v1'
  const second = await start(place, { BASE_URL })
  expect(second.stdout).toBe('')
  const again = JSON.parse(await second.logged(RUNNING))
  expect(again).toMatchObject({ ...startEntry(second.port, place), baseUrl: BASE_URL })
  await sql('update api_keys set revoked_at = null')
  expect((await restClient(second.origin, key)('GET', '/pets/1')).text).toBe(made.text)
})

test.each([
  ...['0.0.0.0', '::', '127.0.0.1', '::1'].map((own): [string, string] => [own, 'localhost']),
  ['127.0.0.2', '127.0.0.2'],
  ['fd00::7', '[fd00::7]'],
])('the URLs of LISTEN_HOST=%s have the host %s', (LISTEN_HOST, host) => {
  const state = { port: 3000, firstKey: undefined }
  const text = printedText(readConfig({ LISTEN_HOST }), state, texts.firstRequest)
  const urls = [...Array(4).fill(host), 'localhost', host].map((one) => `http://${one}:3000`)
  expect(text.match(/http:\/\/.+?(?=\/)/g)).toEqual(urls)
})

test.runIf(engine === 'sqlite')('at a terminal, each start prints the text', async () => {
  const place = await newPlace()
  await createKey(`${place.url}?create`)
  const terminal = await openTerminal({ onTestFinished })
  terminal.read()
  const PORT = await freePort()
  const starter = terminal.starter(1)
  const program = runProgram(programs.server, { PORT: `${PORT}` }, [], place.folder, starter)
  onTestFinished(async () => void (await program.end()))
  const text = startText(
    PORT,
    place,
    'for a new one: node src/cli/keys.ts create NAME --expires 90d',
  )
  await vi.waitFor(() => expect(terminal.shown).toBe(text), 30_000)
  expect(program.stderr).not.toContain('is running')
})

test('two instances start concurrently on one empty database', async () => {
  const place = await newPlace()
  const servers = await Promise.all([start(place), start(place)])
  const shown = servers.flatMap(({ stdout }) => stdout.match(keyPattern) ?? [])
  expect(shown).toHaveLength(engine === 'sqlite' ? 1 : 0)
  const key = shown[0] ?? (await createKey(place.url))
  for (const { origin } of servers) {
    const rest = restClient(origin, key)
    expect((await rest('POST', '/pets', { body: { name: 'Rex', categoryId: 1 } })).status).toBe(201)
  }
  const { body } = await restClient(servers[0].origin, key)('GET', '/pets')
  expect((body as { id: number }[]).map(({ id }) => id)).toEqual([1, 2])
})

test.runIf(engine === 'sqlite')('two starts that find no key create one key', async () => {
  const { url, remove } = await newDatabase()
  onTestFinished(remove)
  await using one = await connect(url)
  await migrate(one)
  await using other = await connect(url)
  const release = await holdWrites(url)
  const both = Promise.all([one, other].map(createFirstKey))
  await setTimeout(100) // both find no key before either can create one
  await release()
  expect((await both).filter((key) => key)).toHaveLength(1)
})

testOnce('NODE_ENV=development: the response to an internal error has no details', async () => {
  const place = await newPlace()
  const server = await start(place, { NODE_ENV: 'development' })
  const key = await createKey(place.url)
  await using sql = await openSql(place.url)
  await sql('alter table pets rename to animals')
  for (const path of ['/v1/pets', '/trpc/listPets', '/trpc/listPets,listPets?batch=1']) {
    const answer = await keyedFetch(server.origin, key)(path)
    const text = await answer.text()
    expect(answer.status).toBe(500)
    expect(text).toContain('Internal server error')
    expect(text).not.toMatch(/stack|animals|table|sqlite|mysql|sql|node_modules|\.ts/i)
  }
  await server.logged(/no such table|doesn't exist/) // the log has the details
})

describe.runIf(engine === 'mysql')('the database server', () => {
  test.each([
    ['a wrong password', { username: 'nobody', password: 'sesame' }, /Access denied/],
    ['a wrong database', { pathname: '/nowhere' }, /Unknown database/],
  ])('refuses %s: the start fails with one line', async (_, parts, reason) => {
    const url = Object.assign(new URL(inject('mysqlUrl')), { pathname: '/petstore' }, parts)
    const ended = await failToStart({ PORT: '0', DATABASE_URL: url.href })
    expect(ended).toMatchObject({ code: 1, stdout: '' })
    expect(ended.message).toMatch(/^DATABASE_URL: cannot use the database \S+: .+$/)
    expect(ended.message).toMatch(reason)
    expect(ended.message).not.toContain('sesame')
  })
})
