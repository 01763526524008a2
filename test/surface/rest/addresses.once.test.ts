import { expect, test } from 'vitest'
import { allowAt } from '../../support/operations.ts'
import { serviceForFile } from '../../support/service.ts'

const service = await serviceForFile()
for (const name of ['Rex', 'Max'])
  await service.rest('POST', '/pets', { body: { name, categoryId: 3 } })

test.each([
  ...['', '/', '/PETS', '/Pets', '/pets/', '/pets/1/', '/pets/1/toys', '/pets//', '//pets', '/pet'],
  ...['/pets%2F1', '/pets;v=1', '/openapi.json/', '/OpenAPI.json', '/openapi'],
])('/v1%s returns 404', async (path) => {
  for (const method of ['GET', 'POST', 'DELETE', 'OPTIONS']) {
    const body = { code: 'NOT_FOUND', message: 'There is nothing at this URL', status: 404 }
    expect(await service.rest(method, path)).toMatchObject({ status: 404, body })
  }
})

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

test('what an operation does not read in a query is ignored', async () => {
  const body = { name: 'Max', categoryId: 3 }
  const made = await service.rest('POST', '/pets?name=Rex&status=sold&limit=0', { body })
  expect(made).toMatchObject({ status: 201, body: { ...body, status: 'available' } })
  for (const query of ['', '&&', '=', 'limit%00=0', '%ZZ=1', 'Limit=0']) {
    expect((await service.rest('GET', `/pets?${query}`)).status, query).toBe(200)
  }
})
