/** Several worker processes: how they share requests, die, are replaced, and stop. */
import { once } from 'node:events'
import { readdirSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import path from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { afterAll, afterEach, expect, onTestFinished, test } from 'vitest'
import { beginCreation, type Creation } from '../support/creation.ts'
import { newDatabase } from '../support/database.ts'
import { eventually, outOfThree } from '../support/eventually.ts'
import { freeze, thaw } from '../support/freeze.ts'
import { freePort } from '../support/mysql.ts'
import {
  childrenOf,
  newFolder,
  programs,
  runProgram,
  runServer,
  type ServerProgram,
} from '../support/process.ts'
import { keyedFetch } from '../support/rest.ts'
import { createKey } from '../support/service.ts'
import { packagesIn, runFirst, tellPackages } from '../support/watched.ts'

const database = await newDatabase()
const key = await createKey(database.url)
let server: ServerProgram
afterEach(async () => {
  const left = isRunning(server.child.pid) ? workerPids() : []
  server.child.kill('SIGKILL')
  // Before the wait: a hanging worker would keep the output open.
  for (const pid of left) if (isRunning(pid)) process.kill(pid, 'SIGKILL')
  await server.exited
})
afterAll(() => database.remove())

const start = async (variables = {}) => {
  server = await runServer({ DATABASE_URL: database.url, WORKERS: '2', ...variables })
}
// Each request has its own connection, which goes to any worker.
const get = (path: string, headers: Record<string, string> = {}) =>
  keyedFetch(server.origin, key)(path, { headers: { connection: 'close', ...headers } })
/** The processes that have served requests so far. */
const workerPids = () =>
  [
    ...new Set(
      server
        .entries()
        .filter(({ msg }) => msg === 'request')
        .map(({ pid }) => pid),
    ),
  ].map(Number)

/** The two workers that serve now, after both have served a request. */
async function servingPids(without: number[] = []): Promise<number[]> {
  return await eventually(async () => {
    expect((await get('/v1/pets')).status).toBe(200)
    const pids = workerPids().filter((pid) => !without.includes(pid))
    expect(pids).toHaveLength(2)
    return pids
  })
}

const children = () => childrenOf(server)

/** Does the same work at each of the two workers, while the other one is frozen. */
async function atEach<Result>(pids: number[], work: () => Promise<Result>): Promise<Result[]> {
  const results = []
  for (const pid of pids) {
    await freeze(pid)
    results.push(await work())
    thaw(pid)
  }
  return results
}

/** Begins a creation at each worker: the last one is at the first worker. */
const inFlight = (pids: number[]) => atEach(pids, () => beginCreation(server.port, key))

async function expectFinished(creations: Creation[]) {
  for (const creation of creations) {
    expect(await creation.finish()).toMatch(/^HTTP\/1\.1 201 Created/)
  }
}

const gone = (pids: number[]) => eventually(() => expect(pids.filter(isRunning)).toEqual([]))

test('SIGTERM: requests in flight at each worker finish, and the process exits with 0', async () => {
  const metricsPort = await freePort()
  await start({ METRICS_PORT: String(metricsPort) })
  const pids = await servingPids()
  expect(pids).not.toContain(server.child.pid)
  expect(children().sort()).toEqual(pids.sort())
  const creations = await inFlight(pids)
  server.child.kill('SIGTERM')
  await eventually(() => expect(stopping()).toHaveLength(2))
  await eventually(() => expect(get('/healthz')).rejects.toThrow())
  expect(
    server.child.exitCode,
    'the primary process runs until the workers have finished',
  ).toBeNull()
  await expectFinished(creations.slice(0, 1))
  await eventually(() => expect(children()).toHaveLength(1))
  // A worker that has ended by the stop is no death.
  const { values } = await readMetrics(metricsPort)
  expect(values.get('petstore_workers')).toBe(1)
  expect(values.get('petstore_worker_deaths_total')).toBe(0)
  await expectFinished(creations.slice(1))
  expect(await server.exited).toBe(0)
  await gone(pids)
  expect(server.stderr).not.toMatch(/cut off|A worker died/)
})

test('signals to the whole process group let requests in flight finish', async () => {
  await start()
  const pids = await servingPids()
  const creations = await inFlight(pids)
  for (const pid of pids) process.kill(pid, 'SIGTERM')
  for (const pid of pids) process.kill(pid, 'SIGINT')
  server.child.kill('SIGTERM')
  await eventually(() => expect(stopping()).toHaveLength(2))
  await expectFinished(creations)
  expect(await server.exited).toBe(0)
  await gone(pids)
})

test('a SIGKILL of the primary process lets workers finish requests in flight, and exit', async () => {
  await start()
  const pids = await servingPids()
  const creations = await inFlight(pids)
  server.child.kill('SIGKILL')
  await expectFinished(creations)
  await gone(pids)
})

test('a SIGKILL of the primary process ends a starting worker without an error', async () => {
  const fault = `import cluster from 'node:cluster'
    import { Server } from 'node:net'
    const primary = process.ppid
    const { listen } = Server.prototype
    if (cluster.isWorker) Server.prototype.listen = function (...parameters) {
      try { process.kill(primary, 'SIGKILL') } catch {} // the other worker killed it
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 200)
      return listen.apply(this, parameters)
    }`
  const variables = { DATABASE_URL: database.url, WORKERS: '2', PORT: '0', ...runFirst(fault) }
  server = Object.assign(runProgram(programs.server, variables), { origin: '', port: 0 })
  await server.exited // waits for the workers, too: they share stderr
  expect(server.stderr).not.toContain('Uncaught exception')
})

test('a worker that dies is replaced, and the other one serves meanwhile', async () => {
  const metricsPort = await freePort()
  // The first replacement exits at once.
  const fault = `import cluster from 'node:cluster'
    if (cluster.worker?.id === 3) process.exit(7)`
  await start({
    METRICS_PORT: String(metricsPort),
    ...runFirst(fault),
  })
  const [first = 0, second = 0] = await servingPids()
  process.kill(first, 'SIGKILL')
  await server.logged(/A worker died/)
  for (let request = 0; request < 4; request++) expect((await get('/v1/pets')).status).toBe(200)
  const pids = await servingPids([first])
  expect(pids).toContain(second)
  const metrics = await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text()
  const labels = '{surface="rest",operation="listPets",status="200"}'
  await eventually(() => {
    const served = server
      .entries()
      .filter(({ pid, msg }) => msg === 'request' && pids.includes(Number(pid)))
    expect(metrics).toContain(`petstore_requests_total${labels} ${served.length}\n`)
  })
  const creations = await inFlight(pids)
  server.child.kill('SIGINT')
  await eventually(() => expect(stopping()).toHaveLength(2))
  await expectFinished(creations)
  expect(await server.exited).toBe(0)
  await gone(pids)
  const deaths = server.entries().filter(({ msg }) => /A worker died/.test(String(msg)))
  expect(deaths).toMatchObject([
    { level: 50, code: null, signal: 'SIGKILL' },
    { level: 50, worker: 3, code: 7, signal: null },
  ])
  // A replacement starts after a second: a worker that fails to start does not spin.
  const pause = Number(deaths[1]?.time) - Number(deaths[0]?.time)
  expect(pause).toBeGreaterThan(900)
  expect(pause).toBeLessThan(8_000)
})

test('a worker with an uncaught exception finishes requests in flight and is replaced', async () => {
  const fault = `process.on('SIGUSR2', () => { throw new Error('boom') })`
  await start(runFirst(fault))
  const serving = await servingPids()
  const [first = 0, other = 0] = serving
  const creations = await inFlight(serving)
  process.kill(first, 'SIGUSR2')
  const line = await server.logged(/Uncaught exception/)
  expect(JSON.parse(line)).toMatchObject({ level: 60, pid: first, err: { message: 'boom' } })
  // The other worker keeps its connection open, so only the response of the first one ends.
  await Promise.race(creations.map((creation) => creation.finish()))
  const died = JSON.parse(await server.logged(/A worker died/))
  expect(died).toMatchObject({ level: 50, code: 1 })
  const replaced = await servingPids([first])
  expect(replaced).toContain(other)
  expect(isRunning(server.child.pid)).toBe(true)
  const created = server.entries().filter(({ operation }) => operation === 'createPet')
  expect(created.map(({ status }) => status)).toEqual([201, 201])
  for (const creation of creations) creation.leave()

  // An uncaught exception of the primary process stops all workers gracefully.
  const last = await inFlight(replaced)
  server.child.kill('SIGUSR2')
  await eventually(() => expect(stopping()).toHaveLength(3))
  await expectFinished(last)
  expect(await server.exited).toBe(1)
  expect(server.stderr).not.toContain('cut off')
})

test('SHUTDOWN_DELAY and SHUTDOWN_TIMEOUT apply to each worker', outOfThree, async () => {
  await start({ SHUTDOWN_DELAY: '1s', SHUTDOWN_TIMEOUT: '2s' })
  const pids = await servingPids()
  const [creation] = await inFlight(pids)
  server.child.kill('SIGTERM')
  const began = performance.now()
  await eventually(() => expect(stopping()).toHaveLength(2))
  for (let request = 0; request < 2; request++) expect((await get('/readyz')).status).toBe(503)
  expect((await get('/v1/pets')).status).toBe(200)
  await creation?.closed
  expect(await server.exited).toBe(1)
  expect(performance.now() - began).toBeGreaterThan(1_800)
  expect(performance.now() - began).toBeLessThan(5_000)
  expect(server.stderr).toContain('cut off')
  await gone(pids)
})

test('a worker that is killed during a stop is logged, and makes the exit code 1', async () => {
  await start()
  const pids = await servingPids()
  const creations = await inFlight(pids)
  server.child.kill('SIGTERM')
  await eventually(() => expect(stopping()).toHaveLength(2))
  const [first = 0] = pids
  process.kill(first, 'SIGKILL')
  const line = JSON.parse(await server.logged(/A worker failed during the stop/))
  expect(line).toMatchObject({ level: 50, pid: server.child.pid, code: null, signal: 'SIGKILL' })
  for (const creation of creations) creation.leave()
  expect(await server.exited).toBe(1)
})

test('a worker that hangs delays the stop by at most SHUTDOWN_TIMEOUT', async () => {
  await start({ SHUTDOWN_TIMEOUT: '2s' })
  const pids = await servingPids()
  const [hung = 0, other = 0] = pids
  await freeze(hung)
  server.child.kill('SIGTERM')
  // Logged by the primary process, because the hanging worker cannot log.
  const line = JSON.parse(await server.logged(/cut off/))
  expect(line).toMatchObject({ level: 40, pid: server.child.pid })
  expect(await server.exited).toBe(1)
  expect(stopping().map(({ pid }) => pid)).toEqual([other])
  await gone(pids)
})

test('a connection for a worker that is killed before it accepts goes to the other worker', async () => {
  await start()
  const [first = 0] = await servingPids()
  await freeze(first)
  const descriptors = () =>
    process.platform === 'linux' ? readdirSync(`/proc/${server.child.pid}/fd`).length : 0
  const before = descriptors()
  const requests = Array.from({ length: 8 }, () => get('/v1/pets'))
  await setTimeout(100) // the primary process hands connections to the frozen worker
  process.kill(first, 'SIGKILL')
  const answers = await Promise.all(requests)
  expect(answers.map(({ status }) => status)).toEqual(requests.map(() => 200))
  await servingPids([first])
  await eventually(() => expect(descriptors()).toBeLessThanOrEqual(before))
})

test('a worker that cannot start fails the whole start', async () => {
  const port = String(await freePort())
  // The other worker serves already, and would serve on for SHUTDOWN_DELAY.
  const fault = `import cluster from 'node:cluster'
    const serves = () => fetch('http://127.0.0.1:${port}/healthz').then(() => true, () => false)
    if (cluster.worker?.id === 2) {
      while (!(await serves()));
      process.exit(7)
    }`
  server = Object.assign(
    runProgram(programs.server, {
      DATABASE_URL: database.url,
      WORKERS: '2',
      SHUTDOWN_DELAY: '20s',
      SHUTDOWN_TIMEOUT: '30s',
      PORT: port,
      ...runFirst(fault),
    }),
    { origin: `http://127.0.0.1:${port}`, port: Number(port) },
  )
  expect(await server.exited).toBe(1)
  expect(server.stderr).toContain('A worker could not start')
  expect(server.stderr).not.toContain('Stopping')
  await expect(get('/healthz')).rejects.toThrow()
})

test('a worker that dies while another one starts is replaced', async () => {
  // The second worker listens only after the first one has served and died.
  const fault = `import cluster from 'node:cluster'
    import { Server } from 'node:net'
    const { listen } = Server.prototype
    if (cluster.worker?.id === 1) Server.prototype.listen = function (...parameters) {
      this.once('listening', () => setTimeout(() => process.exit(7), 100))
      return listen.apply(this, parameters)
    }
    if (cluster.worker?.id === 2) Server.prototype.listen = function (...parameters) {
      setTimeout(() => listen.apply(this, parameters), 1_500)
      return this
    }`
  // With PORT=0 the second worker would have a port of its own.
  await start({ PORT: String(await freePort()), ...runFirst(fault) })
  const line = JSON.parse(await server.logged(/A worker died: starting another/))
  expect(line).toMatchObject({ level: 50, worker: 1, code: 7, signal: null })
  const pids = await servingPids()
  expect(children().sort()).toEqual(pids.sort())
})

test('a second signal ends all workers at once', async () => {
  await start({ SHUTDOWN_TIMEOUT: '60s' })
  const pids = await servingPids()
  await beginCreation(server.port, key)
  const ended = once(server.child, 'exit')
  server.child.kill('SIGTERM')
  await server.logged(/Stopping/)
  server.child.kill('SIGINT')
  const began = performance.now()
  expect(await ended).toEqual([1, null])
  expect(performance.now() - began).toBeLessThan(3_000)
  await gone(pids)
})

test('a worker that died just before a stop is not replaced, and does not delay the stop', async () => {
  await start({ SHUTDOWN_DELAY: '3s' })
  const [first = 0, second = 0] = await servingPids()
  process.kill(first, 'SIGKILL')
  await server.logged(/A worker died/)
  server.child.kill('SIGTERM')
  await setTimeout(1_500) // without the stop, a replacement would start after a second
  expect(children().filter((pid) => pid !== first)).toEqual([second])
  expect(await server.exited).toBe(0)
  expect(server.stderr).not.toContain('cut off')
  await gone([second])
})

test('a worker that is starting stops with the others', async () => {
  await start({ SHUTDOWN_TIMEOUT: '60s' })
  const [first = 0, second = 0] = await servingPids()
  process.kill(first, 'SIGKILL')
  await server.logged(/A worker died/)
  // Two children again: the replacement has just started, and does not serve yet.
  await eventually(() => expect(children().filter((pid) => pid !== first)).toHaveLength(2))
  server.child.kill('SIGTERM')
  const began = performance.now()
  expect(await server.exited).toBe(0)
  expect(performance.now() - began).toBeLessThan(30_000)
  expect(server.stderr).not.toContain('cut off')
  expect(stopping(), 'the replacement has not begun to serve').toMatchObject([{ pid: second }])
  await gone([second])
})

test('a worker that is killed at the moment of a stop does not keep the other from finishing', async () => {
  await start()
  const [first = 0, second = 0] = await servingPids()
  await freeze(first)
  const creation = await beginCreation(server.port, key) // at the other worker
  const primary = server.child.pid as number
  await freeze(primary)
  process.kill(first, 'SIGKILL')
  await setTimeout(100) // the channel is closed on its side
  server.child.kill('SIGTERM')
  thaw(primary) // it receives both signals at once
  await eventually(() => expect(stopping()).toMatchObject([{ pid: second }]))
  expect(
    server.child.exitCode,
    'the primary process runs until the workers have finished',
  ).toBeNull()
  await expectFinished([creation])
  const code = await server.exited
  // The system orders the two signals. If the death comes first, the stop cuts nothing off.
  const diedBefore = server.entries().some(({ msg }) => /^A worker died/.test(String(msg)))
  expect(code).toBe(diedBefore ? 0 : 1)
  expect(server.stderr).not.toMatch(/cut off|Error/)
  await gone([second])
})

test('the metrics are the sums of all workers, each of which has its own key cache', async () => {
  const metricsPort = await freePort()
  await start({ METRICS_PORT: String(metricsPort) })
  const pids = children()
  await atEach(pids, async () => {
    for (let request = 0; request < 5; request++) {
      expect((await get('/v1/pets/404')).status).toBe(404)
    }
  })
  const text = await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text()
  const labels = '{surface="rest",operation="getPet",status="404"}'
  expect(text).toContain(`petstore_requests_total${labels} 10\n`)
  expect(text).toContain(`petstore_request_duration_seconds_count${labels} 10\n`)
  expect(text).toContain('petstore_key_lookups_total{cache="miss"} 2\n')
  expect(text).toContain('petstore_key_lookups_total{cache="hit"} 8\n')
  expect(text).toMatch(/^petstore_database_connections_used 0$/m)
})

test('the metrics are served while a worker starts', async () => {
  const metricsPort = await freePort()
  const fault = `import cluster from 'node:cluster'
    import { writeSync } from 'node:fs'
    import { Server } from 'node:net'
    const { listen } = Server.prototype
    if (cluster.worker?.id === 3) Server.prototype.listen = function () {
      writeSync(2, JSON.stringify({ msg: 'starts for ever' }) + '\\n')
      return this
    }`
  await start({ METRICS_PORT: String(metricsPort), ...runFirst(fault) })
  const [first = 0] = await servingPids()
  process.kill(first, 'SIGKILL')
  await server.logged(/starts for ever/)
  const { status, text, values } = await readMetrics(metricsPort)
  expect(status).toBe(200)
  expect(text).toContain('operation="listPets"')
  expect(values.get('petstore_workers'), 'workers that have metrics').toBe(1)
})

test('a replacement has the configuration of the primary process, whatever .env has become', async () => {
  const { folder, remove } = newFolder()
  onTestFinished(remove)
  const file = path.join(folder, '.env')
  writeFileSync(file, 'RATE_LIMIT=100000')
  const variables = { DATABASE_URL: database.url, WORKERS: '2' }
  server = await runServer(variables, folder)
  const [first = 0] = await servingPids()
  // A wrong value ends a process that reads it.
  writeFileSync(file, 'RATE_LIMIT=600\nSHUTDOWN_TIMEOUT=never')
  process.kill(first, 'SIGKILL')
  await server.logged(/A worker died/)
  const pids = await servingPids([first])
  const policies = await atEach(pids, async () =>
    (await get('/v1/pets')).headers.get('ratelimit-policy'),
  )
  for (const policy of policies) expect(policy).toMatch(/q=100000\b/)
  expect(server.entries().filter(({ msg }) => /^A worker died/.test(String(msg)))).toHaveLength(1)
})

/** Reads the metrics: the status, and each value by its name and labels. */
async function readMetrics(port: number) {
  const response = await fetch(`http://127.0.0.1:${port}/metrics`)
  const text = await response.text()
  const lines = [...text.matchAll(/^([^#\s].*) (\S+)$/gm)]
  return { status: response.status, text, values: new Map(lines.map(([, k, v]) => [k, Number(v)])) }
}

test('sums do not fall while a worker hangs, nor after its death', async () => {
  const metricsPort = await freePort()
  await start({ METRICS_PORT: String(metricsPort) })
  const pids = await servingPids()
  const before = await readMetrics(metricsPort)
  const sum = /^(petstore_re|petstore_key|process_cpu|nodejs_gc)/
  const sums = [...before.values.keys()].filter((name) => sum.test(`${name}`))
  expect(sums.length).toBeGreaterThan(20)
  const expectNoFall = (after: typeof before) => {
    for (const name of sums) {
      expect(after.values.get(name), name).toBeGreaterThanOrEqual(Number(before.values.get(name)))
    }
  }
  expect(before.values.get('petstore_workers')).toBe(2)
  expect(before.values.get('petstore_worker_deaths_total')).toBe(0)
  const started = before.values.get('process_start_time_seconds')
  expect(Math.abs(Number(started) - Date.now() / 1_000)).toBeLessThan(60)

  const [first = 0] = pids
  await freeze(first)
  const began = performance.now()
  const during = await readMetrics(metricsPort)
  // Prometheus waits for ten seconds.
  expect(performance.now() - began).toBeLessThan(9_000)
  expect(during.status).toBe(200)
  expectNoFall(during)
  expect(during.values.get('petstore_workers')).toBe(1)
  const line = await server.logged(/A worker does not answer: its last metrics stand in/)
  expect(JSON.parse(line)).toMatchObject({
    level: 40,
    pid: server.child.pid,
    worker: expect.any(Number),
  })

  process.kill(first, 'SIGKILL')
  await server.logged(/A worker died/)
  const after = await readMetrics(metricsPort)
  expectNoFall(after)
  expect(after.values.get('petstore_worker_deaths_total')).toBe(1)
  expect(after.values.get('process_start_time_seconds')).toBe(started)
  const memory = 'process_resident_memory_bytes'
  expect(after.values.get(memory)).toBeLessThan(0.7 * Number(before.values.get(memory)))

  // The replacement adds its own requests.
  await servingPids([first])
  const count = 'petstore_requests_total{surface="rest",operation="listPets",status="200"}'
  const replaced = await readMetrics(metricsPort)
  expect(replaced.values.get('petstore_workers')).toBe(2)
  expect(replaced.values.get(count)).toBeGreaterThan(Number(after.values.get(count)))
  expectNoFall(replaced)
})

test('while no worker answers, the metrics return 503', async () => {
  const metricsPort = await freePort()
  await start({ METRICS_PORT: String(metricsPort) })
  const pids = await servingPids()
  expect(await readMetrics(metricsPort)).toMatchObject({ status: 200 })
  for (const pid of pids) await freeze(pid)
  expect(await readMetrics(metricsPort)).toMatchObject({ status: 503, text: '' })
  for (const pid of pids) thaw(pid)
  await eventually(async () => {
    expect(await readMetrics(metricsPort)).toMatchObject({ status: 200 })
  })
  // Nor is there a worker between a death and its replacement.
  for (const pid of pids) process.kill(pid, 'SIGKILL')
  const deaths = () => server.entries().filter(({ msg }) => /^A worker died/.test(String(msg)))
  await eventually(() => expect(deaths()).toHaveLength(2))
  expect(await readMetrics(metricsPort)).toMatchObject({ status: 503, text: '' })
})

test('a worker that cannot collect its metrics serves on, and its last metrics stand in', async () => {
  const metricsPort = await freePort()
  const fault = `process.on('SIGUSR2', () => { process.cpuUsage = () => { throw new Error('boom') } })`
  await start({ METRICS_PORT: String(metricsPort), ...runFirst(fault) })
  const [first = 0, second = 0] = await servingPids()
  const count = 'petstore_requests_total{surface="rest",operation="listPets",status="200"}'
  const before = await readMetrics(metricsPort)
  process.kill(first, 'SIGUSR2')
  const after = await eventually(async () => {
    const read = await readMetrics(metricsPort)
    expect(read.values.get('petstore_workers')).toBe(1)
    return read
  })
  expect(after.values.get(count)).toBeGreaterThanOrEqual(Number(before.values.get(count)))
  await server.logged(/A worker does not answer/)
  expect(children().sort()).toEqual([first, second].sort())
  expect(server.stderr).not.toContain('Uncaught exception')
})

test('a worker that is killed during a request for metrics does not stop the others', async () => {
  const metricsPort = await freePort()
  await start({ METRICS_PORT: String(metricsPort) })
  const primary = server.child.pid as number
  const [first = 0, second = 0] = await servingPids()
  process.kill(first, 'SIGKILL')
  await server.logged(/A worker died/)
  const [replacement = 0] = (await servingPids([first])).filter((pid) => pid !== second)
  const socket = connect(metricsPort, '127.0.0.1').on('error', () => {})
  socket.write('GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n')
  await once(socket, 'data')
  // The request arrives before the news of the death.
  await freeze(primary)
  socket.write('GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n')
  await setTimeout(100)
  process.kill(replacement, 'SIGKILL')
  await setTimeout(100)
  thaw(primary)
  socket.destroy()
  expect(await servingPids([first, replacement])).toContain(second)
  expect(server.stderr).not.toContain('Uncaught exception')
})

test('the primary process loads neither express nor tRPC', async () => {
  await start(tellPackages)
  const pids = await servingPids()
  const [primary = [], ...workers] = [Number(server.child.pid), ...pids].map((pid) =>
    packagesIn(server.stderr, pid),
  )
  expect(primary).toContain('kysely') // for the migrations
  for (const name of ['express', '@trpc/server', 'kysely']) {
    for (const names of workers) expect(names).toContain(name)
  }
  expect(primary.filter((name) => /^(express|@trpc)/.test(name))).toEqual([])
})

const stopping = () => server.entries().filter(({ msg }) => /^Stopping/.test(String(msg)))

function isRunning(pid: number | undefined): boolean {
  try {
    return pid !== undefined && process.kill(pid, 0)
  } catch {
    return false
  }
}
