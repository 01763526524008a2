/** The metrics of a process: values after known requests, and where they are served. */
import { setTimeout } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { beginCreation } from '../support/creation.ts'
import { engine, newDatabase, type TestDatabase } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'
import { freePort } from '../support/mysql.ts'
import { occupy } from '../support/occupy.ts'
import { runServer, type ServerProgram } from '../support/process.ts'
import { isListening } from '../support/raw.ts'
import { keyedFetch } from '../support/rest.ts'
import { createKey } from '../support/service.ts'
import { openSql } from '../support/sql.ts'
import { runFirst } from '../support/watched.ts'

// What does not touch the database is the same on both engines.
const testOnce = test.runIf(engine === 'sqlite')

let database: TestDatabase
let key: string
let server: ServerProgram
let metricsPort: number
beforeAll(async () => {
  database = await newDatabase()
  key = await createKey(database.url)
})
afterEach(() => server.end())
afterAll(() => database.remove())

async function start(variables: Record<string, string> = {}): Promise<void> {
  metricsPort = await freePort()
  server = await runServer({
    DATABASE_URL: database.url,
    METRICS_PORT: String(metricsPort),
    ...variables,
  })
}

const get = (path: string, authorization = `Bearer ${key}`) =>
  keyedFetch(server.origin, key)(path, { headers: { authorization } })

async function read(): Promise<string> {
  return await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text()
}

/** The value of the metric with this name and these labels; undefined when there is none. */
function metric(text: string, name: string): number | undefined {
  const line = text.split('\n').find((each) => each.startsWith(`${name} `))
  return line === undefined ? undefined : Number(line.slice(name.length + 1))
}

/** Reads the metrics until `check` passes. */
const eventuallyRead = (check: (text: string) => void) =>
  eventually(async () => check(await read()))

// whole-answers.once.test.ts counts the requests of all other kinds.
test('a request whose client disconnects is counted with 499; key look-ups by cache', async () => {
  await start()
  expect(metric(await read(), 'petstore_key_lookups_total{cache="miss"}')).toBeUndefined()
  // One after another: concurrent look-ups would share one query.
  const calls = ['/v1/pets', '/trpc/listPets', '/trpc/listPets,getPet?batch=1', '/trpc/getPet']
  for (const path of [...calls, '/v1/pets/1', '/v1/pets/x', '/trpc/nothing']) await get(path)
  for (const path of ['/nothing', '/v1/openapi.json']) await get(path)
  await get('/trpc/listPets', '')
  const creation = await beginCreation(server.port, key)
  creation.leave()
  const gone = 'surface="rest",operation="createPet",status="499"'
  await eventuallyRead((text) => {
    expect(metric(text, `petstore_requests_total{${gone}}`)).toBe(1)
    expect(metric(text, `petstore_request_duration_seconds_count{${gone}}`)).toBe(1)
    // 8 requests had the key; the first of them looked it up.
    expect(metric(text, 'petstore_key_lookups_total{cache="miss"}')).toBe(1)
    expect(metric(text, 'petstore_key_lookups_total{cache="hit"}')).toBe(7)
  })
  // An unknown key is looked up each time, a malformed key never.
  for (const wrong of [`petstore_${'A'.repeat(43)}`, `petstore_${'A'.repeat(43)}`, 'nonsense']) {
    expect((await get('/v1/pets', `Bearer ${wrong}`)).status).toBe(401)
  }
  await eventuallyRead((text) => {
    expect(metric(text, 'petstore_key_lookups_total{cache="miss"}')).toBe(3)
    expect(metric(text, 'petstore_key_lookups_total{cache="hit"}')).toBe(7)
  })
})

test('durations are in seconds', async () => {
  await start()
  await get('/v1/pets')
  const began = performance.now()
  const creation = await beginCreation(server.port, key, { Connection: 'close' })
  const begun = performance.now()
  await setTimeout(300)
  const waited = (performance.now() - begun) / 1_000
  expect(await creation.finish()).toMatch(/^HTTP\/1\.1 201/)
  const whole = (performance.now() - began) / 1_000
  const labels = 'surface="rest",operation="createPet",status="201"'
  await eventuallyRead((text) => {
    const sum = metric(text, `petstore_request_duration_seconds_sum{${labels}}`)
    expect(sum).toBeGreaterThan(waited * 0.9)
    expect(sum).toBeLessThan(whole + 0.05)
    const bucket = (le: string) =>
      metric(text, `petstore_request_duration_seconds_bucket{le="${le}",${labels}}`)
    expect([bucket('0.001'), bucket('0.25'), bucket('10'), bucket('+Inf')]).toEqual([0, 0, 1, 1])
  })
})

