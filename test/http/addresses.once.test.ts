/** Unusual request targets, methods, Host and duplicate headers, written byte by byte. */
import { afterEach, expect, test } from 'vitest'
import {
  expectRefusal,
  expectRestError,
  expectServing,
  expectTrpcError,
} from '../support/expect.ts'
import { converse, type RawAnswer } from '../support/raw.ts'
import { serviceForFile } from '../support/service.ts'

const service = await serviceForFile()
const key = `Authorization: Bearer ${service.key}`
afterEach(() => expectServing(service))

/** Sends a request without a body, and checks that there is exactly one response. */
async function ask(line: string, headers = ['Host: petstore.example', key]): Promise<RawAnswer> {
  const text = `${[`${line} HTTP/1.1`, 'Connection: close', ...headers].join('\r\n')}\r\n\r\n`
  const { answers } = await converse(service.origin, text)
  expect(answers).toHaveLength(1)
  return answers[0] as RawAnswer
}

test('a target in absolute form is served by its path (RFC 9112, section 3.2.2)', async () => {
  const rest = await ask('GET http://elsewhere.example/v1/pets')
  expect(rest).toMatchObject({ status: 200, body: '[]' })
  expect((await ask('GET https://elsewhere.example/trpc/listPets')).status).toBe(200)
  expectRestError(await ask('GET http://elsewhere.example/v1/pets?limit=0'), 400, 'BAD_REQUEST')
  expectRestError(await ask('GET http://elsewhere.example/v1/nothing'), 404, 'NOT_FOUND')
  expectTrpcError(await ask('GET http://elsewhere.example/trpc/nothing'), 404, 'NOT_FOUND')
})

test('a query parameter behind a thousand others is read', async () => {
  const others = 'x&'.repeat(1_000)
  expectRestError(await ask(`GET /v1/pets?${others}limit=0`), 400, 'BAD_REQUEST')
  expectTrpcError(await ask(`GET /trpc/getPet?${others}input=x`), 400, 'PARSE_ERROR')
})

test('an invalid URL returns 400', async () => {
  const answer = await ask('GET http://[/v1/pets')
  expectRefusal(answer, 400, 'BAD_REQUEST')
  expect(JSON.parse(answer.body).message).toBe('The URL of the request is not valid')
})

test('* and targets that begin with // return 404', async () => {
  for (const line of ['OPTIONS *', 'GET *', 'GET //elsewhere.example/v1/pets']) {
    expectRestError(await ask(line), 404, 'NOT_FOUND')
  }
})

test('path traversal returns 404, in any encoding', async () => {
  const paths = ['/v1/..%2fpets', '/v1/%2e%2e/v1/pets', '/v1//pets', '/v1/pets%2f1', '/V1/pets']
  const files = ['/../../package.json', '/..%2f..%2fpackage.json', '/%2e%2e/%2e%2e/package.json']
  const backslashes = ['/..\\..\\package.json', '/..%5c..%5cpackage.json', '/%00', '/index.html%00']
  for (const path of [...paths, ...[...files, ...backslashes].map((file) => `/docs${file}`)]) {
    expectRestError(await ask(`GET ${path}`), 404, 'NOT_FOUND')
  }
})

test('NUL and malformed percent-encoding return 400, or 404 from tRPC', async () => {
  for (const path of [
    '/v1/pets/%00',
    '/v1/pets/1%00',
    '/v1/pets/%zz',
    '/v1/pets/%',
    '/v1/pets/%c0%af',
  ]) {
    expectRestError(await ask(`GET ${path}`), 400, 'BAD_REQUEST')
  }
  expectRestError(await ask('GET /v1/pets?status=%zz'), 400, 'BAD_REQUEST')
  expectRestError(await ask('GET /v1/pets?cursor=1%00'), 400, 'BAD_REQUEST')
  expectTrpcError(await ask('GET /trpc/%zz'), 400, 'BAD_REQUEST')
  expectTrpcError(await ask('GET /trpc//['), 400, 'BAD_REQUEST')
  expectTrpcError(await ask('GET /trpc/%00'), 404, 'NOT_FOUND')
  expectTrpcError(await ask('GET /trpc/listPets?input=%zz'), 400, 'PARSE_ERROR')
})

