/** getPet on REST: its path. whole-answers.once.test.ts has its headers, except those of rare errors. */
import { expect, test } from 'vitest'
import { serviceForFile } from '../support/service.ts'

const service = await serviceForFile()
await service.rest('POST', '/pets', { body: { name: 'Rex', categoryId: 3 } })

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

test.each([
  ['HEAD', '/pets/2', 404],
  ['GET', '/pets/rex', 401],
  ['GET', '/pets/%E0%A4', 401],
])('%s %s returns the deprecation headers with %i', async (method, path, status) => {
  const headers = { ...(status === 401 && { authorization: undefined }) }
  const answer = await service.rest(method, path, { headers })
  expect(answer.status).toBe(status)
  expect(answer.headers.get('deprecation')).toBe('@1795132800')
  expect(answer.headers.get('sunset')).toBe('Thu, 05 Dec 2030 00:00:00 GMT')
  expect(answer.headers.get('link')).toBe(`<${service.baseUrl}/pets>; rel="successor-version"`)
})
