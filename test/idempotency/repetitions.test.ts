/** Idempotency keys from outside: what is compared, how long, for whom, and what failures leave. */
import { hash } from 'node:crypto'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { engine, newDatabase } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'
import { addKey, type Instance, running, startInstance, until } from '../support/instance.ts'
import { restClient } from '../support/rest.ts'
import { type Service, startService, trpcClient } from '../support/service.ts'
import { openSql, type Sql } from '../support/sql.ts'

const HOUR = 3_600_000

const rex = { name: 'Rex', categoryId: 3, status: 'available' }
let serial = 0
const newKey = () => `"repetition ${serial++}"`

interface Answer {
  status: number
  body: unknown
  text: string
}
const idOf = ({ body }: Answer) => (body as { id: number }).id
/** The key, which a test writes in quotes, as the database has it. */
const hashOf = (key: string) => hash('sha256', key.slice(1, -1))
const of = (key: string, body: unknown = rex) => ({ headers: { 'idempotency-key': key }, body })

/** Starts the service in this process, whose clock can be put forward; `stop` removes the database. */
const startHere = (variables: Record<string, string>, url: string, remove = async () => {}) =>
  startService(variables, { database: { url, remove } })

describe('a service', () => {
  let service: Instance
  let sql: Sql
  beforeAll(async () => {
    service = await startInstance()
    sql = service.sql
  })
  afterAll(() => service.stop())
  const create = (key: string, body: unknown = rex) => service.rest('POST', '/pets', of(key, body))

  test.each<[string, unknown, unknown]>([
    ['name', rex, { ...rex, name: 'rex' }],
    ['a blank at the end of the name', rex, { ...rex, name: 'Rex ' }],
    ['categoryId', rex, { ...rex, categoryId: 4 }],
    [
      '2^53 and 2^53 + 1',
      { ...rex, categoryId: 2n ** 53n },
      { ...rex, categoryId: 2n ** 53n + 1n },
    ],
    ['the sign', { ...rex, categoryId: -3 }, rex],
    ['status', rex, { ...rex, status: 'sold' }],
    ['another status', { ...rex, status: 'pending' }, { ...rex, status: 'sold' }],
    ['a status left out', { ...rex, status: 'pending' }, { ...rex, status: undefined }],
    [
      'where one field ends and the next begins',
      { ...rex, name: 'Rex 1', categoryId: 1 },
      { ...rex, name: 'Rex ', categoryId: 11 },
    ],
  ])('another request under the same key is 422: %s', async (_, one, other) => {
    const key = newKey()
    const pets = await service.countPets()
    const first = await create(key, one)
    expect(first.status).toBe(201)
    const refused = await create(key, other)
    expect(refused).toMatchObject({ status: 422, body: { code: 'UNPROCESSABLE_CONTENT' } })
    expect((await create(key, one)).text).toBe(first.text)
    expect(await service.countPets()).toBe(pets + 1)
  })

  test('both surfaces repeat each other', async () => {
    const key = newKey()
    const withKey = trpcClient(service.origin, service.key, (url, init) => {
      const headers = new Headers(init?.headers)
      headers.set('idempotency-key', key)
      return fetch(url, { ...init, headers })
    })
    const first = await create(key)
    const again = await withKey.createPet.mutate({ name: 'Rex', categoryId: 3 })
    expect(again.id).toBe(BigInt(idOf(first)))
  })

  test('a key of 255 characters will do, in quotes or not, escaped or not', async () => {
    const long = 'x'.repeat(255)
    const answers = [
      await create(long),
      await create(`"${long}"`),
      await create(`"${'y'.repeat(254)}\\""`),
    ]
    expect(answers.map(({ status }) => status)).toEqual([201, 201, 201])
    const [first, second, third] = answers.map(idOf)
    expect(second).toBe(first)
    expect(third).not.toBe(first)
    for (const key of ['x'.repeat(256), `"${'x'.repeat(256)}"`, `"${'y'.repeat(255)}\\""`]) {
      expect((await create(key)).status).toBe(400)
    }
    // Every character counts.
    expect(idOf(await create(`${'x'.repeat(254)}z`))).not.toBe(first)
  })

  test('a key counts for its API key alone, at the same moment too', async () => {
    const others = await Promise.all([addKey(sql, 'one'), addKey(sql, 'two'), addKey(sql, 'three')])
    const clients = others.map((key) => restClient(service.origin, key))
    for (const client of clients) expect((await client('GET', '/pets')).status).toBe(200)
    for (let round = 0; round < 10; round++) {
      const key = newKey()
      const answers = await Promise.all(
        clients.map((client, holder) =>
          client('POST', '/pets', of(key, { ...rex, name: `of ${holder}` })),
        ),
      )
      expect(answers.map(({ status }) => status)).toEqual([201, 201, 201])
      expect(new Set(answers.map(idOf)).size).toBe(3)
    }
  })

  test('a key is kept for 24 hours, if nothing else is said', async () => {
    for (const [age, isKept] of [
      [24 * HOUR - 60_000, true],
      [24 * HOUR + 1_000, false],
    ] as const) {
      const key = newKey()
      const first = await create(key)
      await sql('update idempotency_keys set created_at = ? where key_hash = ?', [
        Date.now() - age,
        hashOf(key),
      ])
      const second = await create(key)
      expect(second.status).toBe(201)
      expect(second.text === first.text).toBe(isKept)
      if (isKept) continue
      // From now on the key stands for the new pet.
      expect((await create(key)).text).toBe(second.text)
      expect((await create(key, { ...rex, name: 'Bella' })).status).toBe(422)
    }
  })

  test('each key is kept from its own creation on', async () => {
    for (let round = 0; round < 3; round++) {
      const before = Date.now()
      const key = newKey()
      await create(key)
      const [row] = await sql('select created_at from idempotency_keys where key_hash = ?', [
        hashOf(key),
      ])
      expect(Number(row?.created_at)).toBeGreaterThanOrEqual(before)
      expect(Number(row?.created_at)).toBeLessThanOrEqual(Date.now())
      while (Date.now() < before + 5) await new Promise(setImmediate)
    }
  })

  test('a creation that fails half-way leaves neither a pet nor a key', async () => {
    const key = newKey()
    const pets = await service.countPets()
    await sql(
      engine === 'mysql'
        ? "create trigger broken before insert on idempotency_keys for each row signal sqlstate '45000'"
        : 'create trigger broken before insert on idempotency_keys begin insert into nowhere values (1); end',
    )
    try {
      expect(await create(key)).toMatchObject({ status: 500 })
      expect(await service.countPets()).toBe(pets)
    } finally {
      await sql('drop trigger broken')
    }
    expect((await create(key, { ...rex, name: 'Bella' })).status).toBe(201)
    expect(await service.countPets()).toBe(pets + 1)
  })

  test('requests of all kinds at the same moment do not get into each other', async () => {
    const pets = await service.countPets()
    const keys = Array.from({ length: 10 }, newKey)
    const answers = await Promise.all([
      ...keys.map((key) => create(key)),
      ...keys.map((_, index) =>
        service.rest('POST', '/pets', { body: { ...rex, name: `${index}` } }),
      ),
      ...keys.map(() => service.rest('GET', '/pets')),
    ])
    expect(answers.map(({ status }) => status)).toEqual([
      ...Array(20).fill(201),
      ...Array(10).fill(200),
    ])
    expect(new Set(answers.slice(0, 20).map(idOf)).size).toBe(20)
    expect(await service.countPets()).toBe(pets + 20)
  })

  if (engine === 'mysql') {
    const adding = 'insert into `pets`%'

    test('409 while the first is running, for the same API key; then the same answer', async () => {
      await using locker = await openSql(service.databaseUrl)
      const key = newKey()
      const pets = await service.countPets()
      const other = restClient(service.origin, await addKey(sql, 'other'))
      expect((await other('GET', '/pets')).status).toBe(200)
      await locker('lock tables pets write')
      const first = create(key)
      await until('the first waits', async () => (await running(sql, adding)).length === 1)
      const refused = await create(key)
      expect(refused).toMatchObject({ status: 409, body: { code: 'CONFLICT' } })
      expect((await create(key, { ...rex, name: 'Bella' })).status).toBe(409)
      const theirs = other('POST', '/pets', of(key))
      await until('the other waits too', async () => (await running(sql, adding)).length === 2)
      await locker('unlock tables')
      const answers = await Promise.all([first, theirs])
      expect(answers.map(({ status }) => status)).toEqual([201, 201])
      expect(idOf(answers[0])).not.toBe(idOf(answers[1]))
      expect((await create(key)).text).toBe((await first).text)
      expect(await service.countPets()).toBe(pets + 2)
    })

    test.each([
      ['the same request', 201],
      ['another request', 422],
    ])('another instance is faster, with %s: %i, and no second pet', async (which, status) => {
      const key = newKey()
      const model = await create(key)
      const [row = {}] = await sql('select * from idempotency_keys where key_hash = ?', [
        hashOf(key),
      ])
      await sql('delete from idempotency_keys where key_hash = ?', [hashOf(key)])
      const pets = await service.countPets()
      await using rival = await openSql(service.databaseUrl)
      await rival('begin')
      const fingerprint = which === 'the same request' ? row.fingerprint : '0'.repeat(64)
      await rival('insert into idempotency_keys values (?)', [
        Object.values({ ...row, fingerprint }),
      ])
      const answer = create(key)
      await until(
        'the creation waits for the rival',
        async () => (await running(sql, 'insert into `idempotency_keys`%')).length === 1,
      )
      await rival('commit')
      expect((await answer).status).toBe(status)
      if (status === 201) expect((await answer).text).toBe(model.text)
      expect(await service.countPets()).toBe(pets)
    })

    test('a key whose creation failed can be used again', async () => {
      const key = newKey()
      await service.proxy?.cut()
      expect((await create(key)).status).toBe(503)
      await service.proxy?.mend()
      expect((await create(key)).status).toBe(201)
    })
  } else {
    test('a key whose creation failed can be used again', async () => {
      const key = newKey()
      await using rival = await openSql(service.databaseUrl)
      await rival('begin immediate')
      expect((await create(key)).status).toBe(503)
      await rival('rollback')
      await rival.close()
      expect((await create(key)).status).toBe(201)
    })
  }
})

