/** The log of a process: its entries, and secrets that it must not contain. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import path from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { stripVTControlCharacters } from 'node:util'
import { stringify } from 'devalue'
import { afterEach, describe, expect, test } from 'vitest'
import { beginCreation } from '../support/creation.ts'
import { engine, newFolder, testOnce } from '../support/database.ts'
import { instanceForFile, running, until } from '../support/instance.ts'
import { type LogEntry, programs, runToEnd } from '../support/process.ts'
import { abortable, requestText } from '../support/raw.ts'
import type { KeyedInit } from '../support/rest.ts'
import { readSlowly } from '../support/slow-reader.ts'

const service = await instanceForFile({ DATABASE_TIMEOUT: '3s' })
const { program: server, key, sql } = service
afterEach(() => {
  // Every line is JSON, and none contains a key.
  expect(server.entries().length).toBeGreaterThan(0)
  expect(server.stderr).not.toContain(key)
})

let serial = 0
/** An id that no other request has. */
const newId = () => `log-${++serial}`

const ask = (id: string, path: string, { headers, ...init }: KeyedInit = {}) =>
  service.fetch(path, { ...init, headers: { 'x-request-id': id, ...headers } })

/** All entries of the request with this id, after its end. */
async function entriesOf(id: string): Promise<LogEntry[]> {
  const find = () => server.entries().filter(({ requestId }) => requestId === id)
  await until('it is logged', () => find().some(({ msg }) => msg === 'request'))
  // A late entry would be logged before that of a later request.
  const next = newId()
  await ask(next, '/nothing')
  await server.logged(new RegExp(`"${next}"`))
  return find()
}

/** The only entry of a request without an internal error. */
async function entryOf(id: string): Promise<LogEntry> {
  const entries = await entriesOf(id)
  expect(entries).toHaveLength(1)
  return entries[0] as LogEntry
}

testOnce(
  'an X-Request-Id of up to 128 allowed characters is kept, any other is replaced',
  async () => {
    for (const id of ['a'.repeat(128), 'A-z_0.9:/+=', '7']) {
      expect((await ask(id, '/v1/pets')).headers.get('x-request-id')).toBe(id)
    }
    const given = new Set<string>()
    for (const id of [key, '', 'two words', 'x'.repeat(129), '{"a":1}', 'a"b', 'a,b', '<b>']) {
      const own = String((await ask(id, '/v1/pets')).headers.get('x-request-id'))
      expect(own).toMatch(/^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/)
      expect((await entryOf(own)).operation).toBe('listPets')
      given.add(own)
    }
    expect(given.size).toBe(8)
  },
)

testOnce('each of 30 concurrent requests has its own line', async () => {
  const ids = Array.from({ length: 30 }, newId)
  await Promise.all(ids.map((id, index) => ask(id, `/v1/pets/${1_000 + index}`)))
  const durations: number[] = []
  for (const { status, duration } of await Promise.all(ids.map(entryOf))) {
    expect(status).toBe(404)
    durations.push(Number(duration))
  }
  expect(durations.some((duration) => !Number.isInteger(duration))).toBe(true) // they have a decimal
})

testOnce(
  'the duration is measured from the first byte to the last, in ms and as a metric in seconds',
  async () => {
    const id = newId()
    const headers = { 'X-Request-Id': id, Connection: 'close' }
    const creation = await beginCreation(server.port, key, headers)
    const began = performance.now()
    await setTimeout(300)
    const waited = performance.now() - began
    expect(await creation.finish()).toMatch(/^HTTP\/1\.1 201/)
    const { duration } = await entryOf(id)
    expect(duration).toBeGreaterThan(waited * 0.9)
    const labels = 'surface="rest",operation="createPet",status="201"'
    const metric = (name: string) => service.metric(`petstore_request_duration_seconds_${name}}`)
    expect(await metric(`sum{${labels}`)).toBeCloseTo(Number(duration) / 1_000, 3)
    const buckets = ['0.25', '+Inf'].map((le) => metric(`bucket{le="${le}",${labels}`))
    expect(await Promise.all(buckets)).toEqual([0, 1])
  },
)

describe.runIf(engine === 'sqlite')('a client that disconnects is logged with 499', () => {
  test('in the middle of its body', async () => {
    const id = newId()
    const creation = await beginCreation(server.port, key, { 'X-Request-Id': id })
    creation.leave()
    const [first, ...more] = await entriesOf(id)
    expect(first).toEqual({
      level: 'info',
      time: expect.any(Number),
      pid: server.child.pid,
      hostname: hostname(),
      requestId: id,
      surface: 'rest',
      operation: 'createPet',
      method: 'POST',
      status: 499,
      duration: expect.any(Number),
      keyId: '2', // the first start creates a key
      msg: 'request',
    })
    expect(more).toEqual([])
  })

  test('in the middle of its response', async () => {
    const id = newId()
    const request = { headers: [`X-Request-Id: ${id}`] }
    const reader = await readSlowly(server.port, requestText('GET /docs/', request))
    reader.leave()
    expect(await entriesOf(id)).toEqual([
      expect.objectContaining({ status: 499, address: '127.0.0.1' }),
    ])
  })

  test('in the middle of the response to a batch, as one entry', async () => {
    // All different, because devalue writes equal strings once.
    const names = Array.from(
      { length: 20 },
      (_, index) => `('${String(index).padStart(255, 'x')}', 3, 'sold')`,
    )
    await sql(`insert into pets (name, category_id, status) values ${names.join(', ')}`)
    const id = newId()
    const batch = `GET /trpc/${Array(20).fill('listPets').join()}?batch=1`
    const request = requestText(batch, { key, headers: [`X-Request-Id: ${id}`] })
    const reader = await readSlowly(server.port, request)
    reader.leave()
    const entries = (await entriesOf(id)).map(({ operation, status }) => [operation, status])
    expect(entries).toEqual([['batch', 499]])
  })
})

