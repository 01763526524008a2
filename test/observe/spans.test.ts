/** Spans that a trace collector receives, and the log entries that belong to them. */
import { createTRPCClient, httpBatchLink } from '@trpc/client'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { type Collector, type Span, startCollector } from '../support/collector.ts'
import { beginCreation } from '../support/creation.ts'
import { engine, newDatabase, type TestDatabase } from '../support/database.ts'
import { outOfThree } from '../support/eventually.ts'
import { addKey, until } from '../support/instance.ts'
import { type LogEntry, runServer, type ServerProgram } from '../support/process.ts'
import { type KeyedInit, keyedFetch } from '../support/rest.ts'
import { type AppRouter, transformer } from '../support/router.ts'
import { openSql, type Sql } from '../support/sql.ts'

vi.setConfig({ testTimeout: 60_000 })

let collector: Collector
let database: TestDatabase
let sql: Sql
let key: string
let server: ServerProgram
beforeAll(async () => {
  collector = await startCollector()
  database = await newDatabase()
  sql = await openSql(database.url)
  server = await runServer({
    DATABASE_URL: database.url,
    DATABASE_TIMEOUT: '3s',
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    OTEL_EXPORTER_OTLP_HEADERS: 'x-tenant=shop',
    OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=test',
    OTEL_BSP_SCHEDULE_DELAY: '50',
  })
  await renewKey()
})
afterAll(async () => {
  expect(await server.end('SIGTERM')).toBe(0)
  await collector.stop()
  await sql.close()
  await database.remove()
})
afterEach(() => {
  // No span contains keys, inputs or SQL.
  for (const body of collector.bodies) expect(body.includes(key)).toBe(false)
  expect(JSON.stringify(collector.spans, big)).not.toMatch(/Sesame|987654321|select |insert /)
})

const big = (_key: string, value: unknown) => (typeof value === 'bigint' ? String(value) : value)

let serial = 0
/** The ids of a trace and a span that no other test has. */
function newTrace(): { traceId: string; spanId: string } {
  serial++
  return {
    traceId: `c0ffee${String(serial).padStart(26, '0')}`,
    spanId: `beef${String(serial).padStart(12, '0')}`,
  }
}

const ask = (path: string, init: KeyedInit = {}) => keyedFetch(server.origin, key)(path, init)

const creation = (name: string, headers: Record<string, string> = {}): KeyedInit => ({
  method: 'POST',
  headers,
  body: JSON.stringify({ name, categoryId: 987654321 }),
})

let lookedUp: number
/** Creates a key and caches it, so that the traces of the next seconds contain no look-up. */
async function renewKey(): Promise<void> {
  key = await addKey(sql)
  lookedUp = performance.now()
  await ask('/v1/pets')
}

/** The spans of a trace so far, without the statements that set up a new connection. */
const spansOf = (traceId: string) =>
  collector.spans.filter((span) => span.traceId === traceId && !/^(SET|SHOW)$/.test(span.name))

/** Sends a request in a new trace; waits for `count` spans, and returns them and the log entries. */
async function trace(
  path: string,
  count: number,
  init: KeyedInit = {},
): Promise<{ spans: Span[]; lines: LogEntry[]; parent: string; status: number }> {
  const { traceId, spanId } = newTrace()
  const traceparent = `00-${traceId}-${spanId}-01`
  if (performance.now() - lookedUp > 5_000) await renewKey()
  const headers = { ...init.headers, traceparent, tracestate: 'shop=7' }
  const { status } = await ask(path, { ...init, headers })
  const spans = () => spansOf(traceId)
  const lines = () => server.entries().filter((entry) => entry.traceId === traceId)
  // The entry of the request is the last one.
  const isOver = () => lines().some(({ msg }) => msg === 'request')
  await until(`${count} spans of ${path}`, () => spans().length >= count && isOver())
  expect(spans().map(({ name }) => name)).toHaveLength(count)
  return { spans: spans(), lines: lines(), parent: spanId, status }
}

const rest = [
  ['listPets', 'GET', '/v1/pets?status=sold', '/v1/pets', 200, {}],
  ['getPet', 'GET', '/v1/pets/1', '/v1/pets/{petId}', 200, {}],
  ['createPet', 'POST', '/v1/pets', '/v1/pets', 201, creation('Sesame')],
] as const

