/** Request targets, methods and Host headers that fetch does not send. */
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

test.for([
  ...['/../../package.json', '/%2e%2e/%2e%2e/package.json', '/..\\..\\package.json'].map(
    (file) => `GET /docs${file}`,
  ),
  ...['GET /v1/%2e%2e/v1/pets', 'GET *', 'OPTIONS *', 'GET //elsewhere.example/v1/pets'],
])('%s, which fetch would resolve or refuse, returns 404', (line) =>
  expectErrors(404, 'NOT_FOUND', [line]),
)

test('TRACE returns 405 with Allow', async () => {
  for (const path of ['/v1/pets', '/trpc/listPets']) {
    await expectErrors(405, 'METHOD_NOT_SUPPORTED', [`TRACE ${path}`])
    expect((await ask(`TRACE ${path}`)).headers.get('allow')).toBe('GET, HEAD, POST')
  }
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
