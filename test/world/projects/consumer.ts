/** A program with a client that is generated from openapi.json; it calls every operation. */
import assert from 'node:assert/strict'
import createClient, { type Middleware } from 'openapi-fetch'
import type { components, paths } from './petstore.ts'

const [baseUrl = '', apiKey = '', invalidToo] = process.argv.slice(2)
const client = createClient<paths>({ baseUrl })
const bearer: Middleware = {
  onRequest({ request }) {
    if (!request.headers.has('authorization')) {
      request.headers.set('authorization', `Bearer ${apiKey}`)
    }
  },
}
client.use(bearer)

type Pet = components['schemas']['Pet']
type ApiError = components['schemas']['Error']

const refused = (error: ApiError | undefined, status: number, code: string) =>
  assert.deepEqual([error?.status, error?.code], [status, code])

// createPet
const made: Pet[] = []
for (let serial = 1; serial <= 5; serial++) {
  const status = serial === 5 ? 'sold' : undefined
  const { data, error, response } = await client.POST('/pets', {
    body: { name: `Pet ${serial}`, categoryId: serial, ...(status && { status }) },
    params: { header: { 'Idempotency-Key': `"consumer-${serial}"` } },
  })
  assert.equal(error, undefined)
  assert.equal(response.status, 201)
  assert.ok(response.headers.get('location')?.endsWith(`/pets/${data?.id}`))
  if (data) made.push(data)
}
assert.deepEqual(
  made.map((pet) => pet.status),
  ['available', 'available', 'available', 'available', 'sold'],
)

// listPets, page by page, by the Link header
const seen: number[] = []
let cursor: number | undefined
do {
  const query = { limit: 2, ...(cursor !== undefined && { cursor }) }
  const { data = [], response } = await client.GET('/pets', { params: { query } })
  seen.push(...data.map((pet) => pet.id))
  const next = /<([^>]+)>; rel="next"/.exec(response.headers.get('link') ?? '')?.[1]
  cursor = next === undefined ? undefined : Number(new URL(next).searchParams.get('cursor'))
} while (cursor !== undefined)
assert.deepEqual(
  seen,
  made.map((pet) => pet.id),
)
const { data: sold } = await client.GET('/pets', { params: { query: { status: 'sold' } } })
assert.deepEqual(sold, made.slice(4))

// getPet
const [first] = made
assert.ok(first)
const got = await client.GET('/pets/{petId}', { params: { path: { petId: first.id } } })
assert.deepEqual(got.data, first)
assert.equal(got.response.headers.get('sunset'), 'Thu, 05 Dec 2030 00:00:00 GMT')

// The errors of valid requests
const absent = await client.GET('/pets/{petId}', { params: { path: { petId: 4_000_000 } } })
refused(absent.error, 404, 'NOT_FOUND')
const reused = await client.POST('/pets', {
  body: { name: 'Another', categoryId: 1 },
  params: { header: { 'Idempotency-Key': '"consumer-1"' } },
})
refused(reused.error, 422, 'UNPROCESSABLE_CONTENT')
const foreign = await client.GET('/pets', { headers: { authorization: 'Bearer nobody' } })
refused(foreign.error, 401, 'UNAUTHORIZED')

// The errors of invalid requests, which a validating proxy does not forward
if (invalidToo) {
  const greedy = await client.GET('/pets', { params: { query: { limit: 101 } } })
  refused(greedy.error, 400, 'BAD_REQUEST')
  const nameless = await client.POST('/pets', { body: { name: '', categoryId: 1 } })
  refused(nameless.error, 400, 'BAD_REQUEST')
  const large = await client.POST('/pets', { body: { name: 'x'.repeat(70_000), categoryId: 1 } })
  refused(large.error, 413, 'PAYLOAD_TOO_LARGE')
  const text = await client.POST('/pets', {
    body: { name: 'Rex', categoryId: 1 },
    headers: { 'content-type': 'text/plain' },
  })
  refused(text.error, 415, 'UNSUPPORTED_MEDIA_TYPE')
}

console.log('everything as documented')
