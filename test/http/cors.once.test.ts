/** CORS. whole-answers.once.test.ts checks the headers of each response. */
import { expect, test } from 'vitest'
import { answerOf, expectRestError, expectTrpcError } from '../support/expect.ts'
import { allowAt, corsMethods } from '../support/operations.ts'
import { converse, requestText } from '../support/raw.ts'
import { serviceForFile } from '../support/service.ts'

const shop = 'https://shop.example'
const service = await serviceForFile({ CORS_ORIGINS: `${shop}, capacitor://localhost` })
const closed = await serviceForFile()
const all = await serviceForFile({ CORS_ORIGINS: `${shop}, *` })

const ask = (
  method: 'GET' | 'OPTIONS',
  path: string,
  origin: string,
  { origin: server } = service,
) => {
  const headers = { origin, 'access-control-request-method': 'POST' }
  return fetch(server + path, { method, headers })
}

test.for(['/v1/pets', '/v1/pets/1', '/trpc/createPet', '/trpc/listPets?batch=1'])(
  'a preflight for %s allows every method of the service, the headers of tracing, and those of libraries',
  async (path) => {
    for (const origin of [shop, 'capacitor://localhost']) {
      const { status, headers } = await ask('OPTIONS', path, origin)
      expect(status).toBe(204)
      expect(headers.get('access-control-allow-methods')).toBe(corsMethods.join())
      expect(headers.get('access-control-allow-origin')).toBe(origin)
      const allowed = headers.get('access-control-allow-headers')
      expect(allowed).toContain('traceparent,tracestate')
      // What libraries of frontends and browsers with an empty cache add.
      expect(allowed).toContain('X-Requested-With,Cache-Control,Pragma')
    }
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
    const options = (path: string) =>
      answerOf(fetch(service.origin + path, { method: 'OPTIONS', headers }))
    for (const path of ['/pets', '/pets/1']) {
      const rest = await options(`/v1${path}`)
      expectRestError(rest, 405, 'METHOD_NOT_SUPPORTED')
      expect(rest.headers.get('allow')).toBe(allowAt(path))
    }
    const trpc = await options('/trpc/listPets')
    expectTrpcError(trpc, 405, 'METHOD_NOT_SUPPORTED')
    expect(trpc.headers.get('allow')).toBe('GET, HEAD, POST')
    expectRestError(await options('/nothing'), 404, 'NOT_FOUND')
  }
})

test('without CORS_ORIGINS, responses have no CORS headers', async () => {
  for (const path of ['/v1/pets', '/trpc/listPets']) {
    for (const method of ['GET', 'OPTIONS'] as const) {
      const names = [...(await ask(method, path, shop, closed)).headers.keys()]
      expect(names.filter((name) => name.startsWith('access-control'))).toEqual([])
    }
  }
})

test('other origins get no Access-Control-Allow-Origin', async () => {
  for (const origin of [
    `${shop}.evil.example`,
    'http://shop.example',
    'null',
    `${shop}:444`,
    '*',
  ]) {
    for (const method of ['GET', 'OPTIONS'] as const) {
      const { headers } = await ask(method, '/v1/pets', origin)
      expect(headers.get('access-control-allow-origin')).toBeNull()
      // A cache must not return this response to the allowed origin.
      expect(headers.get('vary')?.toLowerCase()).toContain('origin')
    }
  }
})

test('* in CORS_ORIGINS allows every origin', async () => {
  for (const path of ['/v1/pets', '/trpc/listPets', '/v1/nothing']) {
    const { headers } = await ask('GET', path, 'https://any.example', all)
    expect(headers.get('access-control-allow-origin')).toBe('*')
    expect(headers.get('access-control-allow-credentials')).toBeNull()
  }
})
