/** Mutations: one transaction with its own stores, repeated after a failure without effect. */
import { sql } from 'kysely'
import { beforeEach, expect, test } from 'vitest'
import { z } from 'zod'
import { inserts } from '../../db/coalesce/inserts.ts'
import { Deadline } from '../../db/deadline.ts'
import { DatabaseUnavailableError } from '../../db/errors.ts'
import { retry } from '../../db/retry.ts'
import { execute, type Statement, statement, type Value } from '../../db/statement.ts'
import type { Database } from '../../db/tables.ts'
import { runInTransaction } from '../../db/transaction.ts'
import { getPet, listPets } from '../../src/petstore/pets/procedures.ts'
import { NewPet, Pet } from '../../src/petstore/pets/schema.ts'
import { createStores } from '../../src/petstore/stores.ts'
import type { Stores } from '../../src/procedure/context.ts'
import { int64Input } from '../../src/procedure/fields.ts'
import { procedure, router } from '../../src/procedure/procedure.ts'
import type { Resolver } from '../../src/procedure/resolver.ts'
import { idempotentWrite, write } from '../../src/procedure/write.ts'
import { engine } from '../support/database.ts'
import { described, resourcesOf } from '../support/procedures.ts'
import { transformer } from '../support/router.ts'
import { serviceForFile } from '../support/service.ts'

const sell = statement((db, value: Value<bigint>) =>
  db
    .updateTable('pets')
    .set({ status: 'sold' })
    .where(
      'id',
      '=',
      value((id) => id),
    ),
)

const insertPet = inserts('pets', ({ name, categoryId, status }: Pet) => ({
  name,
  category_id: categoryId,
  status,
}))

/** A second store, with the statements of these tests. */
const deedStore = (db: Database) => ({
  async sell(id: bigint, deadline: Deadline): Promise<void> {
    await sell(db, id, deadline)
  },
  async copy(id: bigint, deadline: Deadline): Promise<void> {
    await execute(
      db,
      db
        .insertInto('pets')
        .columns(['id', 'name', 'category_id', 'status'])
        .expression((eb) =>
          eb
            .selectFrom('pets')
            .select(['id', 'name', 'category_id', 'status'])
            .where('id', '=', id),
        ),
      deadline,
    )
  },
  /** Locks a pet, adds another one, and returns the number of pets. */
  async addBehind(id: bigint, deadline: Deadline): Promise<number> {
    await sell(db, id, deadline)
    await insertPet(db, { ...example, name: 'Behind' }, deadline)
    return (await execute(db, db.selectFrom('pets').select('id'), deadline)).rows.length
  },
  /** Fails like a statement whose transaction was rolled back by a deadlock. */
  async deadlock(deadline: Deadline): Promise<void> {
    await sql`rollback`.execute(db)
    const signal = sql`signal sqlstate '40001' set mysql_errno = 1213, message_text = 'Deadlock'`
    await db.executeQuery({ ...signal.compile(db), deadline } as Statement)
  },
  /** Kills the connection of the transaction, as a server that stops does. */
  async loseConnection(deadline: Deadline): Promise<void> {
    const ask = sql<{ id: bigint }>`select connection_id() as id`
    const { rows } = await db.executeQuery<{ id: bigint }>({
      ...ask.compile(db),
      deadline,
    } as Statement)
    await db.executeQuery({
      ...sql`kill ${sql.lit(Number(rows[0]?.id))}`.compile(db),
      deadline,
    } as Statement)
  },
})
interface AllStores extends Stores {
  deeds: ReturnType<typeof deedStore>
}
const createAllStores = (db: Database): AllStores => {
  const stores = { ...createStores(db), deeds: deedStore(db) }
  if (!db.isTransaction) outer = stores
  return stores
}
let outer: AllStores
const deedsOf = ({ stores }: { stores: Stores }) => (stores as AllStores).deeds

const rex = { name: 'Rex', categoryId: 1 }
const example: Pet = { id: 42n, name: 'Rex', categoryId: 3n, status: 'available' }
const Two = z
  .object({
    petId: int64Input({ description: 'One.' }),
    otherId: int64Input({ description: 'Another.' }),
  })
  .meta({ id: 'Two' })
