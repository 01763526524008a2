/** The service as a process: start, restart, concurrent starts. */
import { once } from 'node:events'
import { readdirSync, readlinkSync } from 'node:fs'
import { type AddressInfo, connect, createServer } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import { expect, inject, onTestFinished, test } from 'vitest'
import { SERVICE_FLAGS } from '../../bench/service.ts'
import { engine, newDatabase } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'
import { freeze, thaw } from '../support/freeze.ts'
import { holdWrites } from '../support/hold.ts'
import { freePort } from '../support/mysql.ts'
import {
  newFolder,
  type Program,
  programs,
  runProgram,
  runServer,
  runToEnd,
  type ServerProgram,
} from '../support/process.ts'
import { keyedFetch, restClient } from '../support/rest.ts'
import { openSql } from '../support/sql.ts'
import { runFirst } from '../support/watched.ts'

interface Place {
  folder: string
  variables: Record<string, string>
}

/** A new folder and database: on SQLite the embedded one in that folder, else a MySQL database. */
async function newPlace(): Promise<Place> {
  const { folder, remove } = newFolder()
  onTestFinished(remove)
  if (engine === 'sqlite') return { folder, variables: {} }
  const database = await newDatabase()
  onTestFinished(database.remove)
  return { folder, variables: { DATABASE_URL: database.url } }
}

async function start({ folder, variables }: Place, more = {}): Promise<ServerProgram> {
  const server = await runServer({ ...variables, ...more }, folder)
  onTestFinished(async () => void (await server.end()))
  return server
}

const keyPattern = /petstore_[\w-]{43}/

/** The key that the first start prints; on MySQL, where it prints none, a key of the command. */
async function firstKey({ folder, variables }: Place, { stdout }: ServerProgram): Promise<string> {
  const shown = stdout.match(keyPattern)?.[0]
  if (engine === 'sqlite') return String(shown)
  expect(stdout).toContain('none yet; create one: npm run keys -- create NAME')
  expect(shown).toBeUndefined()
  const made = await runToEnd(programs.keys, variables, ['create', 'test'], folder)
  return made.stdout.trim()
}

/** The whole start message on stdout. */
function startText(port: number, { variables }: Place, key: string, pasted = '<API_KEY>'): string {
  const url = variables.DATABASE_URL ? new URL(variables.DATABASE_URL) : undefined
  const origin = `http://localhost:${port}`
  return `Petstore is running.

  REST      ${origin}/v1/pets
  tRPC      ${origin}/trpc
  OpenAPI   ${origin}/v1/openapi.json
  Database  ${url ? `MySQL: ${url.host}${url.pathname}` : 'SQLite, embedded: data/petstore.db'}
  API key   ${key}

A first request:

  curl ${origin}/v1/pets -H 'Authorization: Bearer ${pasted}' \\
    -H 'Content-Type: application/json' -d '{"name": "Rex", "categoryId": 1}' -w '\\n'

All operations, to read and to try:

  ${origin}/docs/

`
}

test('the first start prints URLs, a key and a first request; a restart keeps the pets', async () => {
  const place = await newPlace()
  const began = Date.now()
  const port = await freePort()
  const first = await start(place, { PORT: String(port) })
  const key = await firstKey(place, first)
  const origin = `http://localhost:${port}`
  if (engine === 'sqlite' && process.platform === 'linux') {
    expect((await fetch(`${first.origin}/readyz`)).status).toBe(200)
    // One connection to serve: those of the migrations and the first key are closed.
    const files = readdirSync(`/proc/${first.child.pid}/fd`).map((descriptor) => {
      try {
        return readlinkSync(`/proc/${first.child.pid}/fd/${descriptor}`)
      } catch {
        return '' // closed in the meantime
      }
    })
    expect(files.filter((file) => file.endsWith('/petstore.db'))).toHaveLength(1)
  }
  const shown = engine === 'sqlite' ? key : undefined
  const noKey = 'none yet; create one: npm run keys -- create NAME'
  expect(first.stdout).toBe(
    startText(
      port,
      place,
      shown ? `${shown}\n            Keep it: it is not shown again.` : noKey,
      shown,
    ),
  )
  const rest = restClient(first.origin, key)
  const made = await rest('POST', '/pets', { body: { name: 'Rex', categoryId: 1 } })
  expect(made.status).toBe(201)
  expect(made.headers.get('location')).toBe(`${origin}/v1/pets/1`)
  expect(await first.end('SIGTERM')).toBe(0)

  if (engine === 'sqlite') {
    await using sql = await openSql(`sqlite:${place.folder}/data/petstore.db`)
    const [row = {}] = await sql('select * from api_keys')
    const { name, created_at, expires_at, revoked_at, read_only } = row
    expect({ name, expires_at, revoked_at, read_only }).toEqual({
      name: 'first key',
      expires_at: null,
      revoked_at: null,
      read_only: 0n,
    })
    expect(Number(created_at)).toBeGreaterThanOrEqual(began)
    expect(Number(created_at)).toBeLessThanOrEqual(Date.now())
    // A start creates no key when all keys are revoked.
    await sql('update api_keys set revoked_at = 1')
  }
  const second = await start(place)
  const other = 'created before; for a new one: npm run keys -- create NAME'
  expect(second.stdout).toBe(startText(second.port, place, other))
  if (engine === 'sqlite') {
    await using sql = await openSql(`sqlite:${place.folder}/data/petstore.db`)
    await sql('update api_keys set revoked_at = null')
  }
  expect((await restClient(second.origin, key)('GET', '/pets/1')).text).toBe(made.text)
  expect(await second.end('SIGINT')).toBe(0)
})

