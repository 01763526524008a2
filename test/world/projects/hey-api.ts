/** Ids beyond 2⁵³ with the @hey-api/openapi-ts client of docs/clients.md, and with plain clients. */
import assert from 'node:assert/strict'
import './client.js'
import { createClient } from './petstore/client/index.js'
import { createPet, getPet, listPets } from './petstore/sdk.gen.js'

const LARGE = 9007199254740993n // the id of an existing pet
const ROUNDED = 9007199254740992n

const newPet = (categoryId: bigint) => ({ name: 'Rex "1234567890123456789"', categoryId })

for (const categoryId of [LARGE, 2n ** 63n - 1n, -(2n ** 63n), 3n]) {
  const made = await createPet({ body: newPet(categoryId) })
  assert.equal(made.data?.categoryId, categoryId)
  assert.equal(made.data.name, 'Rex "1234567890123456789"')
}
assert.equal((await getPet({ path: { petId: LARGE } })).data?.id, LARGE)
const after = { query: { cursor: LARGE - 1n, limit: 1 } }
const [found] = (await listPets(after)).data ?? []
assert.equal(found?.id, LARGE)
assert.equal(found.categoryId, 2n ** 63n - 1n)
const none = await getPet({ path: { petId: 2n ** 63n - 1n } })
assert.deepEqual(none.error, {
  code: 'NOT_FOUND',
  message: 'There is no animal with the id 9223372036854775807',
  status: 404,
})

// Without the code of client.ts: ids are rounded, even bigints, and large ones are rejected in bodies
const [baseUrl = '', auth = ''] = process.argv.slice(2)
const client = createClient({ baseUrl, auth })
assert.equal((await listPets({ ...after, client })).data?.[0]?.id, ROUNDED)
const refused = await createPet({ body: newPet(LARGE), client })
assert.equal(refused.error?.code, 'BAD_REQUEST')
assert.match(refused.error.message, /^categoryId must be an integer/)

// A polyfill, which JSON.stringify calls before it calls a replacer
for (const toJSON of [Number, String]) {
  Object.assign(BigInt.prototype, {
    toJSON() {
      return toJSON(this)
    },
  })
  const made = await createPet({ body: newPet(LARGE) })
  assert.equal(made.data?.categoryId, LARGE)
}

console.log('exact')
