/** What holds for any input, over real HTTP. */
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { stringifyExact } from './support/rest.ts'
import { type Service, startService } from './support/service.ts'

let service: Service
beforeAll(async () => {
  service = await startService()
})
afterAll(() => service.stop())

const int64 = fc.oneof(
  fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
  // Where a double begins to round, and where int64 ends.
  ...[2n ** 53n, -(2n ** 53n), 2n ** 63n - 1n, -(2n ** 63n), 0n].map((edge) =>
    fc
      .bigInt({ min: -3n, max: 3n })
      .map((step) => edge + step)
      .filter((value) => BigInt.asIntN(64, value) === value),
  ),
)

test('any int64 is kept, whichever surface it came by', async () => {
  await fc.assert(
    fc.asyncProperty(int64, async (categoryId) => {
      const made = await service.rest('POST', '/pets', { body: { name: 'Rex', categoryId } })
      expect(made.text).toContain(`"categoryId":${categoryId},`)
      const petId = (made.body as { id: number }).id
      expect(await service.trpc.getPet.query({ petId })).toMatchObject({ categoryId })

      const { id } = await service.trpc.createPet.mutate({ name: 'Rex', categoryId })
      const { text } = await service.rest('GET', `/pets/${id}`)
      expect(text).toContain(`"categoryId":${categoryId},`)
    }),
    { numRuns: 100 },
  )
})

// What is nearly a pet finds more than what is anything at all.
const field = fc.oneof(fc.jsonValue(), fc.string({ unit: 'binary' }), int64, fc.double())
const body = fc.oneof(
  fc.jsonValue(),
  fc.record(
    {
      name: fc.oneof(fc.string({ unit: 'binary', minLength: 1 }), field),
      categoryId: fc.oneof(int64, field),
      status: fc.oneof(fc.constantFrom('available', 'pending', 'sold'), field),
      more: field,
    },
    { requiredKeys: [] },
  ),
)

test('any JSON as a body gives 201 or 400', async () => {
  await fc.assert(
    fc.asyncProperty(body, async (value) => {
      const { status, body: answer } = await service.rest('POST', '/pets', {
        body: stringifyExact(value),
      })
      expect([201, 400]).toContain(status)
      if (status === 201) {
        const { name } = value as { name: string }
        expect(answer).toMatchObject({ name })
      }
    }),
    { numRuns: 300 },
  )
})

test('any bytes as a body give 201 or 400', async () => {
  await fc.assert(
    fc.asyncProperty(fc.uint8Array({ minLength: 1 }), async (bytes) => {
      const { status } = await service.rest('POST', '/pets', { body: bytes })
      expect([201, 400]).toContain(status)
    }),
    { numRuns: 100 },
  )
})

const text = fc.oneof(
  fc.string({ unit: 'binary' }).filter((value) => value.isWellFormed()),
  fc.bigInt().map(String),
  fc.double().map(String),
  fc.constantFrom(
    'limit',
    '1',
    '-0',
    '00',
    '1e2',
    'sold',
    '..',
    '%',
    '%00',
    '+1',
    '１',
    '1'.repeat(5_000),
  ),
)

test('any text as limit, status, cursor or petId gives 200, 400 or 404', async () => {
  await fc.assert(
    fc.asyncProperty(text, async (value) => {
      for (const name of ['limit', 'status', 'cursor']) {
        const query = new URLSearchParams({ [name]: value })
        expect([200, 400]).toContain((await service.rest('GET', `/pets?${query}`)).status)
      }
      if (/^\.{0,2}$/.test(value)) return // no segment of an address, but a step in it
      const { status } = await service.rest('GET', `/pets/${encodeURIComponent(value)}`)
      expect([200, 400, 404]).toContain(status)
    }),
    { numRuns: 100 },
  )
})
