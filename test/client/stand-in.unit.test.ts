/** The stand-in for tests of frontends; test/journeys tests it as a package. */
import { setImmediate } from 'node:timers/promises'
import { setupServer } from 'msw/node'
import { expect, onTestFinished, test } from 'vitest'
import { sharedInMemory } from '../../client/src/memory/shared.ts'
import { petstoreHandlers } from '../../client/src/testing.ts'
import { Deadline } from '../../db/deadline.ts'
import { createPetstoreClient, isApiError } from '../support/client.ts'
import { onceOf } from '../support/keyed.ts'
import { addPet, newPet, petOf } from '../support/pets.ts'

const url = 'https://pets.example/trpc'

/** Activates the stand-in until the end of the test; returns a function that makes a client of it. */
function standIn(options: Partial<Parameters<typeof petstoreHandlers>[0]> = {}) {
  const given = { url, ...options }
  const server = setupServer(...petstoreHandlers(given))
  server.listen()
  onTestFinished(() => server.close())
  return (apiKey: string) => createPetstoreClient({ url: given.url, apiKey })
}

test('client and stand-in accept a URL that ends in a slash', async () => {
  const clientWith = standIn({ url: `${url}/` })
  expect(await clientWith('any').listPets.query()).toEqual([])
})

/** The result of a call, or the code, status and message of its error. */
const outcome = (call: Promise<unknown>) =>
  call.catch((error) => {
    if (!isApiError(error)) throw error
    return [error.code, error.status, error.message]
  })

const rex = { name: 'Rex', categoryId: 1n, status: 'sold' } as const
const invalid = [
  'UNAUTHORIZED',
  401,
  'The API key is invalid: the header must be "Authorization: Bearer <API_KEY>" with a key of this service',
]

test('an idempotency key belongs to one API key and one body, and returns 409 while the first call runs', async () => {
  const clientWith = standIn()
  const context = { idempotencyKey: 'one' }
  const create = (apiKey: string, pet: Parameters<typeof mutate>[0] = rex) =>
    outcome(clientWith(apiKey).createPet.mutate(pet, { context }))
  const { mutate } = clientWith('type only').createPet
  const running = [
    'CONFLICT',
    409,
    'A request with this Idempotency-Key is still running; try again in a moment',
  ]
  // Each concurrent call returns the one pet, or 409.
  for (const result of await Promise.all([create('shop'), create('shop'), create('shop')])) {
    expect([petOf(1n, rex), running]).toContainEqual(result)
  }
  expect(await create('shop')).toEqual(petOf(1n, rex))
  expect(await create('other')).toEqual(petOf(2n, rex))
  expect(await create('shop')).toEqual(petOf(1n, rex))
  expect(await create('shop', { ...rex, name: 'Ada' })).toEqual([
    'UNPROCESSABLE_CONTENT',
    422,
    'This Idempotency-Key was used for another request; take a new one',
  ])
  expect(await clientWith('shop').listPets.query()).toHaveLength(2)
})

test('of twelve API keys, none shares an idempotency key with another', async () => {
  const clientWith = standIn()
  const create = async (apiKey: number, idempotencyKey: string) => {
    const { createPet } = clientWith(`shop-${apiKey}`)
    return (await createPet.mutate(rex, { context: { idempotencyKey } })).id
  }
  for (let count = 0; count < 12; count++) {
    expect(await create(count, 'one')).toBe(BigInt(count + 1))
  }
  // Behind the numbers of their API keys, these are one text.
  expect(await create(1, '1x')).toBe(13n)
  expect(await create(11, 'x')).toBe(14n)
})

test('a creation that fails leaves its idempotency key free', async () => {
  const once = onceOf(sharedInMemory([]).keyedWrites)
  const deadline = new Deadline(Number.POSITIVE_INFINITY)
  const request = { holder: 1n, key: 'one', operation: 'createOwner', input: {} }
  const taken = new Error('There is an owner with this name already')
  await expect(once(request, deadline, () => Promise.reject(taken))).rejects.toThrow(taken)
  const made = { name: 'Ada' }
  expect(await once(request, deadline, async () => made)).toEqual({ name: 'Ada' })
  // A store may change what it has returned; the answer to the first request stays.
  made.name = 'Eve'
  expect(await once(request, deadline, async () => made)).toEqual({ name: 'Ada' })
})

