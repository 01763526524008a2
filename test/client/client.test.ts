import { createTRPCClient, httpBatchLink, httpBatchStreamLink } from '@trpc/client'
import { expect, test } from 'vitest'
import {
  type AppRouter,
  createPetstoreClient,
  httpStatusOf,
  isApiError,
  petstoreLinks,
} from '../support/client.ts'
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

test.each([
  ['no other', undefined],
  ['httpBatchLink', httpBatchLink],
  ['httpBatchStreamLink', httpBatchStreamLink],
])('a tRPC client of your own keeps keys and errors, with %s for batches', async (_, batchLink) => {
  const sent: RequestInit[] = []
  const ownWith = (apiKey: string) =>
    createTRPCClient<AppRouter>({
      links: petstoreLinks({
        url: `${service.origin}/trpc`,
        apiKey,
        batchLink,
        fetch(url, init) {
          sent.push(init)
          return fetch(url, init)
        },
      }),
    })
  const { createPet, getPet, listPets } = ownWith(service.key)
  const context = { idempotencyKey: `once with ${batchLink?.name}` }
  const create = () => createPet.mutate({ name: 'Rex', categoryId: 2n ** 60n }, { context })
  const first = await create()
  expect(await create()).toEqual(first)
  expect(sent.splice(0)).toHaveLength(2)

  const calls = [getPet.query({ petId: first.id }), getPet.query({ petId: -1 }), listPets.query()]
  const [pet, missing, page] = await Promise.allSettled(calls)
  expect(pet).toEqual({ status: 'fulfilled', value: first })
  expect(page?.status).toBe('fulfilled')
  const { reason } = missing as PromiseRejectedResult
  expect(isApiError(reason) && [reason.code, reason.status, reason.fields]).toEqual([
    'NOT_FOUND',
    404,
    {},
  ])
  expect(httpStatusOf(reason), 'the answer to a batch of several statuses is 207, or 200').toBe(404)
  expect(sent.map(({ headers }) => new Headers(headers).get('trpc-accept'))).toEqual([
    batchLink === httpBatchStreamLink ? 'application/jsonl' : null,
  ])

  const wrong = ownWith('petstore_wrong')
  for (const error of await Promise.all([1, 2].map(() => errorOf(wrong.listPets.query())))) {
    expect([isApiError(error), httpStatusOf(error)]).toEqual([true, 401])
  }
})

const create = (isLarge: boolean) =>
  petstore.createPet.mutate({ name: 'x'.repeat(isLarge ? 65_500 : 255), categoryId: 1 })
const list = (isLarge: boolean) =>
  petstore.listPets.query({ status: (isLarge ? 'x'.repeat(16_384) : 'available') as 'sold' })

test.each([
  ['creation', create, { code: 'PAYLOAD_TOO_LARGE', status: 413 }],
  ['query', list, { code: 'BAD_REQUEST', status: 431 }],
] as const)(
  'a %s that is too large does not fail the others of its tick',
  async (_, call, reason) => {
    const calls = Array.from({ length: 20 }, (_, index) => call(index === 7))
    const outcomes = await Promise.allSettled(calls)
    const failed = outcomes.flatMap(({ status }, index) => (status === 'rejected' ? [index] : []))
    expect(failed).toEqual([7])
    expect(outcomes[7]).toMatchObject({ reason })
  },
)

test('twenty valid creations of maximum size in one tick all succeed', async () => {
  for (const character of ['\u{1f436}', '\u0001', '\\']) {
    const calls = Array.from({ length: 20 }, () =>
      petstore.createPet.mutate({ name: `x${character.repeat(254)}`, categoryId: -(2n ** 63n) }),
    )
    expect(await Promise.all(calls)).toHaveLength(20)
  }
})

test('twenty queries in one tick that are large only when percent-encoded stay within the URL limit', async () => {
  const status = '猫'.repeat(400) as 'sold'
  const calls = Array.from({ length: 20 }, () => errorOf(petstore.listPets.query({ status })))
  for (const error of await Promise.all(calls)) {
    expect(error).toMatchObject({ code: 'BAD_REQUEST', status: 400 })
  }
})
