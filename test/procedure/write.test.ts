/** Mutations: one transaction with its own stores, repeated after a failure without effect. */
import { setImmediate } from 'node:timers/promises'
import { type Compilable, sql } from 'kysely'
import { beforeEach, expect, test } from 'vitest'
import { z } from 'zod'
import type { Database, RootDatabase } from '../../db/database.ts'
import { Deadline } from '../../db/deadline.ts'
import { DatabaseUnavailableError, DuplicateError } from '../../db/errors.ts'
import type { Value } from '../../db/plan.ts'
import { creation } from '../../db/plans/creations.ts'
import { retry } from '../../db/retry.ts'
import { execute, lockRow } from '../../db/statement.ts'
import { inTransaction } from '../../db/transaction.ts'
import { petProcedures } from '../../src/petstore/pets/procedures.ts'
import { NewPet, Pet } from '../../src/petstore/pets/schema.ts'
import { createStores } from '../../src/petstore/resources.ts'
import type { Call as CallWith } from '../../src/procedure/call.ts'
import { int64Input } from '../../src/procedure/fields.ts'
import { router, unique } from '../../src/procedure/procedure.ts'
import { create, write, writeIdempotent } from '../../src/procedure/write.ts'
import { engine } from '../support/database.ts'
import { addPet, countPets, petOf } from '../support/pets.ts'
import { described, procedure, resourcesOf, type Stores } from '../support/procedures.ts'
import { transformer } from '../support/router.ts'
import { serviceForFile } from '../support/service.ts'

type Call = CallWith<Stores>

/** The stores of the service, and their database for the statements of these tests. */
interface AllStores extends Stores {
  db: Database
}
const createAllStores = (db: Database): AllStores => {
  const stores = { ...createStores(db), db }
  outer ??= stores // the first are those of the service
  return stores
}
let outer: AllStores

const rex = { name: 'Rex', categoryId: 1 }
const example = petOf(42n)
const { id: _, ...newPet } = example
const exampleInput = { otherId: 2 }
const petId = int64Input({ description: 'One.' })
const Two = z
  .object({ petId, otherId: int64Input({ description: 'Another.' }) })
  .meta({ id: 'Two' })
type Input = z.output<typeof Two>

const dbOf = ({ stores }: Call) => (stores as AllStores).db
const run = (call: Call, query: Compilable, db = dbOf(call)) => execute(db, query, call.deadline)
const sell = (call: Call, id: bigint, db = dbOf(call)) =>
  run(call, db.kysely.updateTable('pets').set({ status: 'sold' }).where('id', '=', id), db)
/** Adds a pet with an id that is taken. */
const addAgain = (call: Call, id: bigint) =>
  run(
    call,
    dbOf(call).kysely.insertInto('pets').values({ id, name: 'x', category_id: 1n, status: 'sold' }),
  )
const raw = <Row>(call: Call, text: ReturnType<typeof sql<Row>>) =>
  execute(dbOf(call), text, call.deadline)

const newRow = creation(
  'pets',
  (value: Value<{ name: string }>) => ({
    ...{ name: value(({ name }) => name), category_id: 1n, status: 'available' as const },
  }),
  String,
)

let attempts = 0
let reads = 0
let draws = 0
const counts: number[] = []
/** Resolves when two mutations are in their transactions. */
const met = Promise.withResolvers<void>()
/** Resolves when two mutations have each locked a pet. */
const crossed = Promise.withResolvers<void>()
let crossing = 0
let forgotten: () => Promise<unknown>
let late: Promise<unknown>

