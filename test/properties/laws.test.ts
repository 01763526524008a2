/** Properties of creations, lists and repetitions, for any input on any face. */
import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Pet } from '../../src/petstore/pets/schema.ts'
import { type Outcome, ofRest, ofTrpc } from '../support/outcome.ts'
import { countPets, storePets } from '../support/pets.ts'
import { stringifyExact } from '../support/rest.ts'
import { transformer } from '../support/router.ts'
import { serviceForFile } from '../support/service.ts'
import { hold, TIMEOUT, tellSeed } from './cases.ts'
import { clientOf, facesOf, outputOf, sendWire } from './faces.ts'
import { creation, type Given, listing, reading, readingOf } from './inputs.ts'
import { int64, name } from './values.ts'

tellSeed()
const service = await serviceForFile()
const faces = facesOf(service)
const petstore = clientOf(service)
const statuses = ['available', 'pending', 'sold'] as const
const pets = Array.from({ length: 150 }, (_, index) => ({
  name: `Pet ${index + 1}`,
  categoryId: BigInt(index),
  status: statuses[(index * index) % 3] ?? 'available',
}))
await storePets(service.sql, pets)

const newPet = fc.record({
  name: name.filter(
    (text) =>
      !/^[\p{White_Space}\p{Default_Ignorable_Code_Point}\u2800]*$/u.test(text) &&
      !text.includes('\0') &&
      text.isWellFormed() &&
      [...text].length <= 255,
  ),
  categoryId: int64,
  status: fc.constantFrom(...statuses),
})
const face = fc.constantFrom('rest', 'wire', 'client')

const creationOf = (pet: object): Given => ({
  operation: 'createPet',
  rest: { method: 'POST', path: '/pets', body: stringifyExact(pet) },
  trpc: pet,
})

/** The pets of all pages, found by following the Link headers. */
async function walk(query: Record<string, string | number>): Promise<Pet[]> {
  const parameters = Object.entries(query).map(([key, value]) => `${key}=${value}`)
  const pets: Pet[] = []
  let path: string | undefined = `/pets?${parameters.join('&')}`
  while (path !== undefined) {
    const answer = await service.rest('GET', path)
    pets.push(...outputOf<Pet[]>(await ofRest(Promise.resolve(answer))))
    const next: string | undefined = /<([^>]*)>; rel="next"/.exec(
      answer.headers.get('link') ?? '',
    )?.[1]
    expect(next, 'a page links to itself').not.toBe(service.baseUrl + path)
    path = next?.slice(service.baseUrl.length)
  }
  return pets
}

test('a created pet is returned by getPet and listed exactly once', {
  timeout: TIMEOUT,
}, async () => {
  const some = fc.array(fc.tuple(newPet, face, face), { minLength: 1, maxLength: 4 })
  await hold(
    fc.asyncProperty(some, fc.integer({ min: 1, max: 100 }), async (pets, limit) => {
      const made: Pet[] = []
      for (const [pet, maker, reader] of pets) {
        const created = outputOf<Pet>(await faces[maker](creationOf(pet)))
        expect(created).toMatchObject(pet)
        expect(await faces[reader](readingOf(created.id))).toEqual({ output: created })
        made.push(created)
      }
      expect(await walk({ limit, cursor: String((made[0]?.id ?? 0n) - 1n) })).toEqual(made)
    }),
    0.1,
  )
})

const calls = <One>(one: fc.Arbitrary<One>) => fc.array(one, { minLength: 2, maxLength: 8 })

/** Sends several calls as one batch. */
function sendBatch(inputs: Given[]): Promise<Outcome[]> {
  const texts = inputs.map(({ trpc }, index) => [index, transformer.serialize(trpc)])
  const names = inputs.map(({ operation }) => operation).join(',')
  return sendWire(service, names, JSON.stringify(Object.fromEntries(texts)))
}

/** The outcome of a call without the id, which is unique. */
const comparable = (outcome: Outcome): unknown =>
  'output' in outcome ? { ...(outcome.output as object), id: undefined } : outcome

test('a batch has the same outcomes as its calls alone', { timeout: TIMEOUT }, async () => {
  await hold(
    fc.asyncProperty(calls(fc.oneof(listing, reading)), async (inputs) => {
      const alone: Outcome[] = []
      for (const input of inputs) alone.push(await faces.wire(input))
      expect(await sendBatch(inputs)).toEqual(alone)
      expect(await Promise.all(inputs.map(faces.client))).toEqual(alone)
    }),
    0.1,
  )
  await hold(
    fc.asyncProperty(calls(creation), async (inputs) => {
      const alone: unknown[] = []
      for (const input of inputs) alone.push(comparable(await faces.wire(input)))
      expect((await sendBatch(inputs)).map(comparable)).toEqual(alone)
      const together = await Promise.all(inputs.map(faces.client))
      expect(together.map(comparable)).toEqual(alone)
    }),
    0.1,
  )
})

test('concurrent creations with one Idempotency-Key create one pet', {
  timeout: TIMEOUT,
}, async () => {
  const printable = fc.nat(94).map((index) => String.fromCharCode(32 + index))
  const callers = fc.array(face, { minLength: 2, maxLength: 8 })
  await hold(
    // The UUID makes each key new.
    fc.asyncProperty(
      fc.string({ unit: printable, maxLength: 219 }),
      newPet,
      callers,
      async (text, pet, many) => {
        const idempotencyKey = randomUUID() + text
        const headers = { 'idempotency-key': JSON.stringify(idempotencyKey) }
        const encoded = JSON.stringify(transformer.serialize(pet))
        const create = {
          rest: () => ofRest(service.rest('POST', '/pets', { headers, body: pet })),
          wire: async () => (await sendWire(service, 'createPet', encoded, headers))[0],
          client: () => ofTrpc(petstore.createPet.mutate(pet, { context: { idempotencyKey } })),
        }
        const count = await countPets(service.sql)
        const outcomes = await Promise.all(many.map((one) => create[one]()))
        const made = outcomes.filter((outcome) => 'output' in outcome)
        const [first] = made
        expect(made).toEqual(made.map(() => first))
        expect(first).toMatchObject({ output: pet })
        for (const outcome of outcomes) {
          if (!('output' in outcome))
            expect(outcome).toMatchObject({ code: 'CONFLICT', status: 409 })
        }
        expect(await countPets(service.sql)).toBe(count + 1)
        for (const again of Object.values(create)) expect(await again()).toEqual(first)
      },
    ),
    0.1,
  )
})
