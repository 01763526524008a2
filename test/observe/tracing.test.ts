/** The configuration of tracing: loaded packages, samplers, unreachable collectors, the stop. */
import { pino } from 'pino'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { DuplicateError, LockedError } from '../../db/errors.ts'
import { startTracing } from '../../src/observe/tracing.ts'
import { type Collector, type Span, startCollector } from '../support/collector.ts'
import { engine, newDatabase } from '../support/database.ts'
import { outOfThree } from '../support/eventually.ts'
import { addKey, until } from '../support/instance.ts'
import { freePort } from '../support/mysql.ts'
import { runServer, type ServerProgram } from '../support/process.ts'
import { keyedFetch } from '../support/rest.ts'
import { startService } from '../support/service.ts'
import { openSql } from '../support/sql.ts'
import { withHooks } from '../support/watched.ts'

// Several processes start here, on a machine that may be busy with other tests.
vi.setConfig({ testTimeout: 90_000 })

// Only the test of WORKERS depends on the engine.
const testOnce = test.runIf(engine === 'sqlite')

async function start(
  variables: Record<string, string>,
): Promise<
  ServerProgram & { ask(path: string, headers?: Record<string, string>): Promise<number> }
> {
  const database = await newDatabase()
  onTestFinished(database.remove)
  const server = await runServer({ DATABASE_URL: database.url, ...variables })
  onTestFinished(async () => void (await server.end()))
  await using sql = await openSql(database.url)
  const key = await addKey(sql)
  await sql.close()
  return Object.assign(server, {
    async ask(path: string, headers = {}) {
      const init = { headers: { connection: 'close', ...headers } }
      const answer = await keyedFetch(server.origin, key)(path, init)
      await answer.arrayBuffer()
      return answer.status
    },
  })
}

async function collect(port?: number): Promise<Collector> {
  const collector = await startCollector(port)
  onTestFinished(() => collector.stop())
  return collector
}

const calls = (collector: Collector): Span[] =>
  collector.spans.filter(({ kind }) => kind === 'SERVER')

// The Prometheus client depends on the OpenTelemetry API itself.
const IS_PROMETHEUS = `context.parentURL?.includes('/prom-client/')`

/** Logs the name of each OpenTelemetry package that is loaded. */
const logLoaded = withHooks(`
  const isLogged = specifier.startsWith('@opentelemetry/') && !${IS_PROMETHEUS}
  if (isLogged) writeSync(2, JSON.stringify({ msg: 'loaded', name: specifier }) + '\\n')
  return next(specifier, context)`)

const loaded = (server: ServerProgram) =>
  new Set(
    server
      .entries()
      .filter(({ msg }) => msg === 'loaded')
      .map(({ name }) => name),
  )

describe('OpenTelemetry', () => {
  testOnce('is not loaded without a collector', async () => {
    const server = await start({ ...logLoaded, OTEL_SERVICE_NAME: 'shop' })
    const id = '0af7651916cd43dd8448eb211c80319c'
    const traceparent = `00-${id}-b7ad6b7169203331-01`
    expect(await server.ask('/v1/pets', { traceparent })).toBe(200)
    const line = JSON.parse(await server.logged(/"listPets"/))
    expect(line).not.toHaveProperty('traceId')
    expect(line).not.toHaveProperty('spanId')
    expect(await server.end('SIGTERM')).toBe(0)
    expect(loaded(server)).toEqual(new Set())
  })

  testOnce('is loaded with a collector', async () => {
    const collector = await collect()
    const server = await start({ ...logLoaded, OTEL_EXPORTER_OTLP_ENDPOINT: collector.url })
    expect(loaded(server)).toContain('@opentelemetry/sdk-trace')
  })
})