/** Mutations of two pets. */
const deeds: Record<string, (call: Call, input: Input) => Promise<unknown>> = {
  async sell(call, { petId, otherId }) {
    await sell(call, petId)
    await sell(call, otherId)
  },
  spoil: (call, { petId }) => sell(call, petId),
  async halve(call, { petId, otherId }) {
    await sell(call, petId)
    await addAgain(call, otherId)
  },
  async meet(call, { petId, otherId }) {
    if (attempts === 2) met.resolve()
    await met.promise
    await sell(call, petId)
    if (otherId === 0n) throw new Error('There is no other')
  },
  /** Locks the other pet once two mutations have locked one each. */
  async cross(call, { petId, otherId }) {
    await lockRow(dbOf(call), 'pets', petId, call)
    if (++crossing === 2) crossed.resolve()
    await call.deadline.race(crossed.promise)
    await lockRow(dbOf(call), 'pets', otherId, call)
  },
  /** Loses its first connection, as when the server stops. */
  async lose(call) {
    await addPet(call.stores.pets, call, { ...newPet, name: 'Copy' })
    if (attempts > 1) return
    const { rows } = await raw(call, sql<{ id: bigint }>`select connection_id() as id`)
    await raw(call, sql`kill ${sql.lit(Number(rows[0]?.id))}`)
  },
  /** Ignores a statement whose transaction was rolled back by a deadlock. */
  async swallow(call) {
    const { stores } = call
    await addPet(stores.pets, call, newPet)
    if (attempts === 1) {
      await execute(dbOf(call), sql`rollback`)
      const signal = sql`signal sqlstate '40001' set mysql_errno = 1213, message_text = 'Deadlock'`
      await raw(call, signal).catch(() => {})
    }
    await addPet(stores.pets, call, newPet)
  },
  /** Begins two statements together, of which the first ends the transaction. */
  async pair(call) {
    if (attempts > 1) return
    await addPet(call.stores.pets, call, { ...newPet, name: 'First' })
    if (engine === 'mysql') await execute(dbOf(call), sql`rollback`)
    const signal = sql`signal sqlstate '40001' set mysql_errno = 1213, message_text = 'Deadlock'`
    const [ended, second] = await Promise.allSettled([
      engine === 'mysql'
        ? raw(call, signal)
        : addPet(call.stores.pets, call, { ...newPet, name: 'rollback' }),
      addPet(call.stores.pets, call, { ...newPet, name: 'Second' }),
    ])
    expect([ended.status, second.status]).toEqual(['rejected', 'rejected'])
  },
  async again({ deadline }) {
    const read = async () => {
      if (++reads === 1) throw new DatabaseUnavailableError(undefined, true)
    }
    await retry(read, { repeatable: true, deadline })
  },
  /** Reads, locks a pet, adds another one, and counts the pets. */
  async tally(call, { petId }) {
    await call.stores.pets.get(call, petId) // as a resolver looks for the parent
    await sell(call, petId)
    await newRow(dbOf(call)).insert(call, { name: 'Behind' })
    counts.push((await run(call, dbOf(call).kysely.selectFrom('pets').select('id'))).rows.length)
  },
  reach: (call, { petId }) => outer.pets.get(call, petId),
  make: (call) => addPet(outer.pets, call, newPet),
  change: (call, { petId }) => sell(call, petId, outer.db),
  nest: (call) => call.shared.transact(async () => {}, call.deadline),
  async forget(call, { petId }) {
    await run(call, dbOf(call).kysely.selectFrom('pets').select('id')) // the transaction has begun
    forgotten = () => sell(call, petId)
    late = setImmediate().then(forgotten) // while a server commits
    late.catch(() => {})
  },
}
const changes = Object.entries(deeds).map(([name, deed]) => [
  name,
  procedure
    .meta(described('PUT', `/pets/{petId}/${name}`, { example, exampleInput }))
    .input(Two)
    .output(Pet)
    .mutation(({ ctx, input }) =>
      write(ctx, async (call) => {
        attempts++
        await deed(call, input)
        return name === 'spoil' ? { ...example, status: 'free' as 'sold' } : example
      }),
    ),
])

const creating = (path: `/${string}`) =>
  procedure
    .meta(
      described('POST', path, {
        creates: '/pets/{id}',
        takesKey: true,
        example,
        exampleInput: rex,
      }),
    )
    .input(NewPet)
    .output(Pet)

const served = router({
  ...(Object.fromEntries(changes) as object),
  getPet: petProcedures.getPet,
  listPets: petProcedures.listPets, // the successor of getPet
  twin: creating('/twins').mutation(({ ctx, input }) =>
    writeIdempotent(ctx, async (call) => {
      const original = await call.stores.pets.get(call, input.categoryId)
      if (!original) throw new Error('There is no original')
      return await addPet(call.stores.pets, call, input)
    }),
  ),
  unfit: creating('/unfits').mutation(({ ctx, input }) => {
    const output = (id: bigint) => ({ ...example, id, status: 'free' as 'sold' })
    return create(ctx, { ...ctx.stores.pets.newPet, output }, input)
  }),
  drawn: creating('/drawn').mutation(({ ctx, input }) => {
    const output = (id: bigint) => ({ ...example, id, categoryId: BigInt(++draws) })
    return create(ctx, { ...ctx.stores.pets.newPet, output }, input)
  }),
  misfit: creating('/misfits').mutation(({ ctx, input }) =>
    writeIdempotent(ctx, async (call) => {
      const made = await addPet(call.stores.pets, call, input)
      return { ...made, status: 'free' as 'sold' }
    }),
  ),
  double: procedure
    .meta(described('POST', '/pets/{petId}/double', { takesKey: true, example }))
    .input(z.object({ petId }))
    .output(Pet)
    .mutation(({ ctx, input }) =>
      writeIdempotent(ctx, async (call) => {
        const made = await addPet(call.stores.pets, call, newPet)
        if (input.petId % 2n === 0n) throw new Error('The second fails')
        await addPet(call.stores.pets, call, newPet)
        return made
      }),
    ),
})