const system = engine === 'mysql' ? 'mysql' : 'sqlite'
const ofDatabase = (operation: string, table?: string) => ({
  'db.system.name': system,
  'db.operation.name': operation,
  'db.query.summary': table ? `${operation} ${table}` : operation,
  ...(table && { 'db.collection.name': table }),
  ...(engine === 'mysql' && {
    'db.namespace': new URL(database.url).pathname.slice(1),
    'server.address': new URL(database.url).hostname,
    'server.port': Number(new URL(database.url).port),
  }),
})

/** The statements of an operation, in order. */
const statementsOf = (operation: string) =>
  operation === 'createPet' ? ['INSERT pets'] : ['SELECT pets']

beforeEach(async () => {
  await sql(`insert into pets (name, category_id, status) values ('Rex', 3, 'available')`)
})

test.each(rest)('%s over REST: %s %s', async (operation, method, path, route, status, init) => {
  const statements = statementsOf(operation)
  const { spans, lines, parent } = await trace(path, 1 + statements.length, init)
  const [line, ...more] = lines
  expect(new Set(spans.map(({ state }) => state))).toEqual(new Set(['shop=7']))
  const call = spans.find(({ kind }) => kind === 'SERVER') as Span
  expect(call).toMatchObject({ name: operation, parentSpanId: parent, status: 'UNSET', links: [] })
  expect(call.attributes).toEqual({
    'http.request.method': method,
    'http.route': route,
    'http.response.status_code': status,
    'url.path': path.split('?')[0],
    'url.scheme': 'http',
  })
  expect(call.scope).toBe('petstore 1.0.0')
  expect(call.resource).toMatchObject({
    'service.name': 'petstore',
    'service.version': '1.0.0',
    'deployment.environment.name': 'test',
    'telemetry.sdk.language': 'nodejs',
  })
  expect(line).toMatchObject({ msg: 'request', operation, status, spanId: call.spanId })
  expect(more).toEqual([])
  const below = spans.filter(({ kind }) => kind === 'CLIENT').sort(byStart)
  expect(below.map(({ name }) => name)).toEqual(statements)
  for (const { name, parentSpanId, status, attributes, events, start, end } of below) {
    const [words = '', table] = name.split(' ')
    expect({ parentSpanId, status, events }).toEqual({
      parentSpanId: call.spanId,
      status: 'UNSET',
      events: 0,
    })
    expect(attributes).toEqual(ofDatabase(words, table))
    expect(start).toBeGreaterThanOrEqual(call.start)
    expect(end).toBeGreaterThan(start)
    expect(end).toBeLessThanOrEqual(call.end)
  }
})

const byStart = (one: Span, other: Span) => Number(one.start - other.start)

test('one call over tRPC is one span', async () => {
  const { spans, lines, parent } = await trace('/trpc/listPets', 2)
  const call = spans.find(({ kind }) => kind === 'SERVER') as Span
  expect(call).toMatchObject({ name: 'listPets', parentSpanId: parent })
  expect(call.attributes).toMatchObject({
    'http.route': '/trpc/{procedure}',
    'url.path': '/trpc/listPets',
    'http.response.status_code': 200,
  })
  expect(lines).toMatchObject([{ operation: 'listPets', surface: 'trpc', spanId: call.spanId }])
})

