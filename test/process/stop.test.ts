/** The stop of the process and its database: what is in flight ends, and nothing is lost. */
import { once } from 'node:events'
import { connect } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import { describe, expect, onTestFinished, test } from 'vitest'
import { TITLE } from '../../src/config/product.ts'
import { beginCreation } from '../support/creation.ts'
import { engine, testOnce } from '../support/database.ts'
import { freeze, thaw } from '../support/freeze.ts'
import { startInstance, until } from '../support/instance.ts'
import { freePort } from '../support/mysql.ts'
import { firstLine, isListening, keepAlive, requestText } from '../support/raw.ts'

test('SIGTERM: requests in flight finish, new connections are refused, the process exits with 0', async () => {
  const METRICS_PORT = String(await freePort())
  const { program, key, fetch: get, sql, stop } = await startInstance({ METRICS_PORT })
  onTestFinished(async () => void (await stop()))
  const { port } = program
  const began = Date.now()
  const request = await beginCreation(port, key)
  const aborted = await beginCreation(port, key)
  // A slow reader of the metrics does not delay the stop.
  const reader = connect(Number(METRICS_PORT), '127.0.0.1').on('error', () => {})
  reader.write('GET /metrics HTTP/1.1\r\n')
  const idle = (await keepAlive(port)).resume()
  // Accepted before the following request, and never used.
  const silent = connect(port, '127.0.0.1').on('error', () => {})
  await once(silent, 'connect')
  expect((await get('/v1/pets')).status).toBe(200)
  program.child.kill('SIGTERM')
  await once(idle, 'close')
  await until('new connections are refused', async () => !(await isListening(port)))
  // Metrics are served during the stop.
  const metrics = await fetch(`http://127.0.0.1:${METRICS_PORT}/metrics`)
  expect(await metrics.text()).toMatch(/^petstore_requests_total\{/m)
  aborted.leave()
  await program.logged(/"status":499/)
  const answer = await request.finish()
  expect(answer).toMatch(/^HTTP\/1\.1 201 Created/)
  expect(answer).toMatch(/\{"id":\d+,.*\}$/)
  expect(await program.exited).toBe(0)
  silent.destroy()
  const entries = program
    .entries()
    .map(({ level, msg, operation, path, status }) => [level, msg, operation ?? path, status])
  expect(entries).toEqual([
    ['info', `${TITLE} is running`, undefined, undefined],
    ['info', 'request', 'listPets', 200],
    ['info', 'Stopping: finishing the requests in flight', undefined, undefined],
    ['info', 'request', 'createPet', 499],
    ['info', 'request', 'createPet', 201],
    ['info', 'Stopped', undefined, undefined],
  ])
  // The database has exactly the acknowledged creation, and the last use of the key.
  expect(await sql('select count(*) as n from pets')).toEqual([{ n: 1n }])
  const [{ used } = {}] = await sql('select max(last_used_at) as used from api_keys')
  expect(Number(used)).toBeGreaterThanOrEqual(began)
  expect(Number(used)).toBeLessThanOrEqual(Date.now())
})

testOnce('SIGTERM: requests that arrive as SHUTDOWN_DELAY ends are answered', async () => {
  const { program, stop } = await startInstance({ SHUTDOWN_DELAY: '2s' })
  onTestFinished(async () => void (await stop()))
  const { child, port } = program
  const kept = await Promise.all(Array.from({ length: 20 }, () => keepAlive(port)))
  child.kill('SIGTERM')
  await program.logged(/Stopping/)
  await freeze(Number(child.pid))
  const answers = kept.map((socket) => {
    socket.write(requestText('GET /healthz'))
    return firstLine(socket)
  })
  // When the process goes on, its delay is over before it reads.
  await setTimeout(2_500)
  thaw(Number(child.pid))
  expect(await Promise.all(answers)).toEqual(Array(20).fill('HTTP/1.1 200 OK'))
  expect(await program.exited).toBe(0)
})

testOnce(
  'SIGTERM: a request that does not arrive in half of SHUTDOWN_TIMEOUT gets 408, and cuts nothing off',
  async () => {
    const { program, key, stop } = await startInstance({ SHUTDOWN_TIMEOUT: '3s' })
    onTestFinished(async () => void (await stop()))
    const request = await beginCreation(program.port, key)
    expect(await program.end('SIGTERM')).toBe(0)
    expect(program.entries()).toContainEqual(expect.objectContaining({ status: 408 }))
    request.leave()
  },
)

describe.runIf(engine === 'mysql')('SIGTERM while the database hangs', () => {
  /** Starts a service, uses its database, and then makes that hang. */
  async function startHanging(variables: Record<string, string>) {
    const service = await startInstance(variables)
    onTestFinished(async () => void (await service.stop('SIGKILL')))
    expect((await service.rest('GET', '/pets')).status).toBe(200)
    service.proxy?.stall()
    return service
  }

  test('loses only the last uses of keys: exit code 0', async () => {
    const { program } = await startHanging({ DATABASE_TIMEOUT: '30s' })
    expect(await program.end('SIGTERM')).toBe(0)
    expect(program.stderr).toContain('Could not record when keys wer')
    expect(program.stderr).toContain('"Stopped"')
  })

  test('cuts off the requests that wait for it within SHUTDOWN_TIMEOUT: exit code 1', async () => {
    const { program, fetch: get, used, waiting } = await startHanging({ SHUTDOWN_TIMEOUT: '1s' })
    const cutOff = expect(get('/v1/pets/1')).rejects.toThrow()
    // It waits for a statement, or, some time after the latest one, for a session that works.
    const isWaiting = async () => (await used()) + (await waiting()) > 0
    await until('the request waits for the database', isWaiting)
    expect(await program.end('SIGTERM')).toBe(1)
    expect(program.stderr).toContain('cut off')
    await cutOff
  })
})