test('names of Object.prototype are neither procedures nor parameters', async () => {
  for (const name of ['__proto__', 'constructor', 'toString', 'constructor.name', '_def', '']) {
    expectTrpcError(await ask(`GET /trpc/${name}`), 404, 'NOT_FOUND')
  }
  expect((await ask('GET /v1/pets?__proto__=1&constructor=2&__proto__[limit]=0')).status).toBe(200)
  expectRestError(await ask('GET /v1/pets?limit=1&limit=2'), 400, 'BAD_REQUEST')
})

test('unsupported methods return 405 with Allow', async () => {
  for (const method of ['TRACE', 'OPTIONS', 'DELETE', 'PUT', 'PATCH', 'PROPFIND', 'QUERY']) {
    const rest = await ask(`${method} /v1/pets`)
    expectRestError(rest, 405, 'METHOD_NOT_SUPPORTED')
    expect(rest.headers.get('allow')).toBe('GET, HEAD, POST')
    const trpc = await ask(`${method} /trpc/listPets`)
    expectTrpcError(trpc, 405, 'METHOD_NOT_SUPPORTED')
    expect(trpc.headers.get('allow')).toBe('GET, HEAD, POST')
  }
  expect((await ask('GET /trpc/createPet')).headers.get('allow')).toBe('POST')
})

test('headers and parameters do not override the method', async () => {
  const override = [
    'X-HTTP-Method-Override: POST',
    'X-HTTP-Method: POST',
    'X-Method-Override: POST',
  ]
  const headers = ['Host: petstore.example', key, ...override]
  expect((await ask('GET /v1/pets?_method=POST', headers)).body).toBe('[]')
  expectTrpcError(await ask('GET /trpc/createPet', headers), 405, 'METHOD_NOT_SUPPORTED')
  const json = [...headers, 'Content-Type: application/json', 'Content-Length: 0']
  expectTrpcError(await ask('POST /trpc/listPets', json), 405, 'METHOD_NOT_SUPPORTED')
})

test('a request without exactly one valid Host returns 400', async () => {
  const wrong = [[], ['Host:'], ['Host: a', 'Host: b'], ['Host: a', 'Host: a'], ['Host: a b']]
  const invalid = ['[', 'a:65536', 'a:b', 'a/b', 'a?b', 'a#b', 'user@a', 'a\\b'].map((host) => [
    `Host: ${host}`,
  ])
  for (const hosts of [...wrong, ...invalid]) {
    expectRestError(await ask('GET /v1/pets', [...hosts, key]), 400, 'BAD_REQUEST')
    expectTrpcError(await ask('GET /trpc/listPets', [...hosts, key]), 400, 'BAD_REQUEST')
  }
  // Health checks often send no Host.
  for (const path of ['/healthz', '/readyz'])
    expect((await ask(`GET ${path}`, [])).status).toBe(200)
  const others = ['/', '/docs', '/docs/', '/docs/docs.css', '/v1/openapi.json', '/nothing']
  for (const path of others) {
    for (const hosts of [...wrong, ['Host: a/b']]) {
      expectRestError(await ask(`GET ${path}`, hosts), 400, 'BAD_REQUEST')
    }
  }
  for (const host of ['petstore.example', 'localhost:65535', '[::1]:3000', '10.0.0.1']) {
    expect((await ask('GET /v1/pets', [`Host: ${host}`, key])).status).toBe(200)
    expect((await ask('GET /trpc/listPets', [`Host: ${host}`, key])).status).toBe(200)
  }
})

test('a header whose value is the name of another header is not counted as that one', async () => {
  const others = ['X-Sorted-By: host', 'X-Removed: authorization']
  expect((await ask('GET /v1/pets', ['Host: a', ...others, key])).status).toBe(200)
})

test('the Host is checked before the API key', async () => {
  const wrong = `Authorization: Bearer petstore_${'A'.repeat(43)}`
  for (const keys of [[], [wrong]]) {
    expectRestError(await ask('GET /v1/pets', ['Host: a/b', ...keys]), 400, 'BAD_REQUEST')
    expectTrpcError(await ask('GET /trpc/listPets', keys), 400, 'BAD_REQUEST')
  }
})
