/** Bodies and inputs that are too large, nested too deeply, or not what their headers say. */
import { setTimeout } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { afterEach, expect, onTestFinished, test } from 'vitest'
import type { Pet } from '../../src/petstore/pets/schema.ts'
import {
  answerOf,
  expectRefusal,
  expectRestError,
  expectServing,
  expectTrpcError,
} from '../support/expect.ts'
import { newPet } from '../support/pets.ts'
import { converse, type RawAnswer, requestText } from '../support/raw.ts'
import { parseExact } from '../support/rest.ts'
import { transformer } from '../support/router.ts'
import { serviceForFile, startService } from '../support/service.ts'

const MAX_BODY = 65_536

const service = await serviceForFile()
afterEach(() => expectServing(service))

type Body = string | Uint8Array | ReadableStream

/** Sends a POST, to REST unless another path is given. */
function post(body: Body, headers = {}, path = '/v1/pets'): Promise<RawAnswer> {
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

/** A NewPet of exactly this many bytes, as JSON and as the tRPC client serializes it. */
const padded = (of: (more: string) => string) => (bytes: number) =>
  of('x'.repeat(bytes - of('').length))
const petOf = padded((more) => JSON.stringify({ name: 'Rex', categoryId: 3, more }))
const trpcPetOf = padded((more) =>
  JSON.stringify(transformer.serialize({ name: 'Rex', categoryId: 3, more })),
)

/** Checks the statuses of a creation with these headers, or its errors, on both surfaces. */
async function expectCreated(headers: Record<string, string>) {
  expect((await post(petOf(100), headers)).status).toBe(201)
  expect((await postTrpc(trpcPetOf(100), headers)).status).toBe(200)
}
async function expectUnsupported(headers: Record<string, string>, body?: Uint8Array) {
  expectRestError(await post(body ?? petOf(100), headers), 415, 'UNSUPPORTED_MEDIA_TYPE')
  expectTrpcError(await postTrpc(body ?? trpcPetOf(100), headers), 415, 'UNSUPPORTED_MEDIA_TYPE')
}

test('a body of 64 KiB is accepted; one more byte returns 413, with and without Content-Length', async () => {
  for (const as of [(text: string) => text, (text: string) => new Blob([text]).stream()]) {
    expect((await post(as(petOf(MAX_BODY)))).status).toBe(201)
    expectRestError(await post(as(petOf(MAX_BODY + 1))), 413, 'PAYLOAD_TOO_LARGE')
    expect((await postTrpc(as(trpcPetOf(MAX_BODY)))).status).toBe(200)
    expectTrpcError(await postTrpc(as(trpcPetOf(MAX_BODY + 1))), 413, 'PAYLOAD_TOO_LARGE')
  }
})

test('a body that arrives in more pieces than are kept apart is whole', async () => {
  const pieces = ReadableStream.from(
    (async function* () {
      for (const letter of petOf(300)) {
        yield Buffer.from(letter)
        await new Promise(setImmediate) // each is a packet
      }
    })(),
  )
  expect((await post(pieces)).status).toBe(201)
})

test('a body must not be compressed', async () => {
  for (const encoding of ['identity', 'Identity', '']) {
    await expectCreated({ 'content-encoding': encoding })
  }
  for (const encoding of ['gzip', 'zstd', 'identity, identity']) {
    await expectUnsupported({ 'content-encoding': encoding })
  }
  await expectUnsupported({ 'content-encoding': 'gzip' }, gzipSync(Buffer.alloc(5_000_000)))
})

test('Content-Type must be JSON in UTF-8', async () => {
  for (const type of [
    'Application/JSON; Charset="UTF-8"',
    'application/json ; x=y',
    'application/json; odd',
    'application/json; charset=UTF8',
    'application/json; charset=unicode-1-1-utf-8',
  ]) {
    await expectCreated({ 'content-type': type })
  }
  for (const type of [
    'text/plain',
    'application/jsonl',
    'application/json; charset="latin1"',
    'application/json; charset=utf-8; charset=utf-16',
    'multipart/form-data; boundary=x',
  ]) {
    await expectUnsupported({ 'content-type': type })
  }
})

test('a body needs a Content-Type, and a Content-Type without a body is checked, too', async () => {
  for (const [path, body, check] of [
    ['/v1/pets', petOf(100), expectRestError],
    ['/trpc/createPet', trpcPetOf(100), expectTrpcError],
  ] as const) {
    const length = `Content-Length: ${body.length}`
    const untyped = requestText(`POST ${path}`, { key: service.key, headers: [length] }) + body
    const [answer] = (await converse(service.origin, untyped)).answers
    check(answer as RawAnswer, 415, 'UNSUPPORTED_MEDIA_TYPE')
    const empty = { method: 'POST', headers: { 'content-type': 'text/plain' } }
    check(await answerOf(service.fetch(path, empty)), 415, 'UNSUPPORTED_MEDIA_TYPE')
  }
})

test('an empty body in chunks is a missing body', async () => {
  const headers = ['Content-Type: application/json', 'Transfer-Encoding: chunked']
  const sent = `${requestText('POST /v1/pets', { key: service.key, headers })}0\r\n\r\n`
  const { answers } = await converse(service.origin, sent)
  expect(answers[0]?.body).toContain('The body is missing')
})

test.for<[string, string | Uint8Array]>([
  ['invalid UTF-8', Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x7d])],
  ['a surrogate in UTF-8', Buffer.from('{"name":"\xed\xa0\x80","categoryId":1}', 'latin1')],
  ['two byte order marks', '\ufeff\ufeff{"name":"a","categoryId":1}'],
  ['a control character', '{"name":"a\u0000b","categoryId":1}'],
  ['NaN', '{"name":"a","categoryId":NaN}'],
  ['a leading zero', '{"name":"a","categoryId":01}'],
  ['two values', '{"name":"a","categoryId":1}{}'],
  ['a blank', ' '],
])('a body with %s is invalid JSON, on REST and on tRPC', async ([, body]) => {
  for (const answer of [await post(body), await postTrpc(body)]) {
    const isText = typeof body === 'string'
    expect(answer.body).toContain(isText ? 'its JSON cannot be read' : 'its body must be UTF-8')
  }
  expectRestError(await post(body), 400, 'PARSE_ERROR')
  expectTrpcError(await postTrpc(body), 400, 'PARSE_ERROR')
})