test('a batch is a span with a child for each call, whose statements are its children', async () => {
  const { traceId, spanId } = newTrace()
  const client = createTRPCClient<AppRouter>({
    links: [
      httpBatchLink({
        url: `${server.origin}/trpc`,
        transformer,
        headers: { authorization: `Bearer ${key}`, traceparent: `00-${traceId}-${spanId}-01` },
      }),
    ],
  })
  const [pets, missing, invalid] = await Promise.allSettled([
    client.listPets.query({}),
    client.getPet.query({ petId: 404_404 }),
    client.listPets.query({ limit: 0 }),
  ])
  expect([pets, missing, invalid].map(({ status }) => status)).toEqual([
    'fulfilled',
    'rejected',
    'rejected',
  ])
  const spans = () => spansOf(traceId)
  await until('all spans', () => spans().length >= 6)
  const batch = spans().find(({ kind }) => kind === 'SERVER') as Span
  expect(batch).toMatchObject({ name: 'batch', parentSpanId: spanId, status: 'UNSET' })
  expect(batch.attributes['http.response.status_code']).toBe(207)
  const calls = spans()
    .filter(({ kind }) => kind === 'INTERNAL')
    .map((call) => ({
      operation: call.name,
      status: call.attributes['http.response.status_code'],
      below: spans()
        .filter(({ parentSpanId }) => parentSpanId === call.spanId)
        .map(({ name }) => name),
      spanId: call.spanId,
      parentSpanId: call.parentSpanId,
    }))
  expect(calls).toHaveLength(3)
  for (const { parentSpanId } of calls) expect(parentSpanId).toBe(batch.spanId)
  const shown = calls.map(({ operation, status, below }) => ({ operation, status, below }))
  expect(shown).toContainEqual({ operation: 'listPets', status: 200, below: ['SELECT pets'] })
  expect(shown).toContainEqual({ operation: 'getPet', status: 404, below: ['SELECT pets'] })
  expect(shown).toContainEqual({ operation: 'listPets', status: 400, below: [] })
  // Each log entry has the span of its call.
  const lines = () => server.entries().filter((entry) => entry.traceId === traceId)
  await until('all lines', () => lines().length >= 3)
  expect(
    new Set(lines().map(({ operation, status, spanId }) => `${operation} ${status} ${spanId}`)),
  ).toEqual(
    new Set(calls.map(({ operation, status, spanId }) => `${operation} ${status} ${spanId}`)),
  )
})

test.each([
  ['getPet', [{ petId: 1 }, { petId: 2 }, { petId: 1 }, { petId: 404_404 }]],
  ['listPets', [{ limit: 2 }, { limit: 2 }, { limit: 2 }, { limit: 2 }]],
])('concurrent calls of %s share one query, on either engine', async (procedure, inputs) => {
  const calls = inputs.map(() => procedure).join(',')
  const encoded = Object.entries(inputs).map(([index, input]) => [
    index,
    transformer.serialize(input),
  ])
  const input = encodeURIComponent(JSON.stringify(Object.fromEntries(encoded)))
  const { spans } = await trace(`/trpc/${calls}?batch=1&input=${input}`, 2 + inputs.length)
  expect(spans.map(({ name }) => name).sort()).toEqual(
    ['SELECT pets', 'batch', ...inputs.map(() => procedure)].sort(),
  )
})

test('a batch of one call has the spans and the line of the call alone', async () => {
  const input = encodeURIComponent(JSON.stringify({ 0: transformer.serialize({ petId: 404_404 }) }))
  const { spans, lines } = await trace(`/trpc/getPet?batch=1&input=${input}`, 2)
  const call = spans.find(({ kind }) => kind === 'SERVER')
  expect(spans.map(({ name }) => name).sort()).toEqual(['SELECT pets', 'getPet'])
  expect(lines).toMatchObject([{ operation: 'getPet', status: 404, spanId: call?.spanId }])
})

test('a batch without traceparent is one trace', async () => {
  const before = collector.spans.length
  const input = encodeURIComponent('{}')
  expect((await ask(`/trpc/listPets,listPets?batch=1&input=${input}`)).status).toBe(200)
  const spans = () => collector.spans.slice(before)
  await until('all spans', () => spans().filter(({ kind }) => kind === 'INTERNAL').length === 2)
  await until('its own span', () => spans().some(({ name }) => name === 'batch'))
  expect(new Set(spans().map(({ traceId }) => traceId)).size).toBe(1)
  expect(spans().find(({ name }) => name === 'batch')?.parentSpanId).toBe('')
})

