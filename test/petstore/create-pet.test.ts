/** createPet on REST: the bodies that it accepts. test/http/bodies.test.ts has those of both surfaces. */
import { expect, test } from 'vitest'
import { serviceForFile } from '../support/service.ts'

const service = await serviceForFile()

const create = (body: unknown) => service.rest('POST', '/pets', { body })

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

test('unknown fields of a body are ignored', async () => {
  const body =
    '{"id":77,"name":"Rex","colour":"red","categoryId":3,"__proto__":{"status":"sold"},"constructor":1}'
  const made = await create(body)
  expect(made.body).toMatchObject({ status: 'available' })
  expect(Object.keys(made.body as object)).toEqual(['id', 'name', 'categoryId', 'status'])
  expect((made.body as { id: number }).id).not.toBe(77)
})

test('the query of a creation is ignored', async () => {
  const { status, body } = await service.rest('POST', '/pets?name=Rex&status=sold&limit=0', {
    body: { name: 'Max', categoryId: 3 },
  })
  expect(status).toBe(201)
  expect(body).toMatchObject({ name: 'Max', status: 'available' })
})
