import { expect, test } from 'vitest'
import { createPetstoreClient, isApiError } from '../support/client.ts'
import { serviceForFile } from '../support/service.ts'

const clientWith = (apiKey: string, origin = service.origin) =>
  createPetstoreClient({ url: `${origin}/trpc`, apiKey })
const service = await serviceForFile()
const petstore = clientWith(service.key)

const errorOf = (call: Promise<unknown>) =>
  call.then(
    () => expect.fail('The call did not fail'),
    (error: unknown) => error,
  )

test('a creation with an idempotency key can be repeated', async () => {
  const context = { idempotencyKey: 'from a "form" \\ 1' }
  const create = () => petstore.createPet.mutate({ name: 'Once', categoryId: 1 }, { context })
  const first = await create()
  expect(await create()).toEqual(first)
  expect(await petstore.listPets.query({ cursor: first.id })).toEqual([])
  const another = petstore.createPet.mutate({ name: 'Other', categoryId: 1 }, { context })
  expect(isApiError(await errorOf(another))).toBe(true)
})

test.each([
  ['a number', 7],
  ['an object', {}],
  ['empty', ''],
  ['too long', 'x'.repeat(256)],
  ['beyond ASCII', '猫'],
  ['beyond ASCII, but in Latin-1', 'é'],
  ['unprintable', 'a\nb'],
])(
  'an idempotency key that is %s is rejected before a request is sent',
  async (_, idempotencyKey) => {
    // No server listens there: a request would fail with another error.
    const unreachable = clientWith(service.key, 'http://127.0.0.1:1')
    const context = { idempotencyKey }
    const error = await errorOf(
      unreachable.createPet.mutate({ name: 'Rex', categoryId: 1 }, { context }),
    )
    expect(isApiError(error)).toBe(false)
    expect(error).toMatchObject({
      message: 'idempotencyKey must be a string of 1 to 255 printable ASCII characters',
    })
  },
)

test('an idempotency key can have 1 to 255 printable ASCII characters', async () => {
  const printable = String.fromCharCode(...Array.from({ length: 95 }, (_, index) => 32 + index))
  for (const idempotencyKey of [' ', '"', '\\', printable, '\\'.repeat(255)]) {
    const create = () =>
      petstore.createPet.mutate({ name: 'Rex', categoryId: 1 }, { context: { idempotencyKey } })
    expect(await create()).toEqual(await create())
  }
})

test('a creation that is too large does not fail the others of its tick', async () => {
  const calls = Array.from({ length: 20 }, (_, index) =>
    petstore.createPet.mutate({ name: 'x'.repeat(index === 7 ? 65_500 : 255), categoryId: 1 }),
  )
  const outcomes = await Promise.allSettled(calls)
  const failed = outcomes.flatMap(({ status }, index) => (status === 'rejected' ? [index] : []))
  expect(failed).toEqual([7])
  expect(outcomes[7]).toMatchObject({ reason: { code: 'PAYLOAD_TOO_LARGE', status: 413 } })
})

test('twenty valid creations of maximum size in one tick all succeed', async () => {
  for (const character of ['\u{1f436}', '\u0001', '\\']) {
    const calls = Array.from({ length: 20 }, () =>
      petstore.createPet.mutate({ name: `x${character.repeat(254)}`, categoryId: -(2n ** 63n) }),
    )
    expect(await Promise.all(calls)).toHaveLength(20)
  }
})

test('a query that is too large does not fail the others of its tick', async () => {
  const calls = Array.from({ length: 20 }, (_, index) =>
    petstore.listPets.query({
      cursor: 2n ** 63n - 1n,
      status: (index === 7 ? 'x'.repeat(16_384) : 'available') as 'sold',
    }),
  )
  const outcomes = await Promise.allSettled(calls)
  const failed = outcomes.flatMap(({ status }, index) => (status === 'rejected' ? [index] : []))
  expect(failed).toEqual([7])
  expect(outcomes[7]).toMatchObject({ reason: { code: 'BAD_REQUEST', status: 431 } })
})

test('twenty queries in one tick that are large only when percent-encoded stay within the URL limit', async () => {
  const status = '猫'.repeat(400) as 'sold'
  const calls = Array.from({ length: 20 }, () => errorOf(petstore.listPets.query({ status })))
  for (const error of await Promise.all(calls)) {
    expect(error).toMatchObject({ code: 'BAD_REQUEST', status: 400 })
  }
})

test('the error of an invalid input names the fields', async () => {
  const error = await errorOf(petstore.createPet.mutate({ name: ' ', categoryId: 1.5 }))
  if (!isApiError(error)) throw error
  expect(error.code).toBe('BAD_REQUEST')
  expect(error.status).toBe(400)
  expect(error.fields.name).toBe('must not be blank')
  expect(Object.keys(error.fields)).toEqual(expect.arrayContaining(['name', 'categoryId']))
})

test('an unreachable service throws an error that is no ApiError', async () => {
  const unreachable = clientWith(service.key, 'http://127.0.0.1:1')
  const error = await errorOf(unreachable.listPets.query())
  expect(error).toBeInstanceOf(Error)
  expect(isApiError(error)).toBe(false)
})
