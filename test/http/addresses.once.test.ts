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

/** Checks the error of each request, by the surface of its path. */
async function expectErrors(status: number, code: string, lines: string[], headers?: string[]) {
  for (const line of lines) {
    const check = line.includes('/trpc/') ? expectTrpcError : expectRestError
    check(await ask(line, headers), status, code)
  }
}

test('a target in absolute form is served by its path (RFC 9112, section 3.2.2)', async () => {
  const rest = await ask('GET http://elsewhere.example/v1/pets')
  expect(rest).toMatchObject({ status: 200, body: '[]' })
  expect((await ask('GET https://elsewhere.example/trpc/listPets')).status).toBe(200)
  await expectErrors(400, 'BAD_REQUEST', ['GET http://elsewhere.example/v1/pets?limit=0'])
  const invalid = await ask('GET http://[/v1/pets')
  expectRefusal(invalid, 400, 'BAD_REQUEST')
  expect(JSON.parse(invalid.body).message).toBe('The URL of the request is not valid')
})

test('a query parameter behind a thousand others is read', async () => {
  const others = 'x&'.repeat(1_000)
  await expectErrors(400, 'BAD_REQUEST', [`GET /v1/pets?${others}limit=0`])
  await expectErrors(400, 'PARSE_ERROR', [`GET /trpc/getPet?${others}input=x`])
})

test('path traversal, in any encoding, and targets that are no path return 404', async () => {
  const paths = ['/v1/..%2fpets', '/v1/%2e%2e/v1/pets', '/v1//pets', '/v1/pets%2f1', '/V1/pets']
  const files = ['/../../package.json', '/..%2f..%2fpackage.json', '/%2e%2e/%2e%2e/package.json']
  const backslashes = ['/..\\..\\package.json', '/..%5c..%5cpackage.json', '/%00', '/index.html%00']
  const below = [...files, ...backslashes].map((file) => `/docs${file}`)
  const all = [...paths, ...below, '*', '//elsewhere.example/v1/pets'].map((path) => `GET ${path}`)
  await expectErrors(404, 'NOT_FOUND', ['OPTIONS *', ...all])
})

test('NUL and malformed percent-encoding return 400, or 404 from tRPC', async () => {
  const values = ['%00', '1%00', '%zz', '%', '%c0%af'].map((value) => `GET /v1/pets/${value}`)
  const queries = ['GET /v1/pets?status=%zz', 'GET /v1/pets?cursor=1%00']
  await expectErrors(400, 'BAD_REQUEST', ['GET /trpc/%zz', ...values, ...queries])
  await expectErrors(404, 'NOT_FOUND', ['GET /trpc/%00', 'GET /trpc//['])
  await expectErrors(400, 'PARSE_ERROR', ['GET /trpc/listPets?input=%zz'])
})

test('names of Object.prototype are neither procedures nor parameters', async () => {
  const names = ['__proto__', 'constructor', 'toString', 'constructor.name', '_def', '']
  await expectErrors(
    404,
    'NOT_FOUND',
    names.map((name) => `GET /trpc/${name}`),
  )
  expect((await ask('GET /v1/pets?__proto__=1&constructor=2&__proto__[limit]=0')).status).toBe(200)
  await expectErrors(400, 'BAD_REQUEST', ['GET /v1/pets?limit=1&limit=2'])
})

test('unsupported methods return 405 with Allow; nothing overrides the method', async () => {
  for (const method of ['TRACE', 'OPTIONS', 'DELETE', 'QUERY']) {
    for (const path of ['/v1/pets', '/trpc/listPets']) {
      await expectErrors(405, 'METHOD_NOT_SUPPORTED', [`${method} ${path}`])
      expect((await ask(`${method} ${path}`)).headers.get('allow')).toBe('GET, HEAD, POST')
    }
  }
  const override = ['X-HTTP-Method-Override: POST', 'X-HTTP-Method: POST']
  const headers = ['Host: petstore.example', key, ...override]
  expect((await ask('GET /v1/pets?_method=POST', headers)).body).toBe('[]')
  await expectErrors(405, 'METHOD_NOT_SUPPORTED', ['GET /trpc/createPet'], headers)
  expect((await ask('GET /trpc/createPet')).headers.get('allow')).toBe('POST')
})

const calls = ['GET /v1/pets', 'GET /trpc/listPets']
const unknownKey = `Authorization: Bearer petstore_${'A'.repeat(43)}`

test.for([
  ...[[], ['Host:'], ['Host: a', 'Host: b'], ['Host: a', 'Host: a'], ['Host: a b']],
  ...['[', 'a:65536', 'a:b', 'a/b', 'a?b', 'a#b', 'user@a', 'a\\b'].map((host) => [
    `Host: ${host}`,
  ]),
])(
  'without exactly one valid Host, a request returns 400, before its key is checked: %j',
  async (hosts) => {
    await expectErrors(400, 'BAD_REQUEST', calls, [...hosts, key])
    await expectErrors(400, 'BAD_REQUEST', [...calls, 'GET /docs/', 'GET /v1/openapi.json'], hosts)
    await expectErrors(400, 'BAD_REQUEST', calls, [...hosts, unknownKey])
    // Health checks often send no Host.
    expect((await ask('GET /healthz', hosts)).status).toBe(200)
  },
)

test('valid hosts are accepted, also beside headers whose value is the name of another header', async () => {
  const others = ['X-Sorted-By: host', 'X-Removed: authorization']
  for (const host of ['petstore.example', 'localhost:65535', '[::1]:3000', '10.0.0.1']) {
    for (const call of calls) {
      expect((await ask(call, [`Host: ${host}`, ...others, key])).status).toBe(200)
    }
  }
})