const exampleInput = { otherId: 2 }
/** A mutation of two pets that runs `deed`. */
const change = (name: string, deed: Parameters<typeof write<z.output<typeof Two>, void>>[0]) =>
  procedure
    .meta(described('PUT', `/pets/{petId}/${name}`, { example, exampleInput }))
    .input(Two)
    .output(Pet)
    .mutation(
      write(async (options) => {
        attempts++
        await deed(options)
        return example
      }),
    )
let attempts = 0

/** A creation whose output its schema rejects. */
const misfit: Resolver<NewPet, Pet> = async ({ ctx, input }) => {
  const made = await ctx.stores.pets.create(input, ctx.deadline)
  return { ...made, status: 'free' as 'sold' }
}
const misfitMeta = (path: `/${string}`) =>
  described('POST', path, { creates: '/pets/{id}', example, exampleInput: rex })

const served = router({
  getPet,
  listPets, // the successor of getPet
  twin: procedure
    .meta(described('POST', '/twins', { creates: '/pets/{id}', example, exampleInput: rex }))
    .input(NewPet)
    .output(Pet)
    .mutation(
      idempotentWrite(async ({ ctx, input }) => {
        const original = await ctx.stores.pets.get(input.categoryId, ctx.deadline)
        if (!original) throw new Error('There is no original')
        return await ctx.stores.pets.create(input, ctx.deadline)
      }),
    ),
  misfit: procedure
    .meta(misfitMeta('/misfits'))
    .input(NewPet)
    .output(Pet)
    .mutation(idempotentWrite(misfit)),
  spoil: procedure
    .meta(described('PUT', '/pets/{petId}/spoil', { example, exampleInput }))
    .input(Two)
    .output(Pet)
    .mutation(
      write(async ({ ctx, input: { petId } }) => {
        await deedsOf(ctx).sell(petId, ctx.deadline)
        return { ...example, status: 'free' as 'sold' }
      }),
    ),
  double: procedure
    .meta(described('POST', '/pets/{petId}/double', { example }))
    .input(z.object({ petId: int64Input({ description: 'Odd, or the second fails.' }) }))
    .output(Pet)
    .mutation(
      idempotentWrite(async ({ ctx, input: { petId } }) => {
        const { id: _, ...pet } = example
        const made = await ctx.stores.pets.create(pet, ctx.deadline)
        if (petId % 2n === 0n) throw new Error('The second fails')
        await ctx.stores.pets.create(pet, ctx.deadline)
        return made
      }),
    ),
  sell: change('sell', async ({ ctx, input: { petId, otherId } }) => {
    await deedsOf(ctx).sell(petId, ctx.deadline)
    await deedsOf(ctx).sell(otherId, ctx.deadline)
  }),
  halve: change('halve', async ({ ctx, input: { petId, otherId } }) => {
    await deedsOf(ctx).sell(petId, ctx.deadline)
    await deedsOf(ctx).copy(otherId, ctx.deadline)
  }),
  meet: change('meet', async ({ ctx, input: { petId, otherId } }) => {
    if (attempts === 2) met.resolve()
    await met.promise
    await deedsOf(ctx).sell(petId, ctx.deadline)
    if (otherId === 0n) throw new Error('There is no other')
  }),
  lose: change('lose', async ({ ctx, input: { petId } }) => {
    await ctx.stores.pets.create({ ...example, name: `Copy of ${petId}` }, ctx.deadline)
    if (attempts === 1) await deedsOf(ctx).loseConnection(ctx.deadline)
  }),
  swallow: change('swallow', async ({ ctx }) => {
    await ctx.stores.pets.create({ ...example, name: 'First' }, ctx.deadline)
    if (attempts === 1)
      await deedsOf(ctx)
        .deadlock(ctx.deadline)
        .catch(() => {})
    await ctx.stores.pets.create({ ...example, name: 'Second' }, ctx.deadline)
  }),
  again: change('again', async ({ ctx }) => {
    const read = async () => {
      if (++reads === 1) throw new DatabaseUnavailableError(undefined, true)
    }
    await retry(read, { repeatable: true, deadline: ctx.deadline })
  }),
  tally: change('tally', async ({ ctx, input: { petId } }) => {
    await ctx.stores.pets.get(petId, ctx.deadline) // as a resolver looks for the parent
    tallies.push(await deedsOf(ctx).addBehind(petId, ctx.deadline))
  }),
  reach: change('reach', async ({ ctx, input: { petId } }) => {
    await outer.pets.get(petId, ctx.deadline)
  }),
  make: change('make', async ({ ctx }) => {
    await outer.pets.create({ ...example, name: 'Outside' }, ctx.deadline)
  }),
  change: change('change', async ({ ctx, input: { petId } }) => {
    await outer.deeds.sell(petId, ctx.deadline)
  }),
  nest: change('nest', async ({ ctx }) => {
    await ctx.transact(async () => {}, ctx.deadline)
  }),
  forget: change('forget', async ({ ctx, input: { petId } }) => {
    setTimeout(() => {
      forgotten = deedsOf(ctx).sell(petId, ctx.deadline)
      forgotten.catch(() => {})
    }, 50)
  }),
})
/** Resolves when two mutations are in their transactions. */
const met = Promise.withResolvers<void>()
let reads = 0
const tallies: number[] = []
let forgotten: Promise<void> | undefined

