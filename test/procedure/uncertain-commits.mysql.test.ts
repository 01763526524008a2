/**
 * A commit whose connection is lost: its effect is unknown, so it is not repeated without a key. A
 * rollback that fails has no effect.
 */
import { beforeEach, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { Pet } from '../../src/petstore/pets/schema.ts'
import type { Call } from '../../src/procedure/call.ts'
import { int64Input } from '../../src/procedure/fields.ts'
import { router } from '../../src/procedure/procedure.ts'
import { create, write, writeIdempotent } from '../../src/procedure/write.ts'
import { until } from '../support/instance.ts'
import { addPet, countPets, petOf } from '../support/pets.ts'
import { described, procedure, resourcesOf, type Stores } from '../support/procedures.ts'
import { newProxiedDatabase } from '../support/proxy.ts'
import { serviceForFile } from '../support/service.ts'

const petId = int64Input({ description: 'The pet to copy.', examples: [1] })
const example = petOf(42n, { name: 'Copy', categoryId: 1n })

/** Returns what copies the pet of an input. */
const copy =
  (input: { petId: bigint }) =>
  async (call: Call<Stores>): Promise<Pet> => {
    attempts++
    const { id: _, ...pet } = { ...example, categoryId: input.petId }
    const made = await addPet(call.stores.pets, call, pet)
    await beforeCommit()
    return made
  }
let attempts = 0
let beforeCommit = async () => {}

const action = (name: string, takesKey = true) =>
  procedure
    .meta(described('POST', `/pets/{petId}/${name}`, { takesKey, example }))
    .input(z.object({ petId }))
    .output(Pet)

const served = router({
  copy: action('copy', false).mutation(({ ctx, input }) => write(ctx, copy(input))),
  copyOnce: action('once').mutation(({ ctx, input }) => writeIdempotent(ctx, copy(input))),
  copyUnique: action('unique').mutation(({ ctx, input }) => {
    const { id: _, ...pet } = { ...example, categoryId: input.petId }
    return create(ctx, ctx.stores.pets.newPet, pet)
  }),
})

const database = await newProxiedDatabase()
const { proxy } = database
const service = await serviceForFile({}, { database, resources: resourcesOf(served) })
beforeEach(async () => {
  await service.sql('delete from pets')
  attempts = 0
})

test.each([
  ['before', 0],
  ['after', 1],
] as const)(
  'a commit that is lost %s the server executes it, without a key: 503, not repeated',
  async (when, made) => {
    for (const path of ['/pets/1/copy', '/pets/1/once']) {
      const broken = proxy.breakAt(/^commit/, when)
      expect((await service.rest('POST', path)).status).toBe(503)
      await broken
    }
    expect([attempts, await countPets(service.sql)]).toEqual([2, 2 * made])
  },
)

test('a commit that is lost before the service sends it, without a key: repeated', async () => {
  beforeCommit = async () => {
    beforeCommit = async () => {}
    const others = await service.sql(
      `select id from information_schema.processlist
       where db = database() and id <> connection_id()`,
    )
    // A session of an earlier test may end meanwhile.
    for (const { id } of others) await service.sql(`kill ${id}`).catch(() => {})
    await until('the service notices it', () => proxy.clients === 1) // that of this test
  }
  expect((await service.rest('POST', '/pets/1/copy')).status).toBe(200)
  expect([attempts, await countPets(service.sql)]).toEqual([2, 1])
})

test('a rollback that fails leaves nothing of its transaction to later ones', async () => {
  beforeCommit = async () => {
    throw new Error('No')
  }
  proxy.rewrite((statement) => (statement === 'rollback' ? 'roll' : statement))
  expect((await service.rest('POST', '/pets/1/copy')).status).toBe(500)
  proxy.rewrite((statement) => statement)
  beforeCommit = async () => {}
  await Promise.all(Array.from({ length: 10 }, () => service.rest('POST', '/pets/1/copy')))
  expect(await countPets(service.sql)).toBe(10)
})

test.each([
  ['before', 'once'],
  ['after', 'once'],
  ['before', 'unique'],
  ['after', 'unique'],
] as const)(
  'a commit that is lost %s the server executes it, with a key: /%s takes effect once',
  async (when, action) => {
    await service.sql('create unique index only on pets (name)')
    onTestFinished(async () => void (await service.sql('drop index only on pets')))
    const send = (key: string) =>
      service.rest('POST', `/pets/1/${action}`, { headers: { 'idempotency-key': `"${key}"` } })
    const broken = proxy.breakAt(/^commit/, when)
    const first = await send(`${action} ${when}`)
    await broken
    expect(first.status).toBe(200)
    expect((await send(`${action} ${when}`)).text).toBe(first.text)
    expect(await countPets(service.sql)).toBe(1)
    expect((await send(`other ${action} ${when}`)).status, 'the name is taken').toBe(500)
  },
)
