/** Intended differences between two faces. The other tests check that everything else is equal. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { PetstoreClient } from '../support/client.ts'
import { ofRest, ofTrpc } from '../support/outcome.ts'
import { transformer } from '../support/router.ts'
import { type Service, startService } from '../support/service.ts'
import { clientOf, sendWire } from './faces.ts'

let service: Service
let petstore: PetstoreClient
beforeAll(async () => {
  service = await startService()
  petstore = clientOf(service)
})
afterAll(() => service.stop())

const create = (body: string) => ofRest('createPet', service.rest('POST', '/pets', { body }))
const rex = { name: 'Rex', categoryId: 3 }
const accepted = { output: expect.objectContaining({ name: 'Rex', categoryId: 3n }) }
const refused = (code: string, message: string) => ({
  code,
  message: expect.stringContaining(message),
  status: 400,
})
const broken = refused('PARSE_ERROR', 'its JSON cannot be read')

test('__proto__ is an unknown field in JSON, while devalue rejects it', async () => {
  expect(await create('{"__proto__":{"status":"sold"},"name":"Rex","categoryId":3}')).toEqual(
    accepted,
  )
  const encoded = JSON.stringify('[{"__proto__":1,"name":2,"categoryId":3},7,"Rex",3]')
  expect(await sendWire(service, 'createPet', encoded)).toEqual([broken])
  const input = JSON.parse('{"__proto__":7,"name":"Rex","categoryId":3}')
  await expect(petstore.createPet.mutate(input)).rejects.toThrow('__proto__')
})

test('a batch has queries or mutations, not both; the client sends two batches', async () => {
  const inputs = JSON.stringify({ 0: transformer.serialize({}), 1: transformer.serialize(rex) })
  expect(await sendWire(service, 'listPets,createPet', inputs)).toEqual([
    refused('BAD_REQUEST', 'not of both'),
  ])
  const both = [petstore.listPets.query({}), petstore.createPet.mutate(rex)]
  expect(await Promise.all(both)).toHaveLength(2)
})

test('a batch with an Idempotency-Key is rejected; the client sends each such call alone', async () => {
  const inputs = JSON.stringify({ 0: transformer.serialize(rex), 1: transformer.serialize(rex) })
  const headers = { 'idempotency-key': '"a"' }
  expect(await sendWire(service, 'createPet,createPet', inputs, headers)).toEqual([
    refused('BAD_REQUEST', 'not with a batch'),
  ])
  const keyed = (idempotencyKey: string) =>
    petstore.createPet.mutate(rex, { context: { idempotencyKey } })
  const [one, other] = await Promise.all([keyed('a'), keyed('b')])
  expect(one?.id).not.toBe(other?.id)
})

test('the messages of REST name the body, those of tRPC the input', async () => {
  expect(await create('[]')).toEqual(refused('BAD_REQUEST', 'The body must be a JSON object'))
  const encoded = JSON.stringify(transformer.serialize([]))
  expect(await sendWire(service, 'createPet', encoded)).toEqual([
    refused('BAD_REQUEST', 'The input must be an object'),
  ])
})

test('an empty body is missing on REST and malformed on tRPC', async () => {
  expect(await create('')).toEqual(refused('BAD_REQUEST', 'The body is missing'))
  expect(await sendWire(service, 'createPet', '')).toEqual([broken])
})

test('JSON keeps all digits of a number, while a number of JavaScript may have lost some', async () => {
  const body = '{"name":"Rex","categoryId":9007199254740993}'
  expect(await create(body)).toEqual({
    output: expect.objectContaining({ categoryId: 9_007_199_254_740_993n }),
  })
  const input = { name: 'Rex', categoryId: 2 ** 53 }
  const pass = refused('BAD_REQUEST', 'is a number too great to be exact: pass a bigint')
  expect(await ofTrpc(petstore.createPet.mutate(input))).toEqual(pass)
})

test('a string is an integer in a URL, but not in an input of tRPC', async () => {
  const missing = { code: 'NOT_FOUND', status: 404 }
  expect(await ofRest('getPet', service.rest('GET', '/pets/404'))).toMatchObject(missing)
  const encoded = JSON.stringify(transformer.serialize({ petId: '404' }))
  expect(await sendWire(service, 'getPet', encoded)).toEqual([
    refused('BAD_REQUEST', 'petId must be an integer'),
  ])
})

test('JSON nested deeper than 500 levels is rejected; devalue encodes nesting in a flat list', async () => {
  const nested = (depth: number) => `${'['.repeat(depth)}${']'.repeat(depth)}`
  const creation = (depth: number) => `{"name":"Rex","categoryId":3,"more":${nested(depth)}}`
  expect(await create(creation(499))).toEqual(accepted)
  expect(await create(creation(500))).toEqual(broken)
  const encoded = JSON.stringify(transformer.serialize(JSON.parse(creation(500))))
  expect(await sendWire(service, 'createPet', encoded)).toEqual([accepted])
})
