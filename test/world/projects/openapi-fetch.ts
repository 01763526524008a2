/** Ids beyond 2⁵³ with the openapi-typescript client of docs/clients.md, and with a plain client. */
import assert from 'node:assert/strict'
import createClient from 'openapi-fetch'
import { petstore } from './client.js'
import type { components, paths } from './petstore.js'

const LARGE = 9007199254740993n // the id of an existing pet
const ROUNDED = 9007199254740992

const newPet = (categoryId: number | bigint): components['schemas']['NewPet'] => ({
  name: 'Rex "1234567890123456789"',
  categoryId,
})

for (const categoryId of [LARGE, 2n ** 63n - 1n, -(2n ** 63n), 2 ** 53 - 1, 3]) {
  const made = await petstore.POST('/pets', { body: newPet(categoryId) })
  assert.equal(made.data?.categoryId, categoryId)
  assert.equal(made.data.name, 'Rex "1234567890123456789"')
}
const large = { params: { path: { petId: LARGE } } }
assert.equal((await petstore.GET('/pets/{petId}', large)).data?.id, LARGE)
const after = { params: { query: { cursor: LARGE - 1n, limit: 1 } } }
const [found] = (await petstore.GET('/pets', after)).data ?? []
assert.equal(found?.id, LARGE)
assert.equal(found.categoryId, 2n ** 63n - 1n)
const none = await petstore.GET('/pets/{petId}', { params: { path: { petId: 2n ** 63n - 1n } } })
assert.deepEqual(none.error, {
  code: 'NOT_FOUND',
  message: 'There is no animal with the id 9223372036854775807',
  status: 404,
})

// Without the code of client.ts
const [baseUrl = '', key] = process.argv.slice(2)
const plain = createClient<paths>({ baseUrl, headers: { Authorization: `Bearer ${key}` } })
const [pet] = (await plain.GET('/pets', after)).data ?? []
assert.equal(pet?.id, ROUNDED)
const other = await plain.GET('/pets/{petId}', { params: { path: { petId: pet.id } } })
assert.equal(other.error?.code, 'NOT_FOUND')
await assert.rejects(plain.POST('/pets', { body: newPet(LARGE) }), TypeError)

// A polyfill, which JSON.stringify calls before it calls a replacer
for (const toJSON of [Number, String]) {
  Object.assign(BigInt.prototype, {
    toJSON() {
      return toJSON(this)
    },
  })
  const made = await petstore.POST('/pets', { body: newPet(LARGE) })
  assert.equal(made.data?.categoryId, LARGE)
}

console.log('exact')
