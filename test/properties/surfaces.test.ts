/** All faces accept, reject and return the same, for any input. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Pet } from '../../src/petstore/pets/schema.ts'
import type { Outcome } from '../support/outcome.ts'
import { storeNumberedPets } from '../support/pets.ts'
import { serviceForFile } from '../support/service.ts'
import { hold, TIMEOUT, tellSeed } from './cases.ts'
import { facesOf, outputOf, sendWire } from './faces.ts'
import { type Given, given, readingOf } from './inputs.ts'
import { spelledJson } from './spelling.ts'
import { oddJson } from './values.ts'

tellSeed()
const service = await serviceForFile()
const faces = facesOf(service)
await storeNumberedPets(service.sql, 120)

/** Replaces the id of a creation, which is unique, so that outcomes can be compared. */
const withoutId = (outcome: Outcome) => {
  const { id: _, ...pet } = outputOf<Pet>(outcome)
  return pet
}

test('REST, the wire format of tRPC and the client have the same outcome', {
  timeout: TIMEOUT,
}, async () => {
  let accepted = 0
  let refused = 0
  await hold(
    fc.asyncProperty(given, async (input) => {
      const rest = await faces.rest(input)
      const wire = await faces.wire(input)
      const client = await faces.client(input)
      if ('output' in rest) accepted++
      else refused++
      if (input.operation !== 'createPet' || !('output' in rest)) {
        expect(wire).toEqual(rest)
        expect(client).toEqual(rest)
        return
      }
      const { name, categoryId, status = 'available' } = input.trpc as Partial<Pet>
      expect(withoutId(rest)).toEqual({ name, categoryId: BigInt(categoryId ?? 0), status })
      expect(withoutId(wire)).toEqual(withoutId(rest))
      expect(withoutId(client)).toEqual(withoutId(rest))
      // Each pet is read by another face than the one that created it.
      expect(await faces.wire(readingOf(outputOf<Pet>(rest).id))).toEqual(rest)
      expect(await faces.client(readingOf(outputOf<Pet>(wire).id))).toEqual(wire)
      expect(await faces.rest(readingOf(outputOf<Pet>(client).id))).toEqual(client)
    }),
  )
  // The cases must include both accepted and rejected inputs.
  expect(Math.min(accepted, refused)).toBeGreaterThan((accepted + refused) / 8)
})

// The messages differ: REST names the body, tRPC the input.
test('an input that is not an object is rejected on all faces', { timeout: TIMEOUT }, async () => {
  const none = oddJson.filter((value) => !isObject(value))
  await hold(
    fc.asyncProperty(none, async (value) => {
      const body = spelledJson(value, () => 1)
      const input: Given = {
        operation: 'createPet',
        rest: { method: 'POST', path: '/pets', body },
        trpc: value,
      }
      for (const face of [faces.rest, faces.wire, faces.client]) {
        expect(await face(input)).toMatchObject({ code: 'BAD_REQUEST', status: 400 })
      }
    }),
    0.1,
  )
})

const isObject = (value: unknown) =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** JSON that is malformed by a removed or an added part. */
const brokenJson = fc
  .tuple(
    fc.oneof(oddJson, fc.constant({ name: 'Rex', categoryId: 3 })),
    fc.nat(100),
    fc.nat(3),
    fc.constantFrom('', '}', ',', '"', "'", 'NaN', '\u0000', '//', '0', '+', '\ufeff\ufeff'),
  )
  .map(([value, place, removed, added]) => {
    const text = spelledJson(value, () => 1)
    const index = place % text.length
    return text.slice(0, index) + added + text.slice(index + removed)
  })
  .filter((text) => text !== '' && !isJson(text.replace(/^\ufeff/, '')))

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

test('malformed JSON is rejected on all faces with the same message', {
  timeout: TIMEOUT,
}, async () => {
  await hold(
    fc.asyncProperty(brokenJson, async (text) => {
      const rest = await faces.rest({
        operation: 'createPet',
        rest: { method: 'POST', path: '/pets', body: text },
        trpc: undefined,
      })
      expect(rest).toMatchObject({ code: 'PARSE_ERROR', status: 400 })
      expect(await sendWire(service, 'createPet', text)).toEqual([rest])
    }),
    0.3,
  )
})

test('a body of any bytes is accepted or rejected with 400', { timeout: TIMEOUT }, async () => {
  await hold(
    fc.asyncProperty(fc.uint8Array({ minLength: 1 }), async (body) => {
      expect([201, 400]).toContain((await service.rest('POST', '/pets', { body })).status)
    }),
    0.3,
  )
})