const service = await serviceForFile({}, { resources: resourcesOf(served, createAllStores) })
beforeEach(async () => {
  attempts = 0
  service.logged.length = 0
  await service.sql('delete from pets')
  await service.sql('delete from idempotency_keys')
  await service.sql(
    `insert into pets (id, name, category_id, status) values ${[1, 2, 3].map((id) => `(${id}, 'Rex', 1, 'available')`)}`,
  )
})

const put = (path: string, otherId = 2) => service.rest('PUT', path, { body: { otherId } })
const statuses = async () =>
  (await service.sql('select status from pets order by id')).map(({ status }) => status)
const untouched = ['available', 'available', 'available']

test.each(['with a key', 'without a key'])(
  '30 concurrent mutations may read from another store first, %s',
  async (how) => {
    const answers = await Promise.all(
      Array.from({ length: 30 }, (_, index) => {
        const headers = how === 'with a key' ? { 'idempotency-key': `"twin ${index}"` } : {}
        return service.rest('POST', '/twins', { body: rex, headers })
      }),
    )
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([201]))
    expect(await countPets(service.sql)).toBe(33)
  },
)

test('two changes of one mutation take effect both or not at all', async () => {
  expect((await put('/pets/1/halve')).status).toBe(500) // pet 2 exists already
  expect(await statuses()).toEqual(untouched)
  expect((await put('/pets/1/sell')).status).toBe(200)
  expect(await statuses()).toEqual(['sold', 'sold', 'available'])
})

test.each(['"double"', undefined])(
  'two creations of one writeIdempotent take effect both or not at all, with the key %s',
  async (key) => {
    const call = (petId: number) =>
      service.rest('POST', `/pets/${petId}/double`, { headers: { 'idempotency-key': key } })
    expect([(await call(2)).status, await countPets(service.sql)]).toEqual([500, 3])
    expect([(await call(1)).status, await countPets(service.sql)]).toEqual([200, 5])
  },
)

test('an output that its schema rejects is 500, and has no effect, on each surface', async () => {
  expect((await put('/pets/1/spoil')).status).toBe(500)
  for (const key of [undefined, '"misfit"', '"misfit"']) {
    const init = { body: rex, headers: { 'idempotency-key': key } }
    expect((await service.rest('POST', '/misfits', init)).status).toBe(500)
    expect((await service.rest('POST', '/unfits', init)).status).toBe(500)
  }
  const spoilt = JSON.stringify(transformer.serialize({ petId: 1, otherId: 2 }))
  const creation = JSON.stringify(transformer.serialize(rex))
  const streamed = { 'trpc-accept': 'application/jsonl' }
  for (const [path, body, headers] of [
    ['spoil', spoilt, {}],
    ['spoil?batch=1', `{"0":${spoilt}}`, streamed],
    ['misfit', creation, {}],
    ['misfit?batch=1', `{"0":${creation}}`, { ...streamed, 'idempotency-key': '"spoilt"' }],
  ] as const) {
    const answer = await service.fetch(`/trpc/${path}`, { method: 'POST', body, headers })
    expect(await answer.text()).toContain('INTERNAL_SERVER_ERROR')
  }
  expect(await statuses()).toEqual(untouched)
  expect(await service.sql('select id from idempotency_keys')).toEqual([])
})

test.each(['alone', 'among others'])(
  'a keyed creation whose output its schema rejects is 500, and has no effect, %s',
  async (where) => {
    const others = where === 'alone' ? 0 : 20
    const post = (path: string, index: number) => {
      const headers = { 'idempotency-key': `"${path} ${index}"` }
      return service.rest('POST', path, { body: rex, headers })
    }
    draws = 0
    const paths = Array.from({ length: others + 1 }, (_, at) =>
      at === 7 % (others + 1) ? '/unfits' : '/drawn',
    )
    const answers = await Promise.all(paths.map(post))
    expect(answers.map(({ status }) => status)).toEqual(
      paths.map((path) => (path === '/unfits' ? 500 : 201)),
    )
    expect(await countPets(service.sql)).toBe(3 + others)
    expect(await service.sql('select id from idempotency_keys')).toHaveLength(others)
    // Outputs were made again: others had shared the transaction that the wrong one undid.
    if (others > 0) expect(draws).toBeGreaterThan(others)
    const repeated = await Promise.all(paths.map(post))
    expect(repeated.map(({ status }) => status)).toEqual(answers.map(({ status }) => status))
    expect(await countPets(service.sql)).toBe(3 + others)
  },
)

test('a repetition of a creation returns the same output, also of one that differs each time', async () => {
  const draw = () =>
    service.rest('POST', '/drawn', { body: rex, headers: { 'idempotency-key': '"drawn"' } })
  const { status, text } = await draw()
  expect([status, (await draw()).text]).toEqual([201, text])
})

