/** Calls of every kind with their outcomes, for the service and for its stand-in. */
import { createPetstoreClient, isApiError, type NewPet } from '@petstore-catalogue/petstore/client'
import { httpBatchStreamLink } from '@trpc/client'

export interface Keys {
  valid: string
  readOnly: string
  invalid: string
}

/** Makes all calls sequentially on an empty catalogue. */
export async function outcomes(
  url: string,
  keys: Keys,
): Promise<[name: string, outcome: string][]> {
  const petstore = createPetstoreClient({ url, apiKey: keys.valid })
  const reader = createPetstoreClient({ url, apiKey: keys.readOnly })
  const unauthorized = createPetstoreClient({ url, apiKey: keys.invalid })
  const seen: [string, string][] = []
  const see = async (name: string, call: () => Promise<unknown>) => {
    seen.push([name, await outcome(call)])
  }
  // Values from forms and other programs may have wrong types.
  const create = (pet: unknown, context = {}) =>
    petstore.createPet.mutate(pet as NewPet, { context })
  const list = (query: unknown) => petstore.listPets.query(query as object)
  const get = (petId: unknown) => petstore.getPet.query({ petId: petId as number })
  const rex = { name: 'Rex', categoryId: 3 }

  await see('an empty list', () => list(undefined))
  await see('the first pet', () => create(rex))
  await see('a status', () => create({ ...rex, status: 'sold', nickname: 'R.' }))
  const statuses = ['available', 'pending', 'sold']
  await see('25 concurrent creations', () =>
    Promise.all(
      Array.from({ length: 25 }, (_, index) =>
        create({ name: `Animal ${index}`, categoryId: index, status: statuses[index % 3] }),
      ),
    ).then((pets) => pets.length),
  )
  for (const query of [
    undefined,
    {},
    { limit: 5 },
    { limit: 100 },
    { status: 'pending' },
    { status: 'sold', limit: 2 },
    { cursor: 3, limit: 4 },
    { cursor: 3n, status: 'available', limit: 3 },
    { cursor: 999n },
    { cursor: -1 },
    { limit: undefined, status: undefined },
    { limit: 0 },
    { limit: 101 },
    { limit: 1.5 },
    { limit: '5', status: 'lost', cursor: 'x' },
    { limit: null },
    { cursor: 2n ** 63n },
    { sort: 'name' },
    null,
    5,
    [],
  ]) {
    await see(`list ${text(query)}`, () => list(query).then(withoutNames))
  }
  for (const petId of [
    1,
    2n,
    0,
    -1,
    999,
    2n ** 63n - 1n,
    2n ** 63n,
    2 ** 60,
    1.5,
    '1',
    null,
    undefined,
  ]) {
    await see(`get ${text(petId)}`, () => get(petId))
  }
  for (const pet of [
    { ...rex, categoryId: 2n ** 63n - 1n },
    { ...rex, categoryId: -(2n ** 63n) },
    { ...rex, categoryId: 9_007_199_254_740_993n },
    { ...rex, categoryId: 2n ** 63n },
    { ...rex, categoryId: 2 ** 53 },
    { ...rex, categoryId: 7.5 },
    { ...rex, categoryId: '7' },
    { ...rex, name: '🐕'.repeat(255) },
    { ...rex, name: 'x'.repeat(256) },
    { ...rex, name: '' },
    { ...rex, name: ' \t' },
    { ...rex, name: '\0' },
    { ...rex, name: '\ud800' },
    { ...rex, name: 5, status: 'gone' },
    { ...rex, status: null },
    {},
    undefined,
    null,
    'Rex',
    [rex],
  ]) {
    await see(`create ${text(pet)}`, () => create(pet))
  }
  const batch = [() => get(1), () => get(999), () => get('x'), () => list({ limit: 1 })]
  await see('a batch of queries', () => Promise.all(batch.map(outcome)))
  const pets = [rex, { name: '' }, { ...rex, name: 'Bella' }]
  await see('a batch of creations', () =>
    Promise.all(pets.map((pet) => outcome(() => create(pet)))),
  )
  await see('a large batch', () =>
    Promise.all(Array.from({ length: 45 }, (_, index) => outcome(() => get(index)))),
  )

  const stream = createPetstoreClient({
    url,
    apiKey: keys.valid,
    batchLink: httpBatchStreamLink,
  })
  await see('streamed queries', () =>
    Promise.all([1, 999].map((petId) => outcome(() => stream.getPet.query({ petId })))),
  )
  await see('streamed creations', () =>
    Promise.all(
      [rex, { name: '' }].map((pet) => outcome(() => stream.createPet.mutate(pet as NewPet))),
    ),
  )

  const context = { idempotencyKey: 'a key with "quotes" and \\' }
  await see('with a key', () => create(rex, context))
  await see('with the same key', () => create(rex, context))
  await see('with the same key for another pet', () => create({ ...rex, name: 'Max' }, context))
  await see('with the key of a rejected creation', async () => {
    const again = { idempotencyKey: 'refused' }
    return [await outcome(() => create({}, again)), await outcome(() => create(rex, again))]
  })

  await see('a read-only key reads', () => reader.getPet.query({ petId: 1 }))
  await see('a read-only key creates', () => reader.createPet.mutate(rex))
  await see('a read-only key with an invalid pet', () => reader.createPet.mutate({} as NewPet))
  await see('an invalid key', () => unauthorized.listPets.query())
  await see('an invalid key in a batch', () =>
    Promise.all([1, 2].map((petId) => outcome(() => unauthorized.getPet.query({ petId })))),
  )
  await see('an invalid key with an invalid pet', () => unauthorized.createPet.mutate({} as NewPet))
  await see('no key', () => createPetstoreClient({ url, apiKey: '' }).listPets.query())
  await see('all pets', () => list({ limit: 100 }).then(withoutNames))
  return seen
}

const withoutNames = (pets: { id: bigint; status: string }[]) =>
  pets.map(({ id, status }) => [id, status])

async function outcome(call: () => Promise<unknown>): Promise<string> {
  try {
    return text(await call())
  } catch (error) {
    if (!isApiError(error)) throw error
    const { code, status, message, fields, shape } = error
    return text({ code, status, message, fields, shape })
  }
}

const text = (value: unknown): string =>
  JSON.stringify(value, (_name, part) => (typeof part === 'bigint' ? `${part}n` : part)) ??
  'undefined'