test('two instances, one key, many at once: 201 or 409, and one pet', async () => {
  const database = await newDatabase()
  const one = await startInstance({}, database)
  const two = await startInstance({}, database)
  const clients = [one, two].map(({ origin }) => restClient(origin, one.key))
  for (const client of clients) expect((await client('GET', '/pets')).status).toBe(200)
  const rounds = 25
  for (let round = 1; round <= rounds; round++) {
    const key = newKey()
    const answers = await Promise.all(
      Array.from({ length: 6 }, (_, index) => clients[index % 2]?.('POST', '/pets', of(key))),
    )
    const made = answers.filter((answer) => answer?.status === 201)
    const others = answers.filter((answer) => answer?.status !== 201)
    expect(others.map((answer) => answer?.status)).toEqual(others.map(() => 409))
    expect(new Set(made.map((answer) => answer?.text)).size).toBe(1)
    expect(await one.countPets()).toBe(round)
  }
  await Promise.all([one.stop(), two.stop()])
  await database.remove()
})

/** Adds rows that are older than any lifetime. */
async function addOldRows(sql: Sql, count: number): Promise<void> {
  const rows = Array.from(
    { length: count },
    (_, index) => `(1, '${String(index).padStart(64, '0')}', 'createPet', '', '-1', ${index})`,
  )
  await sql(
    `insert into idempotency_keys
       (api_key_id, key_hash, operation, fingerprint, answer, created_at) values ${rows.join()}`,
  )
}

