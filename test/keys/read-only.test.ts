/** Read-only keys: operations that write reject them. */
import { expect, test } from 'vitest'
import { answerOf, expectRestError, expectTrpcError } from '../support/expect.ts'
import { countPets } from '../support/pets.ts'
import { keyedFetch, restClient } from '../support/rest.ts'
import { transformer } from '../support/router.ts'
import { keys, serviceForFile, trpcClient } from '../support/service.ts'

const service = await serviceForFile()
const { key } = await keys.create(service.databaseUrl, 'catalogue', undefined, true)

const post = (path: string, key: string, body: string, headers = {}) =>
  answerOf(keyedFetch(service.origin, key)(path, { method: 'POST', headers, body }))

test('a read-only key can read, and each operation that writes returns 403, on both surfaces', async () => {
  const [rest, trpc] = [restClient(service.origin, key), trpcClient(service.origin, key)]
  expect((await rest('GET', '/pets')).status).toBe(200)
  expect(await trpc.listPets.query()).toEqual([])
  expect((await rest('GET', '/pets/404')).status).toBe(404)
  // The client validates the responses against the OpenAPI document.
  const rejected = await rest('POST', '/pets', { body: { name: 'Rex', categoryId: 1 } })
  expect(rejected.status).toBe(403)
  expect(rejected.headers.get('www-authenticate')).toBe('Bearer error="insufficient_scope"')
  for (const body of ['{"name":"Rex","categoryId":1}', '{', '']) {
    const once = { 'idempotency-key': '"read-only"' }
    expectRestError(await post('/v1/pets', key, body, once), 403, 'FORBIDDEN')
    expectTrpcError(await post('/trpc/createPet', key, body), 403, 'FORBIDDEN')
  }
  const inputs = Array(2).fill(transformer.serialize({ name: 'Rex', categoryId: 1 }))
  for (const first of ['createPet', 'nothing', 'listPets']) {
    for (const headers of [{}, { 'trpc-accept': 'application/jsonl' }]) {
      const batch = `/trpc/${first},createPet?batch=1`
      const rejected = await post(batch, key, JSON.stringify({ ...inputs }), headers)
      expectTrpcError(rejected, 403, 'FORBIDDEN')
    }
  }
  expect(await countPets(service.sql)).toBe(0)
})

test('a key with a changed prefix is invalid', async () => {
  const swapped = [
    key.replace('petstore_read_', 'petstore_'),
    service.key.replace('petstore_', 'petstore_read_'),
  ]
  for (const key of swapped) {
    expectRestError(await post('/v1/pets', key, '{}'), 401, 'UNAUTHORIZED')
  }
})