test('two steps of a mutation take effect both or not at all, with an idempotency key and without', async () => {
  using deadline = new Deadline(Number.POSITIVE_INFINITY)
  const shared = sharedInMemory([newPet(rex)])
  const request = { holder: 1n, key: 'one', operation: 'double', input: {} }
  const names = async () =>
    (await shared.stores.pets.list({ deadline }, { limit: 9 })).items.map(({ name }) => name)
  let fails = true
  const twice = async ({ pets }: typeof shared.stores) => {
    await addPet(pets, { deadline }, { ...rex, name: 'Ada' })
    if (fails) throw new Error('The second fails')
    await addPet(pets, { deadline }, { ...rex, name: 'Eve' })
  }
  const once = onceOf(shared.keyedWrites)
  const work = (call: { stores: typeof shared.stores }) => twice(call.stores)
  await expect(shared.transact(twice, deadline)).rejects.toThrow('The second fails')
  await expect(once(request, deadline, work)).rejects.toThrow('The second')
  expect(await names()).toEqual(['Rex'])
  fails = false
  await once(request, deadline, work)
  await shared.transact(twice, deadline)
  expect(await names()).toEqual(['Rex', 'Ada', 'Eve', 'Ada', 'Eve'])
})

test('a mutation does not see the steps of another one, and does not undo them', async () => {
  using deadline = new Deadline(Number.POSITIVE_INFINITY)
  const { transact, stores } = sharedInMemory([])
  const list = async ({ pets }: typeof stores) =>
    (await pets.list({ deadline }, { limit: 9 })).items.map(({ name }) => name)
  const add = async (name: string, { pets }: typeof stores) => {
    await addPet(pets, { deadline }, { ...rex, name })
    await setImmediate()
  }
  const failing = transact(async (inside) => {
    await add('Ada', inside)
    throw new Error('It failed')
  }, deadline)
  const seen = transact(async (inside) => {
    const before = await list(inside)
    await add('Eve', inside)
    return before
  }, deadline)
  await expect(failing).rejects.toThrow('It failed')
  expect([await seen, await list(stores)]).toEqual([[], ['Eve']])
})

test('no API key is valid if apiKeys is empty', async () => {
  expect(await outcome(standIn({ apiKeys: [] })('any').listPets.query())).toEqual(invalid)
})

test.each([[undefined], [['shop', 'petstore_read_x']]])(
  'with apiKeys=%j only these are valid, or every one, and petstore_read_ keys are read-only',
  async (apiKeys) => {
    const clientWith = standIn(apiKeys && { apiKeys })
    expect(await clientWith('shop').listPets.query()).toEqual([])
    expect(await outcome(clientWith('').listPets.query())).toEqual(invalid)
    expect(await outcome(clientWith('other').listPets.query())).toEqual(apiKeys ? invalid : [])
    const reader = clientWith('petstore_read_x')
    expect(await reader.listPets.query()).toEqual([])
    expect(await outcome(reader.createPet.mutate(rex))).toEqual([
      'FORBIDDEN',
      403,
      'The API key may only read: this call needs one that may write',
    ])
  },
)

test('an API key of the stand-in may have all characters of a bearer token', async () => {
  const apiKey = 'shop-1_a.b~c+d/e=='
  const clientWith = standIn({ apiKeys: [apiKey] })
  expect(await clientWith(apiKey).listPets.query()).toEqual([])
  for (const wrong of [`${apiKey}=`, apiKey.slice(0, -1), `${apiKey}f`]) {
    expect(await outcome(clientWith(wrong).listPets.query())).toEqual(invalid)
  }
})

test('a batch of 21 calls returns 400, a call without a key 401', async () => {
  standIn()
  const ask = async (count: number, headers: Record<string, string>) => {
    const path = `${Array(count).fill('listPets').join()}?batch=1`
    return (await fetch(`${url}/${path}`, { headers })).status
  }
  const headers = { authorization: 'Bearer any' }
  expect([await ask(20, headers), await ask(21, headers), await ask(1, {})]).toEqual([
    200, 400, 401,
  ])
  // As in the service, also before a procedure is looked for.
  for (const name of ['listPets', 'nothing']) {
    const missing = await fetch(`${url}/${name}`)
    expect(missing.headers.get('www-authenticate')).toBe('Bearer')
    expect(await missing.text()).toContain('The API key is missing')
  }
})