describe('a stop', () => {
  testOnce('sends the remaining spans', async () => {
    const collector = await collect()
    const server = await start({
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_BSP_SCHEDULE_DELAY: '60000',
      OTEL_SERVICE_NAME: 'shop',
      OTEL_RESOURCE_ATTRIBUTES: 'service.name=other,service.version=7',
    })
    for (let call = 0; call < 20; call++) expect(await server.ask('/v1/pets')).toBe(200)
    expect(collector.spans).toEqual([])
    expect(await server.end('SIGTERM')).toBe(0)
    expect(calls(collector)).toHaveLength(20)
    expect(calls(collector)[0]?.resource).toMatchObject({
      'service.name': 'shop',
      'service.version': '7',
    })
    expect(server.stderr).not.toMatch(/collector|cut off/)
  })

  testOnce('ends with 0 when the collector rejects the remaining spans', async () => {
    const collector = await collect()
    collector.status = 400
    const server = await start({
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_BSP_SCHEDULE_DELAY: '60000',
    })
    expect(await server.ask('/v1/pets')).toBe(200)
    expect(await server.end('SIGTERM')).toBe(0)
    expect(collector.bodies).toHaveLength(1)
    expect(server.stderr).toMatch(/"Stopped"/)
  })

  // The exporter itself would retry for ten seconds.
  testOnce.each([
    ['9s', 0, /"Stopped"/],
    ['500ms', 1, /cut off/],
  ])(
    'with SHUTDOWN_TIMEOUT=%s does not wait for a collector that does not answer',
    outOfThree,
    async (timeout, code, message) => {
      const collector = await collect()
      collector.status = undefined
      const server = await start({
        OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
        OTEL_BSP_SCHEDULE_DELAY: '1',
        SHUTDOWN_TIMEOUT: timeout,
      })
      const began = performance.now()
      for (let call = 0; call < 20; call++) expect(await server.ask('/v1/pets')).toBe(200)
      expect(await server.end('SIGTERM')).toBe(code)
      expect(performance.now() - began).toBeLessThan(8_000)
      expect(server.stderr).toMatch(message)
    },
  )

  testOnce('does not wait for an unreachable collector', async () => {
    const port = await freePort()
    const server = await start({
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}`,
      OTEL_BSP_SCHEDULE_DELAY: '1',
    })
    expect(await server.ask('/v1/pets')).toBe(200)
    const began = performance.now()
    expect(await server.end('SIGTERM')).toBe(0)
    expect(performance.now() - began).toBeLessThan(8_000)
    expect(server.stderr).toMatch(/"Stopped"/)
  })
})

testOnce(
  'an unreachable collector disturbs no call, and logs one warning',
  outOfThree,
  async () => {
    const port = await freePort()
    const server = await start({
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}`,
      OTEL_EXPORTER_OTLP_TIMEOUT: '100',
      OTEL_BSP_SCHEDULE_DELAY: '10',
    })
    const messages = () =>
      server.entries().filter(({ level, msg }) => level !== 30 || /collector/i.test(String(msg)))
    const callFor = async (milliseconds: number) => {
      const end = performance.now() + milliseconds
      while (performance.now() < end) expect(await server.ask('/v1/pets')).toBe(200)
    }
    await callFor(1_000) // dozens of failures
    expect(messages()).toMatchObject([
      {
        level: 40,
        msg: 'The trace collector is unreachable: spans are lost',
        err: { message: expect.stringContaining('ECONNREFUSED') },
      },
    ])
    const collector = await collect(port)
    await callFor(300)
    await until('the recovery is logged', () => messages().length > 1)
    expect(calls(collector).length).toBeGreaterThan(0)
    collector.status = 400
    await callFor(300)
    collector.status = 200
    await callFor(300)
    collector.status = undefined
    await callFor(300)
    // Further failures of the collector log nothing more.
    expect(messages().map(({ level }) => level)).toEqual([40, 30])
  },
)

testOnce('a collector that is slower than the calls is logged once', async () => {
  const collector = await collect()
  const server = await start({
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    OTEL_BSP_SCHEDULE_DELAY: '1',
    OTEL_BSP_MAX_QUEUE_SIZE: '2',
    OTEL_BSP_MAX_EXPORT_BATCH_SIZE: '1',
  })
  const warnings = () => server.entries().filter(({ level }) => level === 40)
  await until('a warning is logged', async () => {
    await Promise.all(Array.from({ length: 30 }, () => server.ask('/v1/pets')))
    return warnings().length > 0
  })
  for (let round = 0; round < 3; round++) {
    await Promise.all(Array.from({ length: 30 }, () => server.ask('/v1/pets')))
  }
  expect(warnings()).toMatchObject([
    {
      msg: expect.stringMatching(/^OpenTelemetry: Dropped \d+ spans because maxQueueSize reached$/),
    },
  ])
})

/** Starts tracing in this process, and begins a call. */
async function beginCall() {
  const collector = await collect()
  vi.stubEnv('OTEL_EXPORTER_OTLP_ENDPOINT', collector.url)
  onTestFinished(() => void vi.unstubAllEnvs())
  const tracing = startTracing({ sampler: 'always_on', ratio: 1 }, pino({ enabled: false }))
  const call = tracing.begin({
    operation: 'listPets',
    route: '/v1/pets',
    method: 'GET',
    path: '/v1/pets',
    scheme: 'http',
    headers: {},
  })
  return { collector, tracing, call }
}

testOnce('the span of a statement has the name of its action and its table', async () => {
  const { collector, tracing, call } = await beginCall()
  const statements = [
    'select `id` from `pets` where `id` > ? limit ?',
    '(select "id" from "pets" limit ?) union all (select "id" from "pets" limit ?)',
    'insert into "pets" ("name") values (?)',
    'update `pets` set `name` = ? where `id` = ?',
    'delete from pets where id = ?',
    'commit',
  ]
  for (const sql of statements) call.statement(sql, {})()
  await tracing.stop()
  expect(collector.spans.map(({ name }) => name)).toEqual([
    'SELECT pets',
    'SELECT pets',
    'INSERT pets',
    'UPDATE pets',
    'DELETE pets',
    'COMMIT',
  ])
  expect(collector.spans.map(({ attributes }) => attributes['db.collection.name'])).toEqual([
    ...Array(5).fill('pets'),
    undefined,
  ])
})

testOnce('the span of a failed statement has the error code of the driver', async () => {
  const { collector, tracing, call } = await beginCall()
  const busy = Object.assign(new Error('busy'), { code: 'ERR_SQLITE_ERROR', errcode: 5 })
  call.statement('select 1', {})(new LockedError(busy, true))
  call.statement('select 1', {})(new DuplicateError('taken'))
  await tracing.stop()
  expect(collector.spans.map(({ attributes }) => attributes)).toMatchObject([
    { 'error.type': 'ERR_SQLITE_ERROR', 'db.response.status_code': '5' },
    { 'error.type': 'DuplicateError' },
  ])
})

/** Starts the service in this process; OpenTelemetry reads the variables from its environment. */
async function startHere(collector: Collector, variables: Record<string, string>) {
  const complete = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, ...variables }
  for (const [name, value] of Object.entries(complete)) vi.stubEnv(name, value)
  onTestFinished(() => void vi.unstubAllEnvs())
  return await startService(complete)
}

