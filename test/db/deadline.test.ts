/** DATABASE_TIMEOUT: the time of the response, the end of the statement, and the connections after it. */
import { createHash } from 'node:crypto'
import {
  afterAll,
  afterEach,
  beforeAll,
  beforeEach,
  describe,
  expect,
  onTestFinished,
  test,
} from 'vitest'
import { engine } from '../support/database.ts'
import { addKey, type Instance, running, startInstance, until } from '../support/instance.ts'
import { keyedFetch } from '../support/rest.ts'
import { openSql, type Sql } from '../support/sql.ts'

const rex = { name: 'Rex', categoryId: 3 }

/** DATABASE_TIMEOUT, and what ends a statement without a deadline: `lock_wait_timeout`; in milliseconds. */
const TIMEOUT = 2_000
const LATEST = 30_000

/** A timer of Node may be early by a millisecond or two. */
const EARLIEST = TIMEOUT - 5

const random = () => crypto.getRandomValues(Buffer.alloc(32)).toString('base64url')

const listAs = (origin: string, key: string) => keyedFetch(origin, key)('/v1/pets')

/** The status of a call on either surface, and the milliseconds it took. */
async function timed(call: Promise<unknown>): Promise<{ status: number; took: number }> {
  const start = performance.now()
  const status = await call.then(
    (answer) => (answer as { status?: number }).status ?? 200,
    (error) => error.data.httpStatus as number,
  )
  return { status, took: performance.now() - start }
}

function expectInTime({ status, took }: { status: number; took: number }, expected = 503): void {
  expect(status).toBe(expected)
  expect(took).toBeGreaterThan(EARLIEST)
  expect(took).toBeLessThan(LATEST)
}

