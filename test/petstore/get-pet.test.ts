/** getPet on REST: its path, and the deprecation headers of every response. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Service, startService } from '../support/service.ts'

let service: Service
beforeAll(async () => {
  service = await startService()
  await service.rest('POST', '/pets', { body: { name: 'Rex', categoryId: 3 } })
})
afterAll(() => service.stop())

test.each(['/pets/1', '/pets/%31', '/pets/01', '/pets/1?limit=0', '/pets/1?petId=9'])(
  '%s returns pet 1',
  async (path) => {
    const { status, text } = await service.rest('GET', path)
    expect(status).toBe(200)
    expect(text).toBe('{"id":1,"name":"Rex","categoryId":3,"status":"available"}')
  },
)

test.each([
  '/pets/rex',
  '/pets/1.0',
  '/pets/1e0',
  '/pets/%20',
  '/pets/1%20',
  '/pets/%2F1',
  '/pets/1,2',
  '/pets/%00',
  '/pets/%F0%9F%98%80',
])('%s has an invalid id', async (path) => {
  const { status, body } = await service.rest('GET', path)
  expect(status).toBe(400)
  expect(body).toMatchObject({ code: 'BAD_REQUEST', message: expect.stringMatching(/^petId must/) })
})

const anonymous = { headers: { authorization: undefined } }
test.each([
  ['a pet', 'GET', '/pets/1', {}, 200],
  ['a pet, HEAD', 'HEAD', '/pets/1', {}, 200],
  ['an unknown id', 'GET', '/pets/2', {}, 404],
  ['an unknown id, HEAD', 'HEAD', '/pets/2', {}, 404],
  ['an invalid id', 'GET', '/pets/rex', {}, 400],
  ['an id that cannot be decoded', 'GET', '/pets/%E0%A4', {}, 400],
  ['no key', 'GET', '/pets/1', anonymous, 401],
  ['no key and an invalid id', 'GET', '/pets/rex', anonymous, 401],
  ['no key and an id that cannot be decoded', 'GET', '/pets/%E0%A4', anonymous, 401],
] as const)(
  '%s: the response has the deprecation headers',
  async (_, method, path, init, status) => {
    const answer = await service.rest(method, path, init)
    expect(answer.status).toBe(status)
    expect(answer.headers.get('deprecation')).toBe('@1795132800')
    expect(answer.headers.get('sunset')).toBe('Thu, 05 Dec 2030 00:00:00 GMT')
    expect(answer.headers.get('link')).toBe(`<${service.baseUrl}/pets>; rel="successor-version"`)
  },
)

test('the other operations have no deprecation headers', async () => {
  for (const [method, body] of [['GET'], ['POST', { name: 'Rex', categoryId: 3 }]] as const) {
    const { headers } = await service.rest(method, '/pets', { body })
    expect(headers.has('deprecation') || headers.has('sunset')).toBe(false)
  }
})
