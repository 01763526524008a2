/** The paths and methods of REST, and HEAD. */
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { allowAt } from '../../support/operations.ts'
import { requestText } from '../../support/raw.ts'
import { serviceForFile } from '../../support/service.ts'

const service = await serviceForFile()
for (const name of ['Rex', 'Max'])
  await service.rest('POST', '/pets', { body: { name, categoryId: 3 } })

test.each([
  '/PETS',
  '/Pets',
  '/pets/',
  '/pets/1/',
  '/pets/1/toys',
  '/pets//',
  '//pets',
  '/',
  '',
  '/pet',
  '/pets%2F1',
  '/openapi.json/',
  '/OpenAPI.json',
  '/openapi',
  '/pets;v=1',
])('/v1%s returns 404', async (path) => {
  for (const method of ['GET', 'POST', 'DELETE', 'OPTIONS']) {
    const { status, body } = await service.rest(method, path)
    expect(status).toBe(404)
    expect(body).toEqual({
      code: 'NOT_FOUND',
      message: 'There is nothing at this URL',
      status: 404,
    })
  }
})

test.each(['/v1x/pets', '/V1/pets', '/pets', '/v2/pets', '/trpcs'])(
  '%s is not a path of REST',
  async (path) => {
    const answer = await fetch(service.origin + path)
    expect(answer.status).toBe(404)
    expect(answer.headers.get('content-type')).toBe('application/json')
    expect(await answer.json()).toMatchObject({ code: 'NOT_FOUND', status: 404 })
  },
)

test.each([
  ['/pets', allowAt('/pets')],
  ['/pets/1', allowAt('/pets/1')],
  ['/pets/rex', allowAt('/pets/1')],
  ['/openapi.json', 'GET, HEAD'],
])('%s allows %s only', async (path, allow) => {
  expect(allow).toContain('GET, HEAD')
  const methods = ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'PROPFIND']
  for (const method of methods.filter((method) => !allow.split(', ').includes(method))) {
    const { status, headers, body } = await service.rest(method, path)
    expect(status).toBe(405)
    expect(headers.get('allow')).toBe(allow)
    expect(body).toEqual({
      code: 'METHOD_NOT_SUPPORTED',
      message: `${method} is not supported here: use ${allow.replace(/, (?=[A-Z]+$)/, ' or ')}`,
      status: 405,
    })
  }
})

test.each([
  ['/pets?limit=1', 200],
  ['/pets?limit=0', 400],
  ['/pets/1', 200],
  ['/pets/9', 404],
  ['/openapi.json', 200],
  ['/nothing', 404],
])('HEAD %s answers as GET does, without the body', async (path, status) => {
  const [head, get] = [await service.rest('HEAD', path), await service.rest('GET', path)]
  expect(head.status).toBe(status)
  expect(get.status).toBe(status)
  // fetch would drop a body that must not be there.
  const raw = connect(Number(new URL(service.origin).port), '127.0.0.1')
  const headers = ['Connection: close']
  raw.write(requestText(`HEAD /v1${path}`, { key: service.key, headers }))
  expect(await text(raw)).toMatch(new RegExp(`^HTTP/1\\.1 ${status} [^]*?\r\n\r\n$`))
  const named = ({ headers }: typeof head) =>
    ['content-type', 'link', 'deprecation', 'sunset'].map((name) => headers.get(name))
  expect(named(head)).toEqual(named(get))
})
