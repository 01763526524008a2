/** Two resources at once: the queue, transactions and Idempotency-Keys that they share keep them apart. */
import { expect, test } from 'vitest'
import { petProcedures } from '../../src/petstore/pets/procedures.ts'
import { createStores } from '../../src/petstore/resources.ts'
import { proceduresWith, router, unique } from '../../src/procedure/procedure.ts'
import { create } from '../../src/procedure/write.ts'
import { described, resourcesOf } from '../support/procedures.ts'
import { serviceForFile, trpcClient } from '../support/service.ts'
import { createVisitStores, up } from './router.ts'
import { visitProcedures } from './visits/procedures.ts'
import { NewVisit, Visit } from './visits/schema.ts'

const { procedure } = proceduresWith<ReturnType<typeof createVisitStores>>()

/** A visit by one statement: with a key, it shares a transaction with creations of pets. */
const bookVisit = procedure
  .meta(
    described('POST', '/owners/{ownerId}/bookings', {
      creates: '/owners/{ownerId}/visits/{id}',
      takesKey: true,
      conflict: 'The reference is taken',
      example: {
        id: 7n,
        reference: 'V',
        at: new Date(0),
        urgent: false,
        note: null,
        closedAt: null,
      },
      exampleInput: { reference: 'V', at: new Date(0) },
    }),
  )
  .input(NewVisit)
  .output(Visit)
  .mutation(({ ctx, input }) =>
    unique(create(ctx, ctx.stores.visits.newVisit, input), 'The reference is taken'),
  )
const served = router({ ...petProcedures, ...visitProcedures, bookVisit })
// Its owners are not those of the service.
const resources = resourcesOf(served, (db) => ({ ...createStores(db), ...createVisitStores(db) }))
const service = await serviceForFile({}, { resources, prepare: up })
const client = trpcClient<typeof served>(service.origin, service.key)
await service.sql("insert into owners (id, name, closed) values (1, 'Ada', 0)")

const at = '2026-01-02T03:04:05.678Z'
const COUNT = 60

interface Made {
  status: number
  id: number
  /** Its name or its reference, by which it is known. */
  what: string
}

/** Creates a pet or a visit. Every second one has a key, and so shares a transaction with others where one statement suffices. */
async function post(path: string, body: object, what: string, serial: number): Promise<Made> {
  const headers = serial % 2 ? { 'idempotency-key': `"${path} ${what} ${serial}"` } : {}
  const answer = await service.rest('POST', path, { body, headers })
  return { status: answer.status, id: (answer.body as { id: number }).id, what }
}
const pet = (name: string, serial: number) =>
  post('/pets', { name, categoryId: serial }, name, serial)
const visit = (reference: string, serial: number) =>
  post(`/owners/1/${serial % 2 ? 'bookings' : 'visits'}`, { reference, at }, reference, serial)

/** The rows of a table, by id. */
const rows = async (table: string, column: string) => {
  const found = await service.sql(`select id, ${column} as what from ${table} order by id`)
  return found.map(({ id, what }) => [Number(id), what])
}
const made = (answers: Made[]) =>
  answers
    .filter(({ status }) => status === 201)
    .map(({ id, what }) => [id, what])
    .sort(([one], [other]) => Number(one) - Number(other))

test('each has its own ids, rows and errors, whatever becomes of the other', async () => {
  const serials = Array.from({ length: COUNT }, (_, serial) => serial)
  // Of six visits, two have a reference that others take, too.
  const referenceOf = (serial: number) => (serial % 6 < 2 ? `taken ${serial % 4}` : `V-${serial}`)
  const [pets, visits] = await Promise.all([
    Promise.all(serials.map((serial) => pet(`Pet ${serial}`, serial))),
    Promise.all(serials.map((serial) => visit(referenceOf(serial), serial))),
  ])
  expect(new Set(pets.map(({ status }) => status))).toEqual(new Set([201]))
  expect(await rows('pets', 'name')).toEqual(made(pets))
  expect(await rows('visits', 'reference')).toEqual(made(visits))
  const references = new Set(serials.map(referenceOf))
  expect(new Set(made(visits).map(([, reference]) => reference))).toEqual(references)
  const refused = visits.filter(({ status }) => status !== 201)
  expect(refused.length).toBe(COUNT - references.size)
  expect(new Set(refused.map(({ status }) => status))).toEqual(new Set([409]))

  // Reads of both at once, with ids of both, and without a row: a pet of a visit's id is no visit.
  const [names, found] = await Promise.all([
    Promise.all(
      made(pets).map(async ([id]) => (await client.getPet.query({ petId: Number(id) })).name),
    ),
    Promise.all(
      made(visits).map(async ([id]) => {
        const one = await client.getVisit.query({ ownerId: 1, visitId: Number(id) })
        return one.reference
      }),
    ),
    ...[9_998, 9_999].map((id) =>
      Promise.all([
        expect(client.getPet.query({ petId: id })).rejects.toThrow(`no animal with the id ${id}`),
        expect(client.getVisit.query({ ownerId: 1, visitId: id })).rejects.toThrow(
          `no visit with the id ${id}`,
        ),
      ]),
    ),
  ])
  expect(names).toEqual(made(pets).map(([, name]) => name))
  expect(found).toEqual(made(visits).map(([, reference]) => reference))

  // A table that is lost fails its own calls alone.
  await service.sql('drop table visits')
  const [later, failed] = await Promise.all([
    Promise.all(serials.map((serial) => pet(`Later ${serial}`, serial))),
    Promise.all(serials.map((serial) => visit(`Later ${serial}`, serial))),
  ])
  expect(new Set(failed.map(({ status }) => status))).toEqual(new Set([500]))
  expect(await rows('pets', 'name')).toEqual(made([...pets, ...later]))
  expect(made(later)).toHaveLength(COUNT)
})