// Recorded calls: without traceparent, with a sampled one, with one that is not sampled.
testOnce.each([
  ['always_on', [true, true, true]],
  ['always_off', [false, false, false]],
  ['traceidratio', [false, false, false]],
  ['parentbased_always_on', [true, true, false]],
  ['parentbased_always_off', [false, true, false]],
  ['parentbased_traceidratio', [false, true, false]],
])('OTEL_TRACES_SAMPLER=%s records the calls that it samples', async (sampler, expected) => {
  const collector = await collect()
  const service = await startHere(collector, {
    OTEL_TRACES_SAMPLER: sampler,
    // Only samplers by ratio read it: for the others it is the opposite of their decision.
    OTEL_TRACES_SAMPLER_ARG: sampler.endsWith('off') ? '1' : '0',
  })
  const ids = ['a'.repeat(32), 'b'.repeat(32)]
  const parents = [
    undefined,
    `00-${ids[0]}-b7ad6b7169203331-01`,
    `00-${ids[1]}-b7ad6b7169203331-00`,
  ]
  for (const traceparent of parents) {
    await service.rest('GET', '/pets', { headers: { ...(traceparent && { traceparent }) } })
  }
  // The log has the trace of every call.
  const lines = service.logged.map((line) => JSON.parse(line))
  expect(
    lines.flatMap(({ operation, traceId }) => (operation === 'listPets' ? [traceId] : [])),
  ).toEqual([expect.stringMatching(/^[\da-f]{32}$/), ...ids])
  await service.stop() // sends the spans
  const recorded = calls(collector).map(({ traceId }) => traceId)
  expect([
    recorded.some((id) => !ids.includes(id)),
    ...ids.map((id) => recorded.includes(id)),
  ]).toEqual(expected)
})

