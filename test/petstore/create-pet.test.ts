/** createPet on REST: its response, and the bodies that it accepts. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Service, startService } from '../support/service.ts'

/** The limit of a body in bytes. */
const MAX_BODY = 65_536

let service: Service
beforeAll(async () => {
  service = await startService()
})
afterAll(() => service.stop())

const create = (body: unknown, contentType = 'application/json') =>
  service.rest('POST', '/pets', { body, headers: { 'content-type': contentType } })

test('a creation returns 201, the pet and its Location', async () => {
  const { status, headers, body, text } = await create({ name: 'Rex', categoryId: 3 })
  const { id } = body as { id: number }
  expect(status).toBe(201)
  expect(text).toBe(`{"id":${id},"name":"Rex","categoryId":3,"status":"available"}`)
  expect(headers.get('location')).toBe(`${service.baseUrl}/pets/${id}`)
  expect(headers.get('content-type')).toBe('application/json')
  expect((await service.rest('GET', `/pets/${id}`)).text).toBe(text)
})

test.each([
  'application/json; charset=utf-8',
  'application/json;charset=UTF-8',
  'application/json; charset="utf-8"',
  'Application/JSON',
  'application/json ; x=y',
])('%s is JSON', async (contentType) => {
  expect((await create({ name: 'Zoë', categoryId: 3 }, contentType)).body).toMatchObject({
    name: 'Zoë',
  })
})

test.each(['[]', '[{"name":"Rex","categoryId":3}]', '"Rex"', 'null', '7', 'true'])(
  'the body %s is rejected, because it is not an object',
  async (text) => {
    const { status, body } = await create(text)
    expect(status).toBe(400)
    expect(body).toMatchObject({ code: 'BAD_REQUEST', message: 'The body must be a JSON object' })
  },
)

test.each([undefined, '', ' \n'])(
  'the body %j is rejected as missing or malformed',
  async (text) => {
    const { status, body } = await service.rest('POST', '/pets', {
      body: text,
      headers: { 'content-type': 'application/json' },
    })
    expect(status).toBe(400)
    expect(body).toMatchObject({ code: expect.stringMatching(/^(BAD_REQUEST|PARSE_ERROR)$/) })
  },
)

test('without a content type a body is 415, and a missing body is 400', async () => {
  const headers = { 'content-type': undefined }
  const untyped = new Uint8Array(Buffer.from('{"name":"Rex","categoryId":3}'))
  expect((await service.rest('POST', '/pets', { headers, body: untyped })).status).toBe(415)
  expect((await service.rest('POST', '/pets', { headers })).status).toBe(400)
})

test(`a body of ${MAX_BODY} bytes is accepted, and one more byte is 413`, async () => {
  const text = '{"name":"Zoë","categoryId":3}'
  const spaces = ' '.repeat(MAX_BODY - Buffer.byteLength(text))
  expect((await create(text + spaces)).status).toBe(201)
  const refused = await create(`${text + spaces} `)
  expect(refused.status).toBe(413)
  expect(refused.body).toEqual({
    code: 'PAYLOAD_TOO_LARGE',
    message: `The body must have at most ${MAX_BODY} bytes`,
    status: 413,
  })
})

test('unknown fields of a body are ignored', async () => {
  const body =
    '{"id":77,"name":"Rex","colour":"red","categoryId":3,"__proto__":{"status":"sold"},"constructor":1}'
  const made = await create(body)
  expect(made.body).toMatchObject({ status: 'available' })
  expect(Object.keys(made.body as object)).toEqual(['id', 'name', 'categoryId', 'status'])
  expect((made.body as { id: number }).id).not.toBe(77)
})

test('the last one of two equal names in a body is used', async () => {
  const made = await create('{"name":"Rex","categoryId":3,"name":"Max"}')
  expect(made.body).toMatchObject({ name: 'Max' })
})

test('the query of a creation is ignored', async () => {
  const { status, body } = await service.rest('POST', '/pets?name=Rex&status=sold&limit=0', {
    body: { name: 'Max', categoryId: 3 },
  })
  expect(status).toBe(201)
  expect(body).toMatchObject({ name: 'Max', status: 'available' })
})

test('a rejected creation stores nothing', async () => {
  const before = await service.trpc.listPets.query({ limit: 100 })
  for (const body of [
    { name: '', categoryId: 1 },
    { name: 'Rex' },
    [],
    { name: 'Rex', categoryId: 1, status: 'x' },
  ]) {
    expect((await create(body)).status).toBe(400)
  }
  expect(await service.trpc.listPets.query({ limit: 100 })).toEqual(before)
})