describe.runIf(engine === 'mysql')('a database that does not answer', () => {
  let service: Instance
  let locker: Sql
  beforeAll(async () => {
    service = await startInstance({ DATABASE_TIMEOUT: `${TIMEOUT}ms` })
  })
  afterAll(() => service.stop())
  beforeEach(async () => {
    locker = await openSql(service.databaseUrl)
    expect((await service.rest('GET', '/pets')).status).toBe(200)
  })
  afterEach(async () => {
    service.proxy?.heal()
    await locker.close()
    await until('it serves again', async () => (await service.rest('GET', '/pets')).status === 200)
  })
  const list = (key = service.key) => listAs(service.origin, key)
  let serial = 0
  const withKey = () => ({ headers: { 'idempotency-key': `"key ${serial++}"` }, body: rex })

  test('every operation on both surfaces: 503 in time, ended on the server, without a later effect', async () => {
    const errors = () => service.program.entries().filter(({ err }) => err)
    const before = errors().length
    await locker('lock tables pets write')
    const answers = await Promise.all(
      [
        service.rest('GET', '/pets'),
        service.rest('GET', '/pets/1'),
        service.rest('POST', '/pets', { body: rex }),
        service.rest('POST', '/pets', withKey()),
        service.trpc.listPets.query(),
        service.trpc.getPet.query({ petId: 1 }),
        service.trpc.createPet.mutate(rex),
      ].map(timed),
    )
    for (const answer of answers) expectInTime(answer)
    // A line has the first call of an operation, and one a second later the number of the others.
    const logged = () => errors().slice(before)
    const calls = () => logged().reduce((sum, line) => sum + Number(line.calls), 0)
    await until('the log has the cause of each', () => calls() === answers.length)
    const cause = 'The database did not answer within 2000 ms'
    expect(new Set(logged().map(({ err }) => (err as Error).message))).toEqual(
      new Set([`The database cannot be used right now: ${cause}`]),
    )
    await until(
      'the statements end, although the lock is still held',
      async () => (await running(service.sql, '%`pets`%')).length === 0,
      10_000,
    )
    await until('no connection is in use', async () => (await service.used()) === 0, 10_000)
    await locker('unlock tables')
    expect(await service.countPets()).toBe(0)
  })

  // Each statement hangs in its own call; the ones before it succeed.
  test('any statement that hangs, up to the commit: 503 in time, ended, without effect', async () => {
    const { proxy } = service
    if (!proxy) throw new Error('There is no proxy')
    // An earlier attempt may have left rows.
    await service.sql('delete from idempotency_keys')
    // A key that has expired is removed before the creation. Its hash is the last one in the index: InnoDB also locks
    // the next row, which may be that of the commit that hangs.
    const key = 'old 5682'
    const old = { headers: { 'idempotency-key': `"${key}"` }, body: rex }
    const hash = createHash('sha256').update(key).digest('hex')
    expect(hash).toMatch(/^fff/)
    await service.sql(
      `insert into idempotency_keys (api_key_id, key_hash, operation, fingerprint, answer, created_at)
       select coalesce(holder, id), '${hash}', 'createPet', '', '', 0 from api_keys
       where hash = '${createHash('sha256').update(service.key).digest('hex')}'`,
    )
    const create = (init: object) => () => timed(service.rest('POST', '/pets', init))
    const hanging: [pattern: RegExp, call: () => ReturnType<typeof timed>][] = [
      [/^select .*from `idempotency_keys`/, create(withKey())],
      [/^begin/, create(withKey())],
      [/^insert into `pets`/, create(withKey())],
      [/^insert into `idempotency_keys`/, create(withKey())],
      [/^commit/, create(withKey())],
      [/^delete from `idempotency_keys`/, create(old)],
      [/^select .*from `pets`/, () => timed(list())],
    ]
    const answers: ReturnType<typeof timed>[] = []
    for (const [pattern, call] of hanging) {
      const isHanging = proxy.hangAt(pattern)
      answers.push(call())
      await isHanging // no two share a statement or a transaction
    }
    for (const answer of answers) expectInTime(await answer)
    await until('no connection is in use', async () => (await service.used()) === 0, 10_000)
    expect(await service.countPets()).toBe(0)
    expect(await service.sql('select created_at from idempotency_keys')).toEqual([
      { created_at: 0n },
    ])
  })

  // MariaDB itself ends a statement that waits for a lock without a client.
  test('a statement that uses the CPU is ended on the server', async () => {
    await service.rest('POST', '/pets', { body: rex })
    await service.sql('rename table pets to kept')
    await service.sql('create view pets as select * from kept where sleep(20) = 0')
    try {
      expectInTime(await timed(list()))
      const isEnded = async () => (await running(service.sql, '%`pets`%')).length === 0
      await until('it is ended', isEnded, 10_000)
    } finally {
      await service.sql('drop view pets')
      await service.sql('rename table kept to pets')
      await service.sql('delete from pets')
    }
  })

  test('a key outside the cache is 503 in time, and its lookup is ended on the server', async () => {
    const [strange, known] = [await addKey(service.sql), await addKey(service.sql)]
    expect((await list(known)).status).toBe(200)
    await locker('lock tables api_keys write')
    const other = `petstore_${random()}`
    const hash = createHash('sha256').update(other).digest('hex')
    const queries = () => service.proxy?.statements.filter((text) => text.includes(hash)) ?? []
    const first = timed(list(other))
    // A later lookup waits for this one, and may end before it is sent.
    await until('the first lookup is sent', () => queries().length > 0)
    const answers = await Promise.all([
      first,
      timed(list(strange)),
      timed(keyedFetch(service.origin, strange)('/trpc/listPets')),
    ])
    for (const answer of answers) expectInTime(answer)
    await until(
      'the look-ups are ended',
      async () => (await running(service.sql, '%`api_keys`%')).length === 0,
      10_000,
    )
    await until('no connection is in use', async () => (await service.used()) === 0, 10_000)
    // A caller whose key is in the cache is served.
    expect((await list(known)).status).toBe(200)
    await new Promise((resolve) => setTimeout(resolve, 200)) // another attempt would have begun
    expect(queries()).toHaveLength(1)
    await locker('unlock tables')
    expect((await list(strange)).status).toBe(200)
  })

  test('the wait for a connection is part of the timeout', async () => {
    const variables = { DATABASE_TIMEOUT: `${TIMEOUT}ms`, DATABASE_POOL_SIZE: '2' }
    const small = await startInstance(variables)
    onTestFinished(async () => void (await small.stop()))
    const list = (query = '') => timed(small.rest('GET', `/pets${query}`))
    expect((await list()).status).toBe(200)
    await using locker = await openSql(small.databaseUrl)
    await locker('lock tables pets write')
    const first = ['', '?status=sold'].map(list) // no two share a query
    await until('both connections are in use', async () => (await small.used()) === 2)
    await new Promise((resolve) => setTimeout(resolve, TIMEOUT * 0.5))
    // These get a connection at the deadline of the first ones, with half of their own time left.
    const second = ['?cursor=1', '?status=sold&cursor=1'].map(list)
    for (const answer of await Promise.all([...first, ...second])) expectInTime(answer)
    await small.idle()
  })

  test('a server that hangs is used again after it recovers', async () => {
    service.proxy?.stall()
    // More calls than connections.
    const more = await Promise.all(Array.from({ length: 30 }, () => timed(list())))
    for (const answer of more) expectInTime(answer)
    service.proxy?.flow()
    await until('it recovers', async () => (await list()).status === 200, 10_000)
    const again = await Promise.all(Array.from({ length: 30 }, () => timed(list())))
    expect(again.map(({ status }) => status)).toEqual(Array(30).fill(200))
    expect((await service.rest('POST', '/pets', { body: rex })).status).toBe(201)
    await service.idle()
    const [{ connections } = {}] = await service.sql(
      'select count(*) as connections from information_schema.processlist where db = database()',
    )
    expect(Number(connections)).toBeLessThanOrEqual(12) // ten of the service, and two of the test
  })
})