test.runIf(engine === 'mysql')(
  'a client with an unknown key that disconnects is logged with its IP address',
  async () => {
    await sql('lock tables api_keys write')
    try {
      const id = newId()
      const unknown = { key: `petstore_${'s'.repeat(43)}`, headers: [`X-Request-Id: ${id}`] }
      const socket = await abortable(server.port, 'GET /v1/pets', unknown)
      const lookUps = () => running(sql, '%from %api_keys%')
      await until('the key is looked up', async () => (await lookUps()).length === 1)
      socket.resetAndDestroy()
      expect(await entryOf(id)).toMatchObject({
        status: 499,
        address: '127.0.0.1',
        keyPrefix: 'petstore_ssssss',
      })
    } finally {
      await sql('unlock tables')
    }
  },
)

// whole-answers.once.test.ts has the whole lines of 500 and 503.
test.each(['/v1/pets', '/trpc/createPet'])(
  'a 500 of %s has a second line, with the cause and without the input',
  async (path) => {
    const id = newId()
    const body = path.startsWith('/v1')
      ? '{"name":"Sesame Street","categoryId":987654321}'
      : JSON.stringify('[{"name":1,"categoryId":2},"Sesame Street",987654321]')
    await sql('alter table pets rename column category_id to category')
    try {
      expect((await ask(id, path, { method: 'POST', body })).status).toBe(500)
    } finally {
      await sql('alter table pets rename column category to category_id')
    }
    const [cause, line, ...more] = await entriesOf(id)
    expect(cause).toMatchObject({
      level: 'error',
      msg: 'Internal server error',
      operation: 'createPet',
      err: { message: expect.stringMatching(/category_id/), stack: expect.any(String) },
    })
    expect(line).toMatchObject({ msg: 'request', operation: 'createPet', status: 500 })
    expect(more).toEqual([])
    expect(server.stderr).not.toMatch(/Sesame|987654321/)
  },
)

test.each(['/v1/pets', '/trpc/createPet'])(
  'the cause of a 500 of %s does not quote a row that an index of the operator rejects',
  async (path) => {
    await sql("insert into pets (name, category_id, status) values ('Sesame', 3, 'sold')")
    await sql('create unique index operators_own on pets (name)')
    const input = { name: 'Sesame', categoryId: 3 }
    const text = JSON.stringify(input)
    const body = path.startsWith('/v1') ? text : JSON.stringify(stringify(input))
    const id = newId()
    try {
      expect((await ask(id, path, { method: 'POST', body })).status).toBe(500)
    } finally {
      await sql(`drop index operators_own${engine === 'mysql' ? ' on pets' : ''}`)
      await sql("delete from pets where name = 'Sesame'")
    }
    const [cause] = await entriesOf(id)
    const names = engine === 'mysql' ? /for key '(pets\.)?operators_own'/ : /pets\.name/
    const err = { message: expect.stringMatching(names) }
    expect(cause).toMatchObject({ operation: 'createPet', err })
    expect(server.stderr).not.toContain('Sesame')
  },
)
test.runIf(engine === 'sqlite')('a line has a priority where stderr is the journal', async () => {
  const folder = newFolder()
  const file = path.join(folder, 'log')
  const written = async (stream: bigint) => {
    writeFileSync(file, '')
    const { dev, ino } = statSync(file, { bigint: true })
    const variables = { PORT: 'abc', JOURNAL_STREAM: `${dev}:${ino + stream}` }
    const toFile = ['sh', '-c', `exec "$@" 2> ${file}`, 'sh']
    await runToEnd(programs.server, variables, [], folder, toFile)
    return readFileSync(file, 'utf8')
  }
  expect(await written(0n)).toMatch(/^<2>\{"level":"fatal",.+\}\n$/)
  // A file of a child, which inherits the variable.
  expect(await written(1n)).toMatch(/^\{"level":"fatal",.+\}\n$/)
})

// util-linux's `script` runs a program in a terminal.
test.runIf(engine === 'sqlite' && existsSync('/usr/bin/script'))(
  'the log in a terminal is formatted for reading',
  async () => {
    const { PATH, HOME, NODE_COMPILE_CACHE } = process.env
    // The log is not on stdout, whose lines are marked.
    const program = `${process.execPath} ${programs.server} | sed -u 's/^/stdout:/'`
    const child = spawn('/usr/bin/script', ['-qfec', program, '/dev/null'], {
      env: { PATH, HOME, NODE_COMPILE_CACHE, PORT: '0', DATABASE_URL: service.databaseUrl },
      stdio: ['pipe', 'pipe', 'ignore'],
    })
    let shown = ''
    child.stdout.on('data', (chunk) => (shown += chunk))
    const until = async (pattern: RegExp) => {
      while (!pattern.test(shown)) await once(child.stdout, 'data')
      return String(pattern.exec(shown)?.[1])
    }
    const origin = await until(/"rest":"(http:\/\/\S+)\/v1\/pets/)
    await fetch(`${origin}/v1/pets/7`, { headers: { 'x-request-id': 'terminal-7' } })
    const line = await until(/(.*terminal-7.*)\r?\n/)
    const ended = once(child, 'close')
    child.stdin.write('\x03') // Ctrl-C
    await ended
    expect(stripVTControlCharacters(line)).toMatch(
      /^\[\d\d:\d\d:\d\d\.\d{3}\] INFO: request \{"requestId":"terminal-7","surface":"rest",.*\}$/,
    )
    expect(line).not.toMatch(/"(level|pid|hostname|time)":/)
    expect(shown).toContain('Stopped')
  },
)