describe('the regular clean-up', () => {
  let service: Service
  let sql: Sql
  afterEach(async () => {
    vi.useRealTimers()
    await sql.close()
    await service.stop()
  })
  /** Starts a service whose regular rounds come when the test says so. */
  async function start(variables: Record<string, string> = {}) {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
    const database = await newDatabase()
    service = await startHere(variables, database.url, database.remove)
    sql = await openSql(database.url)
  }
  /** Ten minutes. */
  const nextRound = () => vi.advanceTimersByTime(600_000)
  const create = (key: string) => service.rest('POST', '/pets', of(key))
  const age = (key: string, by: number) =>
    sql('update idempotency_keys set created_at = ? where key_hash = ?', [
      Date.now() - by,
      hashOf(key),
    ])
  const kept = async () =>
    (await sql('select key_hash from idempotency_keys order by id')).map(({ key_hash }) => key_hash)

  test.each([
    [{}, 24 * HOUR],
    [{ IDEMPOTENCY_LIFETIME: '2h' }, 2 * HOUR],
  ])('with %o: an old row is gone, a young one is answered as before', async (variables, life) => {
    await start(variables)
    const [old, justOld, young, fresh] = [newKey(), newKey(), newKey(), newKey()]
    const texts = new Map<string, string>()
    for (const key of [old, justOld, young, fresh]) texts.set(key, (await create(key)).text)
    await age(old, 2 * life)
    await age(justOld, life + 60_000)
    await age(young, life - 15 * 60_000)
    // A round that has begun is let come to its end before the next one begins.
    const roundLeaves = (...left: string[]) =>
      eventually(async () => {
        nextRound()
        expect(await kept()).toEqual(left.map(hashOf))
      })
    await roundLeaves(young, fresh)
    const later = newKey()
    await create(later)
    await age(later, life + 60_000)
    await roundLeaves(young, fresh)
    expect((await create(young)).text).toBe(texts.get(young))
    expect((await create(fresh)).text).toBe(texts.get(fresh))
    expect((await create(old)).text).not.toBe(texts.get(old))
  })

  test('all old rows go in one round, however many; what stops it is told to the log', async () => {
    await start()
    const young = newKey()
    await create(young)
    await addOldRows(sql, 4_001)
    await sql('alter table idempotency_keys rename to elsewhere')
    nextRound()
    const warnings = () =>
      service.logged.map((line) => JSON.parse(line)).filter(({ level }) => level === 40)
    await eventually(() =>
      expect(warnings()).toMatchObject([
        {
          msg: 'Could not remove old idempotency keys',
          err: { message: expect.stringContaining('idempotency_keys') },
        },
      ]),
    )
    await sql('alter table elsewhere rename to idempotency_keys')
    nextRound()
    await eventually(async () => expect(await kept()).toEqual([hashOf(young)]))
    expect((await service.rest('GET', '/pets')).status).toBe(200)
  })
})

