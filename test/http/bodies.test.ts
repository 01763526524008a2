/** Bodies and inputs that are too large, nested too deeply, or not what their headers say. */
import { setTimeout } from 'node:timers/promises'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import { afterEach, expect, onTestFinished, test } from 'vitest'
import {
  answerOf,
  type ErrorAnswer,
  expectRefusal,
  expectRestError,
  expectServing,
  expectTrpcError,
} from '../support/expect.ts'
import { converse, requestText } from '../support/raw.ts'
import { transformer } from '../support/router.ts'
import { serviceForFile, startService } from '../support/service.ts'

const MAX_BODY = 65_536

const service = await serviceForFile()
afterEach(() => expectServing(service))

type Body = string | Uint8Array | ReadableStream

/** Sends a POST, to REST unless another path is given. */
function post(body: Body, headers = {}, path = '/v1/pets'): Promise<ErrorAnswer> {
  const init = {
    method: 'POST',
    // The type of a view allows shared memory, which these bodies do not use.
    body: body as NonNullable<RequestInit['body']>,
    duplex: 'half', // a stream is sent in chunks, without a length
    headers,
  } as const
  return answerOf(service.fetch(path, init))
}

const postTrpc = (body: Body, headers = {}) => post(body, headers, '/trpc/createPet')
const get = (path: string) => answerOf(service.fetch(path))
const stream = (text: string) => new Blob([text]).stream()

/** A NewPet as JSON of exactly this many bytes. */
const petOf = (bytes: number) => {
  const json = '{"name":"Rex","categoryId":3,"more":""}'
  return json.replace('""', `"${'x'.repeat(bytes - json.length)}"`)
}

/** A NewPet of exactly this many bytes, as the tRPC client serializes it. */
const trpcPetOf = (bytes: number) => {
  const of = (more: string) =>
    JSON.stringify(transformer.serialize({ name: 'Rex', categoryId: 3, more }))
  return of('x'.repeat(bytes - of('').length))
}

test('a body of 64 KiB is accepted; one more byte returns 413, with and without Content-Length', async () => {
  for (const as of [(text: string) => text, stream]) {
    expect((await post(as(petOf(MAX_BODY)))).status).toBe(201)
    expectRestError(await post(as(petOf(MAX_BODY + 1))), 413, 'PAYLOAD_TOO_LARGE')
    expect((await postTrpc(as(trpcPetOf(MAX_BODY)))).status).toBe(200)
    expectTrpcError(await postTrpc(as(trpcPetOf(MAX_BODY + 1))), 413, 'PAYLOAD_TOO_LARGE')
  }
})

test.for([
  ['gzip', gzipSync],
  ['br', brotliCompressSync],
  ['gzip, gzip', (bytes: Buffer) => gzipSync(gzipSync(bytes))],
] as const)(
  'a body compressed with %s returns 415, zip bombs included',
  async ([encoding, compress]) => {
    const headers = { 'content-encoding': encoding }
    for (const body of [Buffer.from(petOf(100)), Buffer.alloc(5_000_000)]) {
      expectRestError(await post(compress(body), headers), 415, 'UNSUPPORTED_MEDIA_TYPE')
      expectTrpcError(await postTrpc(compress(body), headers), 415, 'UNSUPPORTED_MEDIA_TYPE')
    }
  },
)

test('Content-Encoding must be empty or identity', async () => {
  const json = petOf(100)
  for (const encoding of ['identity', 'Identity', '']) {
    const headers = { 'content-encoding': encoding }
    expect(await post(json, headers)).toMatchObject({ status: 201 })
    expect(await postTrpc(trpcPetOf(100), headers)).toMatchObject({ status: 200 })
  }
  for (const encoding of ['zstd', 'identity, identity', 'identity;']) {
    const headers = { 'content-encoding': encoding }
    expectRestError(await post(json, headers), 415, 'UNSUPPORTED_MEDIA_TYPE')
    expectTrpcError(await postTrpc(trpcPetOf(100), headers), 415, 'UNSUPPORTED_MEDIA_TYPE')
  }
})