test.runIf(engine === 'sqlite')('a failed start does not create the first key', async () => {
  const place = await newPlace()
  const busy = createServer().listen(0, '127.0.0.1')
  await once(busy, 'listening')
  const { port } = busy.address() as AddressInfo // not a path
  const variables = { PORT: '0', METRICS_PORT: String(port) }
  const failed = await runToEnd(programs.server, variables, [], place.folder)
  busy.close()
  expect(failed).toMatchObject({ code: 1, stdout: '' })
  expect((await start(place)).stdout).toMatch(keyPattern)
})

test('several instances start concurrently on one empty database', async () => {
  const place = await newPlace()
  const servers = await Promise.all(Array.from({ length: 4 }, () => start(place)))
  const shown = servers.flatMap(({ stdout }) => stdout.match(keyPattern) ?? [])
  expect(shown).toHaveLength(engine === 'sqlite' ? 1 : 0)
  const first =
    servers.find(({ stdout }) => keyPattern.test(stdout)) ?? (servers[0] as ServerProgram)
  const key = await firstKey(place, first)
  for (const { origin } of servers) {
    const rest = restClient(origin, key)
    expect((await rest('POST', '/pets', { body: { name: 'Rex', categoryId: 1 } })).status).toBe(201)
  }
  const { body } = await restClient(first.origin, key)('GET', '/pets')
  expect((body as { id: number }[]).map(({ id }) => id)).toEqual([1, 2, 3, 4])
})

test.runIf(engine === 'sqlite')(
  'two concurrent starts that find no key create one key',
  async () => {
    const { url, remove } = await newDatabase()
    onTestFinished(remove)
    await runToEnd(programs.migrate, { DATABASE_URL: url })
    const release = await holdWrites(url) // both find no key before either can create one
    const servers: Program[] = []
    for (const port of [await freePort(), await freePort()]) {
      const server = runProgram(programs.server, { DATABASE_URL: url, PORT: String(port) })
      onTestFinished(async () => void (await server.end()))
      servers.push(server)
      await eventually(async () => {
        const socket = connect(port, '127.0.0.1')
        await once(socket, 'connect')
        socket.destroy()
      })
      // The process looks for a key now; unfrozen, its wait for the database would time out.
      await setTimeout(500)
      await freeze(Number(server.child.pid))
    }
    await release()
    for (const { child } of servers) thaw(Number(child.pid))
    await eventually(() => {
      for (const { stdout } of servers) expect(stdout).toContain('Petstore is running')
    })
    expect(servers.flatMap(({ stdout }) => stdout.match(keyPattern) ?? [])).toHaveLength(1)
  },
)

test.each(['production', 'development'])(
  'NODE_ENV=%s: the response to an internal error has no details',
  async (mode) => {
    const place = await newPlace()
    const server = await start(place, { NODE_ENV: mode })
    const key = await firstKey(place, server)
    const url = place.variables.DATABASE_URL ?? `sqlite:${place.folder}/data/petstore.db`
    await using sql = await openSql(url)
    await sql('alter table pets rename to animals')
    await sql.close()
    for (const path of [
      '/v1/pets',
      '/v1/pets/1',
      '/trpc/listPets',
      '/trpc/listPets,listPets?batch=1',
    ]) {
      const answer = await keyedFetch(server.origin, key)(path)
      const text = await answer.text()
      expect(answer.status).toBe(500)
      expect(text).toContain('Internal server error')
      expect(text).not.toMatch(/stack|animals|table|sqlite|mysql|sql|node_modules|\.ts/i)
    }
    await server.logged(/no such table|doesn't exist/) // the log has the details
  },
)

if (engine === 'mysql') {
  test.each([
    ['a wrong password', { username: 'nobody', password: 'sesame' }, /Access denied/],
    ['a wrong database', { pathname: '/nowhere' }, /Unknown database/],
  ])('%s fails the start with one line', async (_, parts, reason) => {
    const url = Object.assign(new URL(inject('mysqlUrl')), { pathname: '/petstore' }, parts)
    const ended = await runToEnd(programs.server, { PORT: '0', DATABASE_URL: url.href })
    expect(ended).toMatchObject({ code: 1, stdout: '' })
    expect(ended.stderr).toMatch(/^DATABASE_URL: cannot use the database \S+: .+\n$/)
    expect(ended.stderr).toMatch(reason)
    expect(ended.stderr).not.toContain('sesame')
  })
}

test.runIf(engine === 'sqlite')(
  'with the options of npm start, the garbage of the start is collected before the first request',
  async () => {
    const observe = `import { constants, PerformanceObserver } from 'node:perf_hooks'
      new PerformanceObserver((list) => {
        for (const { detail } of list.getEntries()) {
          const isWhole = detail.flags & constants.NODE_PERFORMANCE_GC_FLAGS_ALL_AVAILABLE_GARBAGE
          if (isWhole) console.error(JSON.stringify({ msg: 'collected' }))
        }
      }).observe({ entryTypes: ['gc'] })`
    const { NODE_OPTIONS } = runFirst(observe)
    const server = await start(await newPlace(), {
      NODE_OPTIONS: `${SERVICE_FLAGS.join(' ')} ${NODE_OPTIONS}`,
    })
    await server.logged(/"collected"/)
  },
)

test.runIf(engine === 'sqlite')(
  'with the options of npm start, SIGUSR1 does not open the debugger to local users',
  async () => {
    const server = await start(await newPlace(), { NODE_OPTIONS: SERVICE_FLAGS.join(' ') })
    server.child.kill('SIGUSR1')
    await setTimeout(1_000)
    expect(server.stderr).not.toMatch(/debugger|inspector/i)
    expect((await fetch(`${server.origin}/healthz`)).status).toBe(200)
  },
)