testOnce('a ratio between 0 and 1 records a part of the calls', async () => {
  const collector = await collect()
  const service = await startHere(collector, {
    OTEL_TRACES_SAMPLER: 'traceidratio',
    OTEL_TRACES_SAMPLER_ARG: '0.5',
  })
  for (let call = 0; call < 64; call++) await service.rest('GET', '/pets')
  await service.stop() // sends the spans
  const { length } = calls(collector)
  expect(length).toBeGreaterThan(8) // fewer, or more than 56, come once in 10 ** 9 runs
  expect(length).toBeLessThan(56)
})

testOnce('OTEL_BSP_… limit the spans of an export, and its duration', async () => {
  const collector = await collect()
  collector.status = undefined
  const service = await startHere(collector, {
    OTEL_BSP_SCHEDULE_DELAY: '60000',
    OTEL_BSP_MAX_EXPORT_BATCH_SIZE: '3',
    OTEL_BSP_EXPORT_TIMEOUT: '20',
  })
  for (let call = 0; call < 8; call++) await service.rest('GET', '/pets')
  // Each full batch of three is sent immediately; a failed export delays the next by 20 ms only.
  await until('the requests', () => collector.bodies.length >= 5)
  collector.status = 200
  await service.stop()
})

testOnce('a queue of 0 spans is no valid size, and the default applies', async () => {
  const collector = await collect()
  const service = await startHere(collector, { OTEL_BSP_MAX_QUEUE_SIZE: '0' })
  await service.rest('GET', '/pets')
  await service.stop() // sends the spans
  expect(calls(collector)).toHaveLength(1)
})

testOnce('an OTEL_BSP_… that is no number is logged, and the default applies', async () => {
  const collector = await collect()
  const service = await startHere(collector, { OTEL_BSP_MAX_QUEUE_SIZE: 'many' })
  const warnings = service.logged.map((line) => JSON.parse(line)).filter(({ level }) => level > 30)
  expect(warnings).toMatchObject([
    { level: 40, msg: expect.stringMatching(/^OpenTelemetry: .*'many'.*OTEL_BSP_MAX_QUEUE_SIZE/) },
  ])
  await service.rest('GET', '/pets')
  await service.stop() // sends the spans
  expect(calls(collector)).toHaveLength(1)
})

testOnce('url.scheme is the X-Forwarded-Proto of a trusted proxy', async () => {
  const collector = await collect()
  const service = await startHere(collector, { TRUST_PROXY: '1' })
  await service.rest('HEAD', '/pets/1', { headers: { 'x-forwarded-proto': 'https' } })
  await service.stop()
  expect(calls(collector).map(({ attributes }) => attributes)).toEqual([
    {
      'http.request.method': 'HEAD',
      'http.response.status_code': 404,
      'http.route': '/v1/pets/{petId}',
      'url.path': '/v1/pets/1',
      'url.scheme': 'https',
    },
  ])
})

testOnce('OTEL_BSP_MAX_QUEUE_SIZE limits the spans that wait', async () => {
  const collector = await collect()
  const service = await startHere(collector, {
    OTEL_BSP_SCHEDULE_DELAY: '60000',
    OTEL_BSP_MAX_QUEUE_SIZE: '4',
  })
  collector.status = undefined
  for (let call = 0; call < 10; call++) await service.rest('GET', '/pets')
  await until('the first request', () => collector.bodies.length > 0)
  collector.status = 200
  await service.stop()
  // The first four failed, the next four waited, and the others are lost.
  expect(collector.spans).toHaveLength(4)
})

test.runIf(engine === 'mysql')(
  'each of several WORKERS sends its own spans',
  outOfThree,
  async () => {
    const collector = await collect()
    const server = await start({
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_BSP_SCHEDULE_DELAY: '60000',
      WORKERS: '2',
    })
    for (let call = 0; call < 10; call++) expect(await server.ask('/v1/pets')).toBe(200)
    expect(await server.end('SIGTERM')).toBe(0)
    const spans = calls(collector)
    expect(spans).toHaveLength(10)
    const instances = new Set(spans.map(({ resource }) => resource['service.instance.id']))
    expect(instances.size).toBe(2)
    const lines = server.entries().filter(({ operation }) => operation === 'listPets')
    expect(new Set(lines.map(({ spanId }) => spanId))).toEqual(
      new Set(spans.map(({ spanId }) => spanId)),
    )
  },
)