test('Content-Type must be JSON in UTF-8', async () => {
  const json = petOf(100)
  for (const type of [
    'application/json',
    'Application/JSON; Charset="UTF-8"',
    'application/json;charset=utf-8',
    'application/json ; x=y',
    'application/json; odd',
    'application/json; charset=UTF8',
    'application/json; charset=unicode-1-1-utf-8',
  ]) {
    expect(await post(json, { 'content-type': type })).toMatchObject({ status: 201 })
    expect(await postTrpc(trpcPetOf(100), { 'content-type': type })).toMatchObject({ status: 200 })
  }
  for (const type of [
    'text/plain',
    'application/jsonl',
    'application/json; charset="latin1"',
    'application/json; charset=utf-16',
    'application/json; charset=utf-8; charset=utf-16',
    'application/problem+json',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
  ]) {
    const headers = { 'content-type': type }
    expectRestError(await post(json, headers), 415, 'UNSUPPORTED_MEDIA_TYPE')
    expectTrpcError(await postTrpc(trpcPetOf(100), headers), 415, 'UNSUPPORTED_MEDIA_TYPE')
  }
})

test.for<[string, string | Uint8Array]>([
  ['100,000 open brackets in 64 KiB', '['.repeat(MAX_BODY)],
  ['arrays in arrays', '['.repeat(30_000) + ']'.repeat(30_000)],
  ['objects in objects', `${'{"a":'.repeat(10_000)}1${'}'.repeat(10_000)}`],
  [
    'a field that is nested',
    `{"name":"a","categoryId":1,"b":${'['.repeat(30_000)}${']'.repeat(30_000)}}`,
  ],
  ['invalid UTF-8', Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x7d])],
  ['an overlong NUL', Buffer.from('{"name":"\xc0\x80","categoryId":1}', 'latin1')],
  ['a surrogate in UTF-8', Buffer.from('{"name":"\xed\xa0\x80","categoryId":1}', 'latin1')],
  ['UTF-16', Buffer.from('\ufeff{"name":"a","categoryId":1}', 'utf16le')],
  ['a control character', '{"name":"a\u0000b","categoryId":1}'],
  ['NaN', '{"name":"a","categoryId":NaN}'],
  ['a comment', '{"name":"a","categoryId":1} // more'],
  ['a trailing comma', '{"name":"a","categoryId":1,}'],
  ['single quotes', "{'name':'a','categoryId':1}"],
  ['a leading zero', '{"name":"a","categoryId":01}'],
  ['two values', '{"name":"a","categoryId":1}{}'],
  ['an incomplete object', '{"name":"a","categoryId":1'],
  ['a blank', ' '],
])('a body with %s is invalid JSON, on REST and on tRPC', async ([, body]) => {
  expectRestError(await post(body), 400, 'PARSE_ERROR')
  expectTrpcError(await postTrpc(body), 400, 'PARSE_ERROR')
})

test('an empty body in chunks is a missing body', async () => {
  const lines = [
    'POST /v1/pets HTTP/1.1',
    'Host: petstore.example',
    `Authorization: Bearer ${service.key}`,
    'Content-Type: application/json',
    'Transfer-Encoding: chunked',
  ]
  const { answers } = await converse(service.origin, `${lines.join('\r\n')}\r\n\r\n0\r\n\r\n`)
  expect(answers[0]?.body).toContain('The body is missing')
})