const service = await serviceForFile({}, { resources: resourcesOf(served, createAllStores) })
beforeEach(async () => {
  attempts = 0
  service.logged.length = 0
  await service.sql('delete from pets')
  await service.sql('delete from idempotency_keys')
  for (const id of [1, 2, 3]) {
    await service.sql(
      `insert into pets (id, name, category_id, status) values (${id}, 'Rex', 1, 'available')`,
    )
  }
})

const put = (path: string, otherId = 2) => service.rest('PUT', path, { body: { otherId } })
const statuses = async () =>
  (await service.sql('select status from pets order by id')).map(({ status }) => status)
const count = async () => Number((await service.sql('select count(*) as n from pets'))[0]?.n)

test.each([['with a key'], ['without a key']])(
  '30 concurrent mutations may read from another store first, %s',
  async (how) => {
    const answers = await Promise.all(
      Array.from({ length: 30 }, (_, index) => {
        const headers = how === 'with a key' ? { 'idempotency-key': `"twin ${index}"` } : {}
        return service.rest('POST', '/twins', { body: rex, headers })
      }),
    )
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([201]))
    expect(await count()).toBe(33)
  },
)

test('two changes of one mutation take effect both or not at all', async () => {
  expect((await put('/pets/1/halve')).status).toBe(500) // pet 2 exists already
  expect(await statuses()).toEqual(['available', 'available', 'available'])
  expect((await put('/pets/1/sell')).status).toBe(200)
  expect(await statuses()).toEqual(['sold', 'sold', 'available'])
})

test.each([
  ['with a key', '"double"'],
  ['without a key', undefined],
])('two creations of one idempotentWrite take effect both or not at all, %s', async (_, key) => {
  const call = (petId: number) =>
    service.rest('POST', `/pets/${petId}/double`, { headers: { 'idempotency-key': key } })
  expect((await call(2)).status).toBe(500)
  expect(await count()).toBe(3)
  expect((await call(1)).status).toBe(200)
  expect(await count()).toBe(5)
})

test('an output that its schema rejects is 500, and has no effect', async () => {
  for (const key of [undefined, '"misfit"', '"misfit"']) {
    const init = { body: rex, headers: { 'idempotency-key': key } }
    expect((await service.rest('POST', '/misfits', init)).status).toBe(500)
  }
  expect(await count()).toBe(3)
  expect(await service.sql('select id from idempotency_keys')).toEqual([])
})