test('behind the lock of a row, a transaction reads what others committed before', async () => {
  const answers = await Promise.all(Array.from({ length: 20 }, () => put('/pets/1/tally')))
  expect(answers.map(({ status }) => status)).toEqual(Array(20).fill(200))
  const expected = Array.from({ length: 20 }, (_, index) => 4 + index)
  expect(counts.toSorted((one, other) => one - other)).toEqual(expected)
})

if (engine === 'mysql') {
  test('two mutations in a deadlock both succeed, one of them at its second attempt', async () => {
    const answers = await Promise.all([put('/pets/1/cross', 2), put('/pets/2/cross', 1)])
    expect(answers.map(({ status }) => status)).toEqual([200, 200])
    expect(attempts).toBe(3)
  })

  test('of two concurrent mutations in a batch one takes effect, though the other fails', async () => {
    const inputs = [
      { petId: 1, otherId: 1 },
      { petId: 2, otherId: 0 },
    ].map(transformer.serialize)
    const body = JSON.stringify({ ...inputs })
    const answer = await service.fetch('/trpc/meet,meet?batch=1', { method: 'POST', body })
    expect(answer.status).toBe(207)
    expect(await statuses()).toEqual(['sold', 'available', 'available'])
  })

  test('a mutation is repeated after a lost connection, and its first attempt is rolled back', async () => {
    expect((await put('/pets/1/lose')).status).toBe(200)
    expect([attempts, await countPets(service.sql)]).toEqual([2, 4])
  })

  test('after a statement that ended the transaction no other one is sent, even if the error is ignored', async () => {
    expect((await put('/pets/1/swallow')).status).toBe(200)
    expect([attempts, await countPets(service.sql)]).toEqual([2, 5])
  })
}

test.each(['reach', 'make', 'change', 'nest'])(
  'a mutation that uses stores outside its transaction fails without delaying others: %s',
  async (name) => {
    const [failed, ...others] = await Promise.all([
      put(`/pets/1/${name}`),
      ...Array.from({ length: 5 }, () => put('/pets/3/sell', 3)),
    ])
    expect(failed?.status).toBe(500)
    expect(others.map(({ status }) => status)).toEqual(Array(5).fill(200))
    expect(service.logged.join()).toContain('use the stores of the call that the work receives')
    expect(await statuses()).toEqual(['available', 'available', 'sold'])
  },
)

test('of two statements that are begun together, the second is not sent if the first ends the transaction', async () => {
  if (engine === 'sqlite') {
    await service.sql(`create trigger rollback before insert on pets when new.name = 'rollback'
      begin select raise(rollback, 'no'); end`)
  }
  expect((await put('/pets/1/pair')).status).toBe(200)
  expect([attempts, await countPets(service.sql)]).toEqual([2, 3])
})

test('a retry inside a transaction repeats the transaction as a whole', async () => {
  expect((await put('/pets/1/again')).status).toBe(200)
  expect(attempts).toBe(2)
})

test('a call that could share a query with a rejected one succeeds', async () => {
  using deadline = new Deadline(5_000)
  const get = () => outer.pets.get({ deadline }, 1n)
  const [within, without] = await Promise.allSettled([
    inTransaction(outer.db as RootDatabase, get),
    get(),
  ])
  expect([within.status, without.status]).toEqual(['rejected', 'fulfilled'])
})

test('a statement that was not awaited has no effect after the end of the transaction', async () => {
  expect((await put('/pets/1/forget')).status).toBe(200)
  for (const statement of [() => late, forgotten]) {
    await expect(statement()).rejects.toThrow(
      /^(The transaction is over|Transaction is already committed)/,
    )
  }
  expect(await statuses()).toEqual(untouched)
})

test('a transaction that fails ends after its statements, and takes no later one of others with it', async () => {
  using deadline = new Deadline(5_000)
  const failing = inTransaction(outer.db as RootDatabase, async (db) => {
    const selling = db.kysely.updateTable('pets').set({ status: 'sold' }).where('id', '=', 1n)
    // Not awaited, as one of several in Promise.all of which another fails.
    void execute(db, selling, deadline)
    await setImmediate()
    throw new Error('No')
  })
  await expect(failing).rejects.toThrow('No')
  await addPet(outer.pets, { deadline }, newPet)
  expect(await statuses()).toEqual([...untouched, 'available'])
})

test('unique throws CONFLICT for a value that is taken, and any other error as it is', async () => {
  const failing = (error: Error) => unique(Promise.reject(error), 'Taken')
  const conflict = { code: 'CONFLICT', message: 'Taken' }
  await expect(failing(new DuplicateError())).rejects.toMatchObject(conflict)
  const other = new DatabaseUnavailableError(undefined, true)
  await expect(failing(other)).rejects.toBe(other)
})