describe('the trace of a traceparent header', () => {
  test('is not recorded when it is not sampled; the log has its id', async () => {
    const { traceId, spanId } = newTrace()
    await ask('/v1/pets', { headers: { traceparent: `00-${traceId}-${spanId}-00` } })
    await until('the line', () => server.entries().some((entry) => entry.traceId === traceId))
    await trace('/v1/pets', 2) // late spans would arrive before these
    expect(spansOf(traceId)).toEqual([])
  })

  test.each([
    '',
    'nonsense',
    `00-${'0'.repeat(32)}-beef000000000000-01`,
    `00-${'a'.repeat(32)}-${'0'.repeat(16)}-01`,
    `ff-${'a'.repeat(32)}-${'b'.repeat(16)}-01`,
    `00-${'A'.repeat(32)}-${'b'.repeat(16)}-01`,
  ])('is replaced by a new one when traceparent is %j', async (traceparent) => {
    const id = `strange-${++serial}`
    await ask('/v1/pets', { headers: { traceparent, 'x-request-id': id } })
    const find = () => server.entries().find(({ requestId }) => requestId === id)
    await until('the line', () => find() !== undefined)
    const spans = () => collector.spans.filter(({ spanId }) => spanId === find()?.spanId)
    await until('the span', () => spans().length === 1)
    expect(spans()[0]).toMatchObject({
      name: 'listPets',
      parentSpanId: '',
      traceId: find()?.traceId,
    })
    expect(find()?.traceId).toMatch(/^(?!a{32}|0{32})[\da-f]{32}$/)
  })
})

describe('errors', () => {
  test.each([
    ['/v1/pets?limit=0', 400, {}],
    ['/v1/pets/404404', 404, {}],
    ['/v1/pets', 401, { headers: { authorization: 'Basic nobody' } }],
  ])('%s returns %i, which is no error of the span', async (path, status, init) => {
    const count = status === 400 ? 1 : 2 // plus a statement, or the look-up of the key
    const { spans } = await trace(path, count, init)
    const call = spans.find(({ kind }) => kind === 'SERVER')
    expect(call?.attributes['http.response.status_code']).toBe(status)
    expect(call?.attributes).not.toHaveProperty('error.type')
    expect(spans.map((span) => span.status)).not.toContain('ERROR')
  })

  test('a bug: the span has the error type, without the message of the database', async () => {
    await sql('alter table pets rename column category_id to category')
    try {
      const { spans, lines } = await trace('/v1/pets', 2, creation('Sesame'))
      const call = spans.find(({ kind }) => kind === 'SERVER')
      expect(call).toMatchObject({ status: 'ERROR', message: '', events: 0 })
      expect(call?.attributes).toMatchObject({
        'http.response.status_code': 500,
        'error.type': '500',
      })
      const statement = spans.find(({ kind }) => kind === 'CLIENT')
      expect(statement).toMatchObject({ status: 'ERROR', message: '', events: 0 })
      expect(statement?.attributes).toMatchObject(
        engine === 'mysql'
          ? { 'error.type': 'ER_BAD_FIELD_ERROR', 'db.response.status_code': '1054' }
          : { 'error.type': 'ERR_SQLITE_ERROR', 'db.response.status_code': '1' },
      )
      // The log entry with the cause has the trace, too.
      expect(lines.map(({ level }) => level).sort()).toEqual([30, 50])
      expect(new Set(lines.map(({ spanId }) => spanId))).toEqual(new Set([call?.spanId]))
    } finally {
      await sql('alter table pets rename column category to category_id')
    }
  })

  test('an unavailable database: the span has the error type', async () => {
    await renewKey() // not possible while the database is locked
    await sql(engine === 'mysql' ? 'lock tables pets write' : 'begin immediate')
    try {
      const path = engine === 'mysql' ? '/v1/pets/1' : '/v1/pets'
      const init = engine === 'mysql' ? {} : creation('Sesame')
      // The calls of a batch share its deadline.
      const list = `/trpc/listPets,listPets?batch=1&input=${encodeURIComponent('{}')}`
      const input = '"[{\\"name\\":1,\\"categoryId\\":2},\\"Sesame\\",3]"'
      const body = `{"0":${input},"1":${input}}`
      const creations = '/trpc/createPet,createPet?batch=1'
      const batches =
        engine === 'mysql' ? [ask(list), ask(creations, { method: 'POST', body })] : []
      const { spans, status } = await trace(path, 2, init)
      expect(status).toBe(503)
      for (const batch of batches) expect((await batch).status).toBe(503)
      expect(spans.find(({ kind }) => kind === 'SERVER')).toMatchObject({
        status: 'ERROR',
        attributes: { 'error.type': '503' },
      })
      expect(spans.find(({ kind }) => kind === 'CLIENT')).toMatchObject({
        name: engine === 'mysql' ? 'SELECT pets' : 'INSERT pets',
        status: 'ERROR',
        // On SQLite the statement is retried until the deadline, and may fail just before it.
        attributes: {
          'error.type': expect.stringMatching(/^(DatabaseTimeoutError|ERR_SQLITE_ERROR)$/),
        },
      })
    } finally {
      await sql(engine === 'mysql' ? 'unlock tables' : 'rollback')
    }
  })
})

