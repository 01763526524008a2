/** The metrics of a process: values after known requests, and where they are served. */
import { expect, onTestFinished, test, vi } from 'vitest'
import { beginCreation } from '../support/creation.ts'
import { engine } from '../support/database.ts'
import { until } from '../support/instance.ts'
import { metricIn, newMetrics } from '../support/metrics.ts'
import { occupy } from '../support/occupy.ts'
import { isListening } from '../support/raw.ts'
import { keyedFetch } from '../support/rest.ts'
import { serviceForFile, startService } from '../support/service.ts'

// What does not touch the database is the same on both engines.
const testOnce = test.runIf(engine === 'sqlite')

const metrics = await newMetrics()
const { url, text: read } = metrics
const service = await serviceForFile({ ...metrics.variables, DATABASE_POOL_SIZE: '8' })

const get = (path: string, authorization = `Bearer ${service.key}`) =>
  service.fetch(path, { headers: { authorization } })

/** Waits until a metric has this value, and returns all metrics. */
async function whenRead(name: string, value: number): Promise<string> {
  let text = ''
  await until(`${name} is ${value}`, async () => {
    text = await read()
    return metricIn(text, name) === value
  })
  return text
}

testOnce('all metrics after one request', async () => {
  expect((await get('/v1/pets?limit=7')).status).toBe(200)
  const labels = 'surface="rest",operation="listPets",status="200"'
  const text = await whenRead(`petstore_requests_total{${labels}}`, 1)
  // Seconds, from a thousandth to more than a call may take.
  const buckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
  const ofService = text
    .split('\n')
    .filter((line) => line.includes('petstore_'))
    .map((line) =>
      /_seconds_(sum|bucket\{le="[\d.]+")/.test(line) ? line.replace(/ [\d.e-]+$/, ' …') : line,
    )
  expect(ofService).toEqual([
    '# HELP petstore_requests_total Calls, by surface, operation and HTTP status: each one of a batch counts',
    '# TYPE petstore_requests_total counter',
    `petstore_requests_total{${labels}} 1`,
    '# HELP petstore_request_duration_seconds How long requests took, by surface, operation and HTTP status: a batch is one',
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
  ])
})

// whole-answers.once.test.ts counts the requests of all other kinds.
test('a request whose client disconnects is counted with 499; key look-ups by cache', async () => {
  await get('/v1/pets') // looks the key up
  const text = await read()
  const [misses, hits] = ['miss', 'hit'].map(
    (cache) => `petstore_key_lookups_total{cache="${cache}"}`,
  )
  // One after another: concurrent look-ups would share one query.
  const calls = ['/v1/pets', '/trpc/listPets', '/trpc/listPets,getPet?batch=1', '/trpc/getPet']
  for (const path of [...calls, '/v1/pets/1', '/v1/pets/x', '/trpc/nothing']) await get(path)
  for (const path of ['/nothing', '/v1/openapi.json']) await get(path)
  await get('/trpc/listPets', '')
  // An unknown key is looked up each time, a malformed key never.
  for (const wrong of [`petstore_${'A'.repeat(43)}`, `petstore_${'A'.repeat(43)}`, 'nonsense']) {
    expect((await get('/v1/pets', `Bearer ${wrong}`)).status).toBe(401)
  }
  const creation = await beginCreation(Number(new URL(service.origin).port), service.key)
  creation.leave()
  const gone = 'surface="rest",operation="createPet",status="499"'
  const after = await whenRead(`petstore_requests_total{${gone}}`, 1)
  expect(metricIn(after, `petstore_request_duration_seconds_count{${gone}}`)).toBe(1)
  expect(metricIn(after, `${misses}`) - metricIn(text, `${misses}`)).toBe(2)
  expect(metricIn(after, `${hits}`) - metricIn(text, `${hits}`)).toBe(8)
})

testOnce('metrics that fail to collect return 500, and the service continues', async () => {
  expect(await read()).toContain('process_cpu_seconds_total')
  const fault = vi.spyOn(process, 'cpuUsage').mockImplementation(() => {
    throw new Error('boom')
  })
  onTestFinished(() => fault.mockRestore())
  const failed = await fetch(url)
  expect([failed.status, await failed.text()]).toEqual([500, ''])
  expect((await get('/v1/pets')).status).toBe(200)
})

testOnce('metrics are served at /metrics of their own port only', async () => {
  const type = 'text/plain; version=0.0.4; charset=utf-8'
  for (const [path, method] of [
    ['', 'GET'],
    ['?name[]=up', 'GET'],
    ['', 'HEAD'],
  ] as const) {
    const answer = await fetch(url + path, { method })
    expect([answer.status, answer.headers.get('content-type')]).toEqual([200, type])
    if (method === 'GET') expect(await answer.text()).toMatch(/^process_resident_memory_bytes \d/m)
  }
  // Of this process: on the service's port, another one may answer.
  expect((await fetch(new URL('/readyz', url))).status).toBe(200)
  for (const path of ['/', '/metrics/', '/v1/pets', '/healthz', '/metrics/x']) {
    const other = await fetch(new URL(path, url))
    expect([path, other.status, await other.text()]).toEqual([path, 404, ''])
  }
  expect((await get('/metrics')).status).toBe(404)
})

test.runIf(process.platform === 'linux' && engine === 'sqlite')(
  'METRICS_HOST limits the IP address that is listened on',
  async () => {
    const port = Number(new URL(url).port)
    const listening = (of: number, hosts: string[]) =>
      Promise.all(hosts.map((host) => isListening(of, host)))
    const hosts = ['127.0.0.1', '127.0.0.2', '::1']
    expect(await listening(port, hosts)).toEqual([true, false, false])
    const { variables } = await newMetrics()
    const other = await startService({ ...variables, METRICS_HOST: '127.0.0.2' })
    onTestFinished(other.stop)
    expect(await listening(Number(variables.METRICS_PORT), hosts)).toEqual([false, true, false])
  },
)

test.runIf(engine === 'mysql')(
  'gauges show connections in use, and requests that wait for one',
  async () => {
    const [used, waiting] = ['used', 'waiting'].map(
      (state) => `petstore_database_connections_${state}`,
    ) as [string, string]
    await whenRead(used, 0)
    const { sql, origin, key } = service
    await sql('lock tables pets write')
    const count = async () => {
      const text = await read()
      return metricIn(text, used) + metricIn(text, waiting)
    }
    const answers = await occupy(13, (query) => keyedFetch(origin, key)(`/v1/pets${query}`), count)
    const statuses = Promise.all(answers.map(async (answer) => (await answer).status))
    expect(metricIn(await whenRead(waiting, 5), used)).toBe(8)
    await sql('unlock tables')
    expect(await statuses).toEqual(Array(13).fill(200))
    expect(metricIn(await whenRead(used, 0), waiting)).toBe(0)
  },
)