test('a body that arrives slowly takes no time of DATABASE_TIMEOUT', async () => {
  const { fetch, logged, stop } = await startService({ DATABASE_TIMEOUT: '1s' })
  onTestFinished(stop)
  const post = async (path: string, body: string) => {
    const parts = ReadableStream.from(slowly(body))
    return await fetch(path, { method: 'POST', body: parts, duplex: 'half' })
  }
  const answers = await Promise.all([
    post('/v1/pets', '{"name":"Rex","categoryId":3}'),
    post('/trpc/createPet', '"[{\\"name\\":1,\\"categoryId\\":2},\\"Rex\\",3]"'),
  ])
  expect(answers.map(({ status }) => status)).toEqual([201, 200])
  expect(logged.filter((line) => JSON.parse(line).level !== 'info')).toEqual([])
})

async function* slowly(text: string) {
  yield Buffer.from(text.slice(0, 5))
  await setTimeout(1_500)
  yield Buffer.from(text.slice(5))
}

test('a body needs a Content-Type, and a Content-Type without a body is checked, too', async () => {
  for (const [path, body, check] of [
    ['/v1/pets', petOf(100), expectRestError],
    ['/trpc/createPet', trpcPetOf(100), expectTrpcError],
  ] as const) {
    const length = `Content-Length: ${body.length}`
    const untyped = requestText(`POST ${path}`, { key: service.key, headers: [length] }) + body
    const [answer] = (await converse(service.origin, untyped)).answers
    check(answer as ErrorAnswer, 415, 'UNSUPPORTED_MEDIA_TYPE')
    const empty = { method: 'POST', headers: { 'content-type': 'text/plain' } }
    check(await answerOf(service.fetch(path, empty)), 415, 'UNSUPPORTED_MEDIA_TYPE')
  }
})

test('100,000 open brackets return an error in body, query and input', async () => {
  const brackets = '['.repeat(100_000)
  expectRestError(await post(brackets), 413, 'PAYLOAD_TOO_LARGE')
  expectTrpcError(await postTrpc(brackets), 413, 'PAYLOAD_TOO_LARGE')
  expectRefusal(await get(`/v1/pets?cursor=${brackets}`), 431, 'BAD_REQUEST')
  expectRefusal(await get(`/trpc/listPets?input=${brackets}`), 431, 'BAD_REQUEST')
  const fitting = '['.repeat(15_000)
  expectRestError(await get(`/v1/pets?cursor=${fitting}`), 400, 'BAD_REQUEST')
  expectTrpcError(await get(`/trpc/listPets?input=${fitting}`), 400, 'PARSE_ERROR')
  expectTrpcError(await get(`/trpc/listPets?input="${fitting}"`), 400, 'PARSE_ERROR')
  expectTrpcError(await get(`/trpc/listPets?batch=1&input={"0":${fitting}`), 400, 'PARSE_ERROR')
})

test('__proto__ and constructor in JSON are data, and ignored', async () => {
  const inherited = '{"__proto__":{"name":"Rex","categoryId":3}}'
  expectRestError(await post(inherited), 400, 'BAD_REQUEST')
  const polluting =
    '{"name":"Rex","categoryId":3,"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}'
  const made = await post(polluting)
  expect(made.status).toBe(201)
  expect(Object.keys(JSON.parse(made.body))).toEqual(['id', 'name', 'categoryId', 'status'])
  expect(Object.prototype).not.toHaveProperty('polluted')
  for (const value of ['__proto__', 'constructor', 'toString', 'hasOwnProperty']) {
    const body = JSON.stringify({ name: value, categoryId: 3, status: value })
    expectRestError(await post(body), 400, 'BAD_REQUEST')
  }
})

test('devalue accepts nesting beyond the limit of JSON, because it encodes a flat list', async () => {
  const more: unknown = JSON.parse('['.repeat(501) + ']'.repeat(501))
  const input = transformer.serialize({ name: 'Rex', categoryId: 3, more })
  expect((await postTrpc(JSON.stringify(input))).status).toBe(200)
})

test('the last of duplicate keys in JSON wins', async () => {
  const made = await post('{"name":1,"name":"first","name":"last","categoryId":3}')
  expect(JSON.parse(made.body)).toMatchObject({ name: 'last' })
  const stored = await service.rest('GET', `/pets/${JSON.parse(made.body).id}`)
  expect(stored.body).toMatchObject({ name: 'last' })
})