/** All metrics of the service itself, with the durations left out. */
const ofService = (text: string) =>
  text
    .split('\n')
    .filter((line) => line.includes('petstore_'))
    .map((line) =>
      /_seconds_(sum|bucket\{le="[\d.]+")/.test(line) ? line.replace(/ [\d.e-]+$/, ' …') : line,
    )

testOnce('all metrics after one request', async () => {
  await start()
  expect((await get('/v1/pets?limit=7')).status).toBe(200)
  const labels = 'surface="rest",operation="listPets",status="200"'
  // Seconds, from a thousandth to more than a call may take.
  const buckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
  await eventuallyRead((text) =>
    expect(ofService(text)).toEqual([
      '# HELP petstore_requests_total Requests, by surface, operation and HTTP status',
      '# TYPE petstore_requests_total counter',
      `petstore_requests_total{${labels}} 1`,
      '# HELP petstore_request_duration_seconds How long requests took',
      '# TYPE petstore_request_duration_seconds histogram',
      ...buckets.map((le) => `petstore_request_duration_seconds_bucket{le="${le}",${labels}} …`),
      `petstore_request_duration_seconds_bucket{le="+Inf",${labels}} 1`,
      `petstore_request_duration_seconds_sum{${labels}} …`,
      `petstore_request_duration_seconds_count{${labels}} 1`,
      '# HELP petstore_key_lookups_total Look-ups of API keys, by whether the cache knew the answer',
      '# TYPE petstore_key_lookups_total counter',
      'petstore_key_lookups_total{cache="miss"} 1',
      '# HELP petstore_database_connections_used Connections in use',
      '# TYPE petstore_database_connections_used gauge',
      'petstore_database_connections_used 0',
      '# HELP petstore_database_connections_waiting Requests that wait for a connection',
      '# TYPE petstore_database_connections_waiting gauge',
      'petstore_database_connections_waiting 0',
    ]),
  )
})

testOnce('metrics that fail to collect return 500, and the service continues', async () => {
  const fault = `process.on('SIGCONT', () => { process.cpuUsage = () => { throw new Error('boom') } })`
  await start(runFirst(fault))
  expect(await read()).toContain('process_cpu_seconds_total')
  server.child.kill('SIGCONT')
  await eventually(async () => {
    const failed = await fetch(`http://127.0.0.1:${metricsPort}/metrics`)
    expect([failed.status, await failed.text()]).toEqual([500, ''])
  })
  expect((await get('/v1/pets')).status).toBe(200)
})

testOnce('metrics are served at /metrics of their own port only', async () => {
  await start()
  const answer = await fetch(`http://127.0.0.1:${metricsPort}/metrics`)
  expect(answer.status).toBe(200)
  expect(answer.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8')
  const text = await answer.text()
  expect(text).toMatch(/^nodejs_eventloop_lag_seconds /m)
  expect(text).toMatch(/^process_resident_memory_bytes \d/m)
  for (const path of ['/', '/metrics/', '/metricsx', '/v1/pets', '/healthz', '/metrics/x']) {
    const other = await fetch(`http://127.0.0.1:${metricsPort}${path}`)
    expect([path, other.status, await other.text()]).toEqual([path, 404, ''])
  }
  const same = await fetch(`http://127.0.0.1:${metricsPort}/metrics?name[]=up`)
  expect([same.status, await same.text()]).toEqual([200, expect.stringContaining('petstore_')])
  const head = await fetch(`http://127.0.0.1:${metricsPort}/metrics`, { method: 'HEAD' })
  expect([head.status, head.headers.get('content-type')]).toEqual([
    200,
    'text/plain; version=0.0.4; charset=utf-8',
  ])
  const posted = await fetch(`http://127.0.0.1:${metricsPort}/metrics`, { method: 'POST' })
  expect([posted.status, posted.headers.get('allow')]).toEqual([405, 'GET, HEAD'])
  expect((await get('/metrics')).status).toBe(404)
  // Reading metrics does not count as a request.
  expect(
    metric(await read(), 'petstore_requests_total{surface="other",operation="none",status="200"}'),
  ).toBe(undefined)
})

test.runIf(process.platform === 'linux' && engine === 'sqlite')(
  'METRICS_HOST limits the IP address that is listened on',
  async () => {
    await start()
    expect(await isListening(metricsPort, '127.0.0.1')).toBe(true)
    expect(await isListening(metricsPort, '127.0.0.2')).toBe(false)
    expect(await isListening(metricsPort, '::1')).toBe(false)
    await server.end()
    await start({ METRICS_HOST: '127.0.0.2' })
    expect(await isListening(metricsPort, '127.0.0.2')).toBe(true)
    expect(await isListening(metricsPort, '127.0.0.1')).toBe(false)
  },
)

test.runIf(engine === 'mysql')(
  'gauges show connections in use, and requests that wait for one',
  async () => {
    await start()
    const names = ['used', 'waiting'].map((state) => `petstore_database_connections_${state}`)
    const values = (text: string) => names.map((name) => metric(text, name))
    await get('/v1/pets')
    await eventuallyRead((text) => expect(values(text)).toEqual([0, 0]))
    await using sql = await openSql(database.url)
    await sql('lock tables pets write')
    const count = async () => {
      const [used = 0, waiting = 0] = values(await read())
      return used + waiting
    }
    const answers = await occupy(13, (query) => get(`/v1/pets${query}`), count)
    const statuses = Promise.allSettled(answers)
    await eventuallyRead((text) => expect(values(text)).toEqual([10, 3]))
    await sql('unlock tables')
    for (const outcome of await statuses) expect(outcome).toMatchObject({ value: { status: 200 } })
    await eventuallyRead((text) => expect(values(text)).toEqual([0, 0]))
  },
)
