/** Several serving processes: how they share the work, die, are replaced, and stop. */
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { connect } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { beginCreation, type Creation } from '../support/creation.ts'
import { engine, newDatabase, type TestDatabase } from '../support/database.ts'
import { eventually, outOfThree } from '../support/eventually.ts'
import { freeze, thaw } from '../support/freeze.ts'
import { freePort } from '../support/mysql.ts'
import { programs, runProgram, runServer, type ServerProgram } from '../support/process.ts'
import { createKey } from '../support/service.ts'
import { packagesIn, runFirst, tellPackages } from '../support/watched.ts'

describe.runIf(engine === 'mysql')('with WORKERS', () => {
  let database: TestDatabase
  let key: string
  let server: ServerProgram

  beforeAll(async () => {
    database = await newDatabase()
    key = await createKey(database.url)
  })
  afterEach(async () => {
    const left = isRunning(server.child.pid) ? workerPids() : []
    server.child.kill('SIGKILL')
    // Before the wait: one that hangs would keep the output open.
    for (const pid of left) if (isRunning(pid)) process.kill(pid, 'SIGKILL')
    await server.exited
  })
  afterAll(() => database.remove())

  const start = async (variables = {}) => {
    server = await runServer({ DATABASE_URL: database.url, WORKERS: '2', ...variables })
  }
  // Each request has a connection of its own, which goes to any of the workers.
  const get = (path: string, headers: Record<string, string> = {}) =>
    fetch(`${server.origin}${path}`, {
      headers: { authorization: `Bearer ${key}`, connection: 'close', ...headers },
    })
  /** The processes that have answered so far. */
  const workerPids = () =>
    [
      ...new Set(
        server
          .entries()
          .filter(({ msg }) => msg === 'request')
          .map(({ pid }) => pid),
      ),
    ].map(Number)

  /** The two processes that serve now: both have answered once this is given. */
  async function servingPids(without: number[] = []): Promise<number[]> {
    return await eventually(async () => {
      expect((await get('/v1/pets')).status).toBe(200)
      const pids = workerPids().filter((pid) => !without.includes(pid))
      expect(pids).toHaveLength(2)
      return pids
    })
  }

  const children = () =>
    execFileSync('pgrep', ['-P', String(server.child.pid)], { encoding: 'utf8' })
      .trim()
      .split('\n')
      .map(Number)

  /** The results of the same work on a connection to each of the two workers: one that is frozen takes none. */
  async function atEach<Result>(pids: number[], work: () => Promise<Result>): Promise<Result[]> {
    const results = []
    for (const pid of pids) {
      await freeze(pid)
      results.push(await work())
      thaw(pid)
    }
    return results
  }

  /** A creation in flight at each of the workers: the first of them has the last. */
  const inFlight = (pids: number[]) => atEach(pids, () => beginCreation(server.port, key))

  async function expectFinished(creations: Creation[]) {
    for (const creation of creations) {
      expect(await creation.finish()).toMatch(/^HTTP\/1\.1 201 Created/)
    }
  }

  const gone = (pids: number[]) => eventually(() => expect(pids.filter(isRunning)).toEqual([]))

  test('SIGTERM: what is in flight at each of them is finished, and it ends with 0', async () => {
    await start({ METRICS_PORT: String(await freePort()) })
    const pids = await servingPids()
    expect(pids).not.toContain(server.child.pid)
    expect(children().sort()).toEqual(pids.sort())
    const creations = await inFlight(pids)
    server.child.kill('SIGTERM')
    await eventually(() => expect(stopping()).toHaveLength(2))
    await eventually(() => expect(get('/healthz')).rejects.toThrow())
    expect(server.child.exitCode, 'who started it may end the rest then').toBeNull()
    await expectFinished(creations)
    expect(await server.exited).toBe(0)
    await gone(pids)
    expect(server.stderr).not.toMatch(/cut off|A worker died/)
  })

  test('a signal to the whole group ends no request in flight', async () => {
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

  test('finish what is in flight, and end, when the primary process is killed', async () => {
    await start()
    const pids = await servingPids()
    const creations = await inFlight(pids)
    server.child.kill('SIGKILL')
    await expectFinished(creations)
    await gone(pids)
  })

  test('one that still starts ends without an error when the primary process is killed', async () => {
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
    await server.exited // and of the workers, which have the same stderr
    expect(server.stderr).not.toContain('Uncaught exception')
  })

  test('one that dies is replaced, and the other serves meanwhile', async () => {
    const metricsPort = await freePort()
    // The first that takes its place cannot live.
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
    expect(await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text()).toContain(
      'petstore_requests_total{surface="rest",operation="listPets",status="200"}',
    )
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
    // A second after it died: one that cannot live does not spin.
    expect(Number(deaths[1]?.time) - Number(deaths[0]?.time)).toBeGreaterThan(900)
  })

  test('one with an exception that nobody caught finishes what is in flight and is replaced', async () => {
    const fault = `process.on('SIGUSR2', () => { throw new Error('boom') })`
    await start(runFirst(fault))
    const serving = await servingPids()
    const [first = 0, other = 0] = serving
    const creations = await inFlight(serving)
    process.kill(first, 'SIGUSR2')
    const line = await server.logged(/Uncaught exception/)
    expect(JSON.parse(line)).toMatchObject({ level: 60, pid: first, err: { message: 'boom' } })
    // The other worker keeps its connection, so only the answer of the first one ends.
    await Promise.race(creations.map((creation) => creation.finish()))
    const died = JSON.parse(await server.logged(/A worker died/))
    expect(died).toMatchObject({ level: 50, code: 1 })
    const replaced = await servingPids([first])
    expect(replaced).toContain(other)
    expect(isRunning(server.child.pid)).toBe(true)
    const created = server.entries().filter(({ operation }) => operation === 'createPet')
    expect(created.map(({ status }) => status)).toEqual([201, 201])
    for (const creation of creations) creation.leave()

    // The primary process with such an exception stops all of them, in order.
    const last = await inFlight(replaced)
    server.child.kill('SIGUSR2')
    await eventually(() => expect(stopping()).toHaveLength(3))
    await expectFinished(last)
    expect(await server.exited).toBe(1)
    expect(server.stderr).not.toContain('cut off')
  })

  test('SHUTDOWN_DELAY and SHUTDOWN_TIMEOUT hold for each of them', outOfThree, async () => {
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

  test('one that hangs does not hold up the stop for longer than SHUTDOWN_TIMEOUT', async () => {
    await start({ SHUTDOWN_TIMEOUT: '2s' })
    const pids = await servingPids()
    const [hung = 0, other = 0] = pids
    await freeze(hung)
    server.child.kill('SIGTERM')
    // The primary process says so, since the one that hangs cannot.
    const line = JSON.parse(await server.logged(/cut off/))
    expect(line).toMatchObject({ level: 40, pid: server.child.pid })
    expect(await server.exited).toBe(1)
    expect(stopping().map(({ pid }) => pid)).toEqual([other])
    await gone(pids)
  })

  test('one that is killed before it takes a connection leaves that to the other', async () => {
    await start()
    const [first = 0] = await servingPids()
    await freeze(first)
    const descriptors = () =>
      process.platform === 'linux' ? readdirSync(`/proc/${server.child.pid}/fd`).length : 0
    const before = descriptors()
    const requests = Array.from({ length: 8 }, () => get('/v1/pets'))
    await setTimeout(100) // a connection would be on its way to the frozen one
    process.kill(first, 'SIGKILL')
    const answers = await Promise.all(requests)
    expect(answers.map(({ status }) => status)).toEqual(requests.map(() => 200))
    await servingPids([first])
    await eventually(() => expect(descriptors()).toBeLessThanOrEqual(before))
  })

  test('one that cannot start ends them all, and the start', async () => {
    const fault = `import cluster from 'node:cluster'
      if (cluster.worker?.id === 2) process.exit(7)`
    const port = String(await freePort())
    server = Object.assign(
      runProgram(programs.server, {
        DATABASE_URL: database.url,
        WORKERS: '2',
        PORT: port,
        ...runFirst(fault),
      }),
      { origin: `http://127.0.0.1:${port}`, port: Number(port) },
    )
    expect(await server.exited).toBe(1)
    expect(server.stderr).toContain('A worker could not start')
    await expect(get('/healthz')).rejects.toThrow()
  })

  test('a second signal ends all of them at once', async () => {
    await start({ SHUTDOWN_TIMEOUT: '60s' })
    const pids = await servingPids()
    await beginCreation(server.port, key)
    const ended = once(server.child, 'exit')
    server.child.kill('SIGTERM')
    await server.logged(/Stopping/)
    server.child.kill('SIGINT')
    expect(await ended).toEqual([1, null])
    await gone(pids)
  })

  test('one that died just before a stop is not replaced, and holds up nothing', async () => {
    await start({ SHUTDOWN_DELAY: '3s' })
    const [first = 0, second = 0] = await servingPids()
    process.kill(first, 'SIGKILL')
    await server.logged(/A worker died/)
    server.child.kill('SIGTERM')
    await setTimeout(1_500) // without a stop, another one would have been started after a second
    expect(children().filter((pid) => pid !== first)).toEqual([second])
    expect(await server.exited).toBe(0)
    expect(server.stderr).not.toContain('cut off')
    await gone([second])
  })

  test('one that is still starting stops with the others', async () => {
    await start({ SHUTDOWN_TIMEOUT: '60s' })
    const [first = 0, second = 0] = await servingPids()
    process.kill(first, 'SIGKILL')
    await server.logged(/A worker died/)
    // Two children again: the new one has just been started, and serves nothing yet.
    await eventually(() => expect(children().filter((pid) => pid !== first)).toHaveLength(2))
    server.child.kill('SIGTERM')
    const began = performance.now()
    expect(await server.exited).toBe(0)
    expect(performance.now() - began).toBeLessThan(30_000)
    expect(server.stderr).not.toContain('cut off')
    expect(stopping(), 'the new one has not begun to serve').toMatchObject([{ pid: second }])
    await gone([second])
  })

  test('one that was killed in the moment of a stop keeps no other from finishing', async () => {
    await start()
    const [first = 0, second = 0] = await servingPids()
    await freeze(first)
    const creation = await beginCreation(server.port, key) // the other one has it
    const primary = server.child.pid as number
    await freeze(primary)
    process.kill(first, 'SIGKILL')
    await setTimeout(100) // its side of the channel is closed
    server.child.kill('SIGTERM')
    thaw(primary) // it receives both signals at once
    await eventually(() => expect(stopping()).toMatchObject([{ pid: second }]))
    expect(server.child.exitCode, 'who started it may end the rest then').toBeNull()
    await expectFinished([creation])
    const code = await server.exited
    // The system orders the two signals. If the death is the first, nothing was cut off by the stop.
    const diedBefore = server.entries().some(({ msg }) => /^A worker died/.test(String(msg)))
    expect(code).toBe(diedBefore ? 0 : 1)
    expect(server.stderr).not.toMatch(/cut off|Error/)
    await gone([second])
  })

  test('the metrics are those of all of them together; each has a cache of its own', async () => {
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

  test('the metrics are there while one of them starts', async () => {
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
    const response = await fetch(`http://127.0.0.1:${metricsPort}/metrics`)
    expect(response.status).toBe(200)
    expect(await response.text()).toContain('operation="listPets"')
  })

  test('one that is killed in the moment of a look at the metrics keeps the others serving', async () => {
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
    // The request comes before the news of the end.
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

  test('the primary process loads nothing of what serves', async () => {
    await start(tellPackages)
    const pids = await servingPids()
    const [primary = [], ...workers] = [Number(server.child.pid), ...pids].map((pid) =>
      packagesIn(server.stderr, pid),
    )
    expect(primary).toContain('kysely') // which brings the tables
    for (const name of ['express', '@trpc/server', 'kysely']) {
      for (const names of workers) expect(names).toContain(name)
    }
    expect(primary.filter((name) => /^(express|@trpc)/.test(name))).toEqual([])
  })

  const stopping = () => server.entries().filter(({ msg }) => /^Stopping/.test(String(msg)))
})

function isRunning(pid: number | undefined): boolean {
  try {
    return pid !== undefined && process.kill(pid, 0)
  } catch {
    return false
  }
}