test('a field that is ignored may be as deep as a body is long', async () => {
  const deep = '['.repeat(30_000) + ']'.repeat(30_000)
  expect((await post(`{"name":"a","categoryId":1,"b":${deep}}`)).status).toBe(201)
})

test('a lone surrogate returns 400; a surrogate pair and a byte order mark are accepted', async () => {
  for (const half of ['\\ud83d', '\\udc36\\ud83d']) {
    expectRestError(await post(`{"name":"${half}","categoryId":3}`), 400, 'BAD_REQUEST')
    const input = JSON.stringify(`[{"name":1,"categoryId":2},"${half}",3]`)
    expectTrpcError(await postTrpc(input), 400, 'BAD_REQUEST')
  }
  const made = await post('\ufeff{"name":"\\ud83d\\udc36","categoryId":3}')
  expect(JSON.parse(made.body)).toMatchObject({ name: '🐶' })
})

test('a body that arrives slowly takes no time of DATABASE_TIMEOUT', async () => {
  const { fetch, stop } = await startService({ DATABASE_TIMEOUT: '500ms' })
  onTestFinished(stop)
  async function* slowly(text: string) {
    yield Buffer.from(text.slice(0, 5))
    await setTimeout(600)
    yield Buffer.from(text.slice(5))
  }
  const statuses = [
    ['/v1/pets', petOf(100)],
    ['/trpc/createPet', trpcPetOf(100)],
  ].map(async ([path, body]) => {
    const parts = ReadableStream.from(slowly(`${body}`))
    return (await fetch(`${path}`, { method: 'POST', body: parts, duplex: 'half' })).status
  })
  expect(await Promise.all(statuses)).toEqual([201, 200])
})

