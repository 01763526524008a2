/** CORS preflights, and OPTIONS requests that are no preflight. */
import { expect, test } from 'vitest'
import { answerOf, expectRestError, expectTrpcError } from '../support/expect.ts'
import { allowAt, corsMethods } from '../support/operations.ts'
import { converse, requestText } from '../support/raw.ts'
import { serviceForFile } from '../support/service.ts'

const shop = 'https://shop.example'
const service = await serviceForFile({ CORS_ORIGINS: shop })

const options = (path: string, headers: Record<string, string>) =>
  fetch(service.origin + path, { method: 'OPTIONS', headers })

test.each(['/v1/pets', '/v1/pets/1', '/trpc/createPet', '/trpc/listPets?batch=1'])(
  'a preflight for %s allows every method of the service',
  async (path) => {
    const answer = await options(path, {
      origin: shop,
      'access-control-request-method': 'POST',
      'access-control-request-headers': 'x-request-id',
    })
    expect(answer.status).toBe(204)
    expect(answer.headers.get('access-control-allow-methods')).toBe(corsMethods.join())
    expect(answer.headers.get('access-control-allow-origin')).toBe(shop)
  },
)

test('a preflight whose body does not arrive gets a response, and the connection closes', async () => {
  const headers = [`Origin: ${shop}`, 'Access-Control-Request-Method: POST', 'Content-Length: 5']
  const preflight = requestText('OPTIONS /v1/pets', { headers })
  const { answers, closed } = await converse(service.origin, preflight, { expected: 2 })
  expect(answers.map(({ status }) => status)).toEqual([204])
  expect(closed).toBe(true)
})

test('OPTIONS without preflight headers returns 405, or 404 for an unknown path', async () => {
  for (const headers of [{}, { origin: shop }]) {
    const rest = await answerOf(options('/v1/pets', headers))
    expectRestError(rest, 405, 'METHOD_NOT_SUPPORTED')
    expect(rest.headers.get('allow')).toBe(allowAt('/pets'))
    const one = await answerOf(options('/v1/pets/1', headers))
    expectRestError(one, 405, 'METHOD_NOT_SUPPORTED')
    expect(one.headers.get('allow')).toBe(allowAt('/pets/1'))
    const trpc = await answerOf(options('/trpc/listPets', headers))
    expectTrpcError(trpc, 405, 'METHOD_NOT_SUPPORTED')
    expect(trpc.headers.get('allow')).toBe('GET, HEAD, POST')
    expectRestError(await answerOf(options('/nothing', headers)), 404, 'NOT_FOUND')
  }
})