test('a change whose output its schema rejects is 500, and has no effect, on each surface', async () => {
  expect((await put('/pets/1/spoil')).status).toBe(500)
  const input = JSON.stringify(transformer.serialize({ petId: 1, otherId: 2 }))
  const creation = JSON.stringify(transformer.serialize(rex))
  const streamed = { 'trpc-accept': 'application/jsonl' }
  const post = async (path: string, body: string, headers = {}) =>
    await (await service.fetch(`/trpc/${path}`, { method: 'POST', body, headers })).text()
  for (const text of [
    await post('spoil', input),
    await post('spoil?batch=1', `{"0":${input}}`, streamed),
    await post('misfit', creation),
    await post('misfit?batch=1', `{"0":${creation}}`, streamed),
    await post('misfit?batch=1', `{"0":${creation}}`, {
      ...streamed,
      'idempotency-key': '"spoilt"',
    }),
  ]) {
    expect(text).toContain('INTERNAL_SERVER_ERROR')
  }
  expect(await statuses()).toEqual(['available', 'available', 'available'])
  expect(await service.sql('select id from idempotency_keys')).toEqual([])
})

test.skipIf(engine === 'sqlite')(
  'of two concurrent mutations in a batch one takes effect, though the other fails',
  async () => {
    const inputs = [
      { petId: 1, otherId: 1 },
      { petId: 2, otherId: 0 },
    ].map(transformer.serialize)
    const body = JSON.stringify({ ...inputs })
    const answer = await service.fetch('/trpc/meet,meet?batch=1', { method: 'POST', body })
    expect(answer.status).toBe(207)
    expect(await statuses()).toEqual(['sold', 'available', 'available'])
  },
)

test('behind the lock of a row, a transaction reads what others committed before', async () => {
  const answers = await Promise.all(Array.from({ length: 20 }, () => put('/pets/1/tally')))
  expect(answers.map(({ status }) => status)).toEqual(Array(20).fill(200))
  const expected = Array.from({ length: 20 }, (_, index) => 4 + index)
  expect(tallies.toSorted((one, other) => one - other)).toEqual(expected)
})

test('mutations in a deadlock all succeed', async () => {
  const answers = await Promise.all(
    Array.from({ length: 60 }, (_, index) =>
      index % 2 === 0 ? put('/pets/1/sell', 2) : put('/pets/2/sell', 1),
    ),
  )
  expect(answers.map(({ status }) => status)).toEqual(Array(60).fill(200))
})

test.skipIf(engine === 'sqlite')(
  'a mutation is repeated after a lost connection, and its first attempt is rolled back',
  async () => {
    expect((await put('/pets/1/lose')).status).toBe(200)
    expect([attempts, await count()]).toEqual([2, 4])
  },
)

test.skipIf(engine === 'sqlite')(
  'after a statement that ended the transaction no other one is sent, even if the error is ignored',
  async () => {
    expect((await put('/pets/1/swallow')).status).toBe(200)
    expect([attempts, await count()]).toEqual([2, 5])
  },
)

test.each([['reach'], ['make'], ['change'], ['nest']])(
  'a mutation that uses stores outside its transaction fails without delaying others: %s',
  async (name) => {
    const begun = performance.now()
    const [failed, ...others] = await Promise.all([
      put(`/pets/1/${name}`),
      ...Array.from({ length: 5 }, () => put('/pets/3/sell', 3)),
    ])
    expect(failed?.status).toBe(500)
    expect(others.map(({ status }) => status)).toEqual(Array(5).fill(200))
    expect(performance.now() - begun).toBeLessThan(2_000)
    expect(service.logged.join()).toContain('use the stores of the ctx that the resolver received')
    expect(await statuses()).toEqual(['available', 'available', 'sold'])
  },
)

test('a retry inside a transaction repeats the transaction as a whole', async () => {
  expect((await put('/pets/1/again')).status).toBe(200)
  expect(attempts).toBe(2)
})

test('a call that could share a query with a rejected one succeeds', async () => {
  const deadline = new Deadline(5_000)
  const get = () => outer.pets.get(1n, deadline)
  const [within, without] = await Promise.allSettled([runInTransaction(get), get()])
  deadline.clear()
  expect([within.status, without.status]).toEqual(['rejected', 'fulfilled'])
})

test('a statement that was not awaited has no effect after the end of the transaction', async () => {
  expect((await put('/pets/1/forget')).status).toBe(200)
  await expect.poll(() => forgotten !== undefined).toBe(true)
  await expect(forgotten).rejects.toThrow(
    /^(The transaction is over|Transaction is already committed)/,
  )
  expect(await statuses()).toEqual(['available', 'available', 'available'])
})