test('the span of a client that disconnects has status code 499', async () => {
  const { traceId, spanId } = newTrace()
  const traceparent = `00-${traceId}-${spanId}-01`
  const creation = await beginCreation(server.port, key, { traceparent })
  creation.leave()
  await until('the span', () => spansOf(traceId).length > 0)
  expect(spansOf(traceId)).toMatchObject([{ attributes: { 'http.response.status_code': 499 } }])
})

test('the look-up of a key that is not cached, and its statement, are children of the call', async () => {
  const other = await addKey(sql)
  const { spans, status } = await trace('/v1/pets', 4, {
    headers: { authorization: `Bearer ${other}` },
  })
  expect(status).toBe(200)
  const [lookUp, query, list] = ['API key look-up', 'SELECT api_keys', 'SELECT pets'].map(
    (wanted) => spans.find(({ name }) => name === wanted) as Span,
  ) as [Span, Span, Span]
  const { spanId: parentSpanId } = spans.find(({ kind }) => kind === 'SERVER') as Span
  expect(lookUp).toMatchObject({ kind: 'INTERNAL', parentSpanId, attributes: {} })
  expect(query).toMatchObject({ kind: 'CLIENT', parentSpanId })
  expect(lookUp.start).toBeLessThanOrEqual(query.start)
  expect(lookUp.end).toBeLessThanOrEqual(list.start)
  for (const body of collector.bodies) expect(body.includes(other)).toBe(false)
})

test('a failed look-up of a key has its span, too', async () => {
  const headers = { authorization: `Bearer ${await addKey(sql)}` }
  await renewKey()
  await sql('alter table api_keys rename to elsewhere')
  const { spans, status } = await trace('/v1/pets', 3, { headers })
  await sql('alter table elsewhere rename to api_keys')
  expect(status).toBe(500)
  expect(spans.map(({ name }) => name)).toContain('API key look-up')
})

test('a key in a URL is not in the span', async () => {
  const { spans } = await trace(`/v1/pets/${key}`, 1)
  expect(spans[0]?.attributes['url.path']).toMatch(/^\/v1\/pets\/(?!petstore_\w{20})/)
})

test('the exporter sends the headers of OTEL_EXPORTER_OTLP_HEADERS', () => {
  expect(collector.headers[0]).toMatchObject({ 'x-tenant': 'shop' })
})

test('health checks, the OpenAPI document and unknown paths have no span', async () => {
  for (const path of ['/healthz', '/readyz', '/v1/openapi.json', '/nowhere', '/v1/nowhere']) {
    const { traceId, spanId } = newTrace()
    await ask(path, { headers: { traceparent: `00-${traceId}-${spanId}-01` } })
  }
  const before = serial
  await trace('/v1/pets', 2)
  const unexpected = collector.spans.filter(
    ({ traceId }) =>
      traceId.startsWith('c0ffee') &&
      Number(traceId.slice(6)) > before - 5 &&
      Number(traceId.slice(6)) <= before,
  )
  expect(unexpected).toEqual([])
})