test('a lone surrogate returns 400; a surrogate pair and a byte order mark are accepted', async () => {
  for (const half of ['\\ud83d', '\\udc36', '\\udc36\\ud83d', 'a\\ud83db']) {
    expectRestError(await post(`{"name":"${half}","categoryId":3}`), 400, 'BAD_REQUEST')
    const input = JSON.stringify(`[{"name":1,"categoryId":2},"${half}",3]`)
    expectTrpcError(await postTrpc(input), 400, 'BAD_REQUEST')
  }
  const made = await post('\ufeff{"name":"\\ud83d\\udc36","categoryId":3}')
  expect(JSON.parse(made.body)).toMatchObject({ name: '🐶' })
})

const numbers = (count: number) => Array.from({ length: count }, (_, index) => index + 1)

test('devalue: an input nested 6,000 deep returns 400', async () => {
  const text = `[${numbers(6_000).map((next) => `[${next}]`)},1]`
  const rejected = await postTrpc(JSON.stringify(text))
  // The code depends on the stack that compiled code takes: the input overflows it, or is parsed
  // and is no pet.
  const code = rejected.body.includes('PARSE_ERROR') ? 'PARSE_ERROR' : 'BAD_REQUEST'
  expectTrpcError(rejected, 400, code)
})

test.for<[string, string]>([
  ['an unknown type', '[["Secret",1]]'],
  ['a prototype', '[{"__proto__":1},{"name":2},"Rex"]'],
  ['a huge typed array', '[["Float64Array",4294967295]]'],
  ['a view beyond its buffer', '[["Float64Array",1,0,4294967295],["ArrayBuffer","AAAA"]]'],
  ['a cycle of boxed objects', '[["Object",0]]'],
  ['an index beyond the end', '[[7]]'],
  ['a sparse array of an invalid length', '[[-7,1e300,0,1]]'],
  ['an invalid integer', '[["BigInt","1e9"]]'],
  ['an invalid regular expression', '[["RegExp","("]]'],
])('devalue: %s is a parse error', async ([, text]) => {
  expectTrpcError(await postTrpc(JSON.stringify(text)), 400, 'PARSE_ERROR')
  const query = encodeURIComponent(JSON.stringify(text))
  if (query.length < 15_000) {
    expectTrpcError(await get(`/trpc/listPets?input=${query}`), 400, 'PARSE_ERROR')
  }
})

test.for<[string, string]>([
  ['a sparse array of 4,294,967,295 elements', '[{"name":1,"categoryId":2},[-7,4294967295],3]'],
  [
    'an integer of 60,000 digits',
    `[{"name":1,"categoryId":2},"Rex",["BigInt","${'9'.repeat(60_000)}"]]`,
  ],
  ['a boxed string', '[{"name":1,"categoryId":2},["Object",3],4,"Rex",1]'],
  ['an invalid date', '[["Date","never"]]'],
  ['a typed array', '[["Uint8Array",1],["ArrayBuffer","AAAA"]]'],
  [
    'a regular expression with catastrophic backtracking',
    '[{"name":1,"categoryId":2},["RegExp","(a+)+$"],3]',
  ],
])('devalue: %s is not a valid pet', async ([, text]) => {
  expectTrpcError(await postTrpc(JSON.stringify(text)), 400, 'BAD_REQUEST')
})

test.for<[string, string]>([
  ['a cycle', '[[0]]'],
  ['a cycle in fields', '[{"name":0,"categoryId":0}]'],
  [
    'doubling references',
    `[{"name":1,"categoryId":1},${numbers(40).map((n) => `[${n + 1},${n + 1}]`)},1]`,
  ],
])('devalue: %s is too large', async ([, text]) => {
  expectTrpcError(await postTrpc(JSON.stringify(text)), 413, 'PAYLOAD_TOO_LARGE')
})