test('15,000 open brackets return an error in query and input', async () => {
  const brackets = '['.repeat(15_000)
  expectRestError(await get(`/v1/pets?cursor=${brackets}`), 400, 'BAD_REQUEST')
  expectTrpcError(await get(`/trpc/listPets?input="${brackets}"`), 400, 'PARSE_ERROR')
  expectTrpcError(await get(`/trpc/listPets?batch=1&input={"0":${brackets}`), 400, 'PARSE_ERROR')
  expectRefusal(await get(`/v1/pets?cursor=${'['.repeat(20_000)}`), 431, 'BAD_REQUEST')
})

test('__proto__ and constructor in JSON are data, and ignored; the last of duplicate keys wins', async () => {
  const inherited = '{"__proto__":{"name":"Rex","categoryId":3}}'
  expectRestError(await post(inherited), 400, 'BAD_REQUEST')
  const made = await post(
    '{"name":1,"name":"last","categoryId":3,"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}',
  )
  expect(made.status).toBe(201)
  const { id, ...last } = parseExact(made.body) as Pet
  expect(last).toEqual({ ...newPet({ name: 'last' }), categoryId: 3 })
  expect(id).toEqual(expect.any(Number))
  expect(Object.prototype).not.toHaveProperty('polluted')
  const status = JSON.stringify({ name: 'a', categoryId: 3, status: 'toString' })
  expectRestError(await post(status), 400, 'BAD_REQUEST')
})

const numbers = (count: number) => Array.from({ length: count }, (_, index) => index + 1)

test.for<[what: string, status: number, code: string, text: string]>([
  ['an unknown type', 400, 'PARSE_ERROR', '[["Secret",1]]'],
  ['a prototype', 400, 'PARSE_ERROR', '[{"__proto__":1},{"name":2},"Rex"]'],
  ['a huge typed array', 400, 'PARSE_ERROR', '[["Float64Array",4294967295]]'],
  ['a cycle of boxed objects', 400, 'PARSE_ERROR', '[["Object",0]]'],
  ['an index beyond the end', 400, 'PARSE_ERROR', '[[7]]'],
  ['a sparse array', 400, 'BAD_REQUEST', '[{"name":1,"categoryId":2},[-7,4294967295],3]'],
  [
    'an integer of 60,000 digits',
    400,
    'BAD_REQUEST',
    `[{"name":1,"categoryId":2},"Rex",["BigInt","${'9'.repeat(60_000)}"]]`,
  ],
  ['a boxed string', 400, 'BAD_REQUEST', '[{"name":1,"categoryId":2},["Object",3],4,"Rex",1]'],
  ['an invalid date', 400, 'BAD_REQUEST', '[["Date","never"]]'],
  ['a cycle', 413, 'PAYLOAD_TOO_LARGE', '[[0]]'],
  ['a cycle in fields', 413, 'PAYLOAD_TOO_LARGE', '[{"name":0,"categoryId":0}]'],
  [
    'doubling references',
    413,
    'PAYLOAD_TOO_LARGE',
    `[{"name":1,"categoryId":1},${numbers(40).map((n) => `[${n + 1},${n + 1}]`)},1]`,
  ],
])('devalue: %s returns %i %s', async ([, status, code, text]) => {
  expectTrpcError(await postTrpc(JSON.stringify(text)), status, code)
})

test('devalue: an input nested 6,000 deep returns 400; 501 deep is accepted', async () => {
  const rejected = await postTrpc(
    JSON.stringify(`[${numbers(6_000).map((next) => `[${next}]`)},1]`),
  )
  // The code depends on the stack that compiled code takes: the input overflows it, or is no pet.
  const code = rejected.body.includes('PARSE_ERROR') ? 'PARSE_ERROR' : 'BAD_REQUEST'
  expectTrpcError(rejected, 400, code)
  const more: unknown = JSON.parse('['.repeat(501) + ']'.repeat(501))
  const input = transformer.serialize({ name: 'Rex', categoryId: 3, more })
  expect((await postTrpc(JSON.stringify(input))).status).toBe(200)
})