test('the span of a creation with an Idempotency-Key has all statements of its transaction', async () => {
  const init = creation('Sesame', { 'idempotency-key': `"${crypto.randomUUID()}"` })
  const count = engine === 'mysql' ? 6 : 5
  const { spans } = await trace('/v1/pets', count, init)
  const call = spans.find(({ kind }) => kind === 'SERVER')
  const below = spans.filter(({ kind }) => kind === 'CLIENT').sort(byStart)
  for (const { parentSpanId } of below) expect(parentSpanId).toBe(call?.spanId)
  const names = below.map(({ name }) => name)
  expect(names).toContain('INSERT pets')
  expect(names).toContain('INSERT idempotency_keys')
  expect(names.at(-1)).toBe('COMMIT')

  // The row of an expired key is replaced, and its answer is stored after the creation.
  await sql('update idempotency_keys set created_at = 0')
  const again = await trace('/v1/pets', count + 2, init)
  const replacing = again.spans.filter(({ kind }) => kind === 'CLIENT').sort(byStart)
  const onTables = replacing.map(({ name }) => name).filter((name) => name.includes(' '))
  expect(onTables).toEqual([
    'SELECT idempotency_keys',
    'DELETE idempotency_keys',
    'INSERT idempotency_keys',
    'INSERT pets',
    'UPDATE idempotency_keys',
  ])
})

// On a busy machine the calls may arrive one by one.
test(
  'a statement that concurrent calls share is a child of one call, and linked with the others',
  outOfThree,
  async () => {
    // Calls share a statement when they arrive together, and on MySQL while others run. Every third
    // call is not sampled: that must not lose spans of others.
    const traces = Array.from({ length: 40 }, newTrace)
    const statuses = await Promise.all(
      traces.map(async ({ traceId, spanId }, index) => {
        const headers = { traceparent: `00-${traceId}-${spanId}-0${index % 3 === 0 ? 0 : 1}` }
        return (await ask('/v1/pets', creation('Sesame', headers))).status
      }),
    )
    expect(new Set(statuses)).toEqual(new Set([201]))
    const ids = new Set(traces.map(({ traceId }) => traceId))
    const spans = () => collector.spans.filter(({ traceId }) => ids.has(traceId))
    const calls = () => spans().filter(({ kind }) => kind === 'SERVER')
    await until('all calls', () => calls().length === 26)
    await trace('/v1/pets', 2) // late spans would arrive before these
    const shared = spans()
      .filter(({ kind, links }) => kind === 'CLIENT' && links.length > 0)
      .filter(({ name }) => !/^(SET|SHOW)$/.test(name)) // of a new connection
    expect(shared.length).toBeGreaterThan(0)
    expect(new Set(shared.map(({ name }) => name))).toEqual(new Set(['INSERT pets']))
    const byId = new Map(calls().map((call) => [call.spanId, call]))
    for (const { spanId, traceId, parentSpanId, links } of shared) {
      expect(byId.get(parentSpanId)?.traceId).toBe(traceId)
      for (const link of links) {
        expect(byId.get(link.spanId)).toMatchObject({
          traceId: link.traceId,
          links: expect.arrayContaining([expect.objectContaining({ traceId, spanId })]),
        })
      }
    }
    // No span is lost: each call has its INSERT as a child or a link.
    const done = spans().filter(({ name }) => name === 'INSERT pets')
    const reached = done.flatMap(({ parentSpanId, links }) => [
      parentSpanId,
      ...links.map(({ spanId }) => spanId),
    ])
    expect(reached.sort()).toEqual([...byId.keys()].sort())
  },
)

test(
  'a statement of a transaction that concurrent calls share is linked with each of them once',
  outOfThree,
  async () => {
    const traces = Array.from({ length: 40 }, newTrace)
    await Promise.all(
      traces.map(async ({ traceId, spanId }) => {
        const headers = {
          traceparent: `00-${traceId}-${spanId}-01`,
          'idempotency-key': `"${crypto.randomUUID()}"`,
        }
        const answer = await ask('/v1/pets', creation('Sesame', headers))
        expect(answer.status).toBe(201)
      }),
    )
    const ids = new Set(traces.map(({ traceId }) => traceId))
    const spans = () => collector.spans.filter(({ traceId }) => ids.has(traceId))
    const calls = () => spans().filter(({ kind }) => kind === 'SERVER')
    await until('all calls', () => calls().length === traces.length)
    await trace('/v1/pets', 2) // late spans would arrive before these
    const shared = spans().filter(({ kind, links }) => kind === 'CLIENT' && links.length > 0)
    expect(shared.map(({ name }) => name)).toContain('COMMIT')
    for (const { name, parentSpanId, links } of shared) {
      const linked = [parentSpanId, ...links.map(({ spanId }) => spanId)]
      expect(linked, name).toEqual([...new Set(linked)])
    }
  },
)