test.runIf(engine === 'mysql')('no round of cleaning begins while another one runs', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  const service = await startService()
  try {
    await using locker = await openSql(service.databaseUrl)
    await locker('lock tables idempotency_keys write')
    const rounds = () => running(service.sql, 'select%`idempotency_keys`%')
    vi.advanceTimersByTime(600_000)
    await until('a round waits', async () => (await rounds()).length === 1)
    vi.advanceTimersByTime(1_200_000)
    await new Promise((resolve) => setTimeout(resolve, 100)) // others would wait beside it by now
    expect(await rounds()).toHaveLength(1)
  } finally {
    vi.useRealTimers()
    await service.stop()
  }
})

test('a stop ends the round of cleaning, too', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  const service = await startService()
  try {
    await addOldRows(service.sql, 3_000)
    vi.advanceTimersByTime(600_000)
    await eventually(async () => {
      const [row] = await service.sql('select count(*) as count from idempotency_keys')
      expect(Number(row?.count)).toBeLessThan(3_000)
    })
  } finally {
    vi.useRealTimers()
    await service.stop()
  }
  await new Promise((resolve) => setTimeout(resolve, 100)) // what goes on would be told by now
  expect(service.logged.filter((line) => JSON.parse(line).level >= 40)).toEqual([])
})
