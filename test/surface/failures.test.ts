/** The database fails under the running service: both surfaces return 500 or 503 without details. */
import { afterEach, expect, test } from 'vitest'
import { engine } from '../support/database.ts'
import { holdWrites } from '../support/hold.ts'
import { operations } from '../support/operations.ts'
import { ofRest, ofTrpc } from '../support/outcome.ts'
import { storePets } from '../support/pets.ts'
import { newProxiedDatabase } from '../support/proxy.ts'
import { transformer } from '../support/router.ts'
import { type Service, startService } from '../support/service.ts'

let service: Service
afterEach(() => service.stop())

const pet = { name: 'Rex', categoryId: 3 }

/** The outcome of each operation on each surface; the calls are concurrent. */
async function outcomes({ rest, trpc }: Service, called = operations) {
  const calls = called.flatMap((operation) => [
    [`${operation.name} on REST`, ofRest(operation.name, operation.rest(rest))] as const,
    [`${operation.name} on tRPC`, ofTrpc(operation.trpc(trpc))] as const,
  ])
  return await Promise.all(calls.map(async ([title, outcome]) => [title, await outcome] as const))
}

/** Checks that each of these operations has this outcome on both surfaces. */
async function expectAll(outcome: object, called = operations): Promise<void> {
  const given = await outcomes(service, called)
  expect(given).toEqual(given.map(([title]) => [title, outcome]))
}

/** The status and the Retry-After of a batch: one call needs the database, the other is unknown. */
async function mixedBatch(service: Service): Promise<[number, string | null]> {
  const { status, headers } = await service.fetch('/trpc/nothing,createPet?batch=1', {
    method: 'POST',
    body: JSON.stringify({ 1: transformer.serialize(pet) }),
  })
  return [status, headers.get('retry-after')]
}

const internal = { code: 'INTERNAL_SERVER_ERROR', message: 'Internal server error', status: 500 }
const unavailable = {
  code: 'SERVICE_UNAVAILABLE',
  message: 'The service cannot use its database right now; try again later',
  status: 503,
}

test('a row that is not a valid pet: 500, because the output is validated', async () => {
  service = await startService()
  await storePets(service.sql, [{ name: 'Rex', categoryId: 3n, status: 'stolen' as 'sold' }])
  const reading = operations.filter(({ changes, table }) => !changes && table === 'pets')
  expect(reading.length).toBeGreaterThan(1)
  await expectAll(internal, reading)
})

const testServerGone = () =>
  test('a lost database server: 503 with Retry-After until it is back', async () => {
    const database = await newProxiedDatabase()
    const { proxy } = database
    service = await startService({}, { database })
    await service.rest('GET', '/pets') // caches the key, so that the operations fail

    await proxy.cut()
    await expectAll(unavailable)
    const withUnknownKey = { headers: { authorization: `Bearer petstore_${'A'.repeat(43)}` } }
    expect(await ofRest('listPets', service.rest('GET', '/pets', withUnknownKey))).toEqual(
      unavailable,
    )

    expect(await mixedBatch(service)).toEqual([207, '5'])
    await proxy.mend()
    expect((await service.rest('POST', '/pets', { body: pet })).status).toBe(201)
    expect(await service.trpc.getPet.query({ petId: 1 })).toMatchObject({ name: 'Rex' })
    await proxy.cut()
  })

const testFileHeld = () =>
  test('another process holds the write lock of the file: 503 for writes, while reads succeed', async () => {
    service = await startService({ DATABASE_TIMEOUT: '5s' })
    await service.rest('POST', '/pets', { body: pet })
    const release = await holdWrites(service.databaseUrl)
    const [refused, mixed] = await Promise.all([
      service.rest('POST', '/pets', { body: pet }),
      mixedBatch(service),
    ])
    const read = await service.rest('GET', '/pets/1').finally(release)
    expect(refused.body).toEqual(unavailable)
    expect(refused.headers.get('retry-after')).toBe('5')
    expect(mixed).toEqual([207, '5'])
    expect(read.status).toBe(200)
    expect((await service.rest('POST', '/pets', { body: pet })).status).toBe(201)
  })

if (engine === 'mysql') testServerGone()
else testFileHeld()
