/** Both surfaces agree on requests that fail before input validation: keys, bodies, encodings. */
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ofRest, ofTrpc } from '../support/outcome.ts'
import { type Service, startService, trpcClient } from '../support/service.ts'

/** The limit of a body in bytes. */
const MAX_BODY = 65_536

let service: Service
beforeAll(async () => {
  service = await startService()
})
afterAll(() => service.stop())

const unknownKey = `petstore_${'A'.repeat(43)}`

/** The key with the case of each letter of its secret inverted. */
const inAnotherCase = (key: string) =>
  key.replaceAll(/(?<=_.*)[a-z]/gi, (letter) =>
    letter === letter.toLowerCase() ? letter.toUpperCase() : letter.toLowerCase(),
  )

const spellings: [title: string, header: (key: string) => string | undefined, valid: boolean][] = [
  ['Bearer', (key) => `Bearer ${key}`, true],
  ['bearer', (key) => `bearer ${key}`, true],
  ['BEARER', (key) => `BEARER ${key}`, true],
  ['two spaces', (key) => `Bearer  ${key}`, true],
  ['no header', () => undefined, false],
  ['empty', () => '', false],
  ['the scheme alone', () => 'Bearer', false],
  ['no scheme', (key) => key, false],
  ['no space', (key) => `Bearer${key}`, false],
  ['a tab', (key) => `Bearer\t${key}`, false],
  ['Basic', (key) => `Basic ${key}`, false],
  ['after another scheme', (key) => `Token Bearer ${key}`, false],
  ['quoted', (key) => `Bearer "${key}"`, false],
  ['two keys', (key) => `Bearer ${key}, Bearer ${key}`, false],
  ['one character too long', (key) => `Bearer ${key}A`, false],
  ['one character too short', (key) => `Bearer ${key.slice(0, -1)}`, false],
  ['upper case', (key) => `Bearer ${key.toUpperCase()}`, false],
  ['inverted case', (key) => `Bearer ${inAnotherCase(key)}`, false],
  ['unknown', () => `Bearer ${unknownKey}`, false],
  ['not the format of a key', () => 'Bearer abc.def~+/==', false],
  ['not ASCII', () => 'Bearer schlüssel', false],
]

test.each(spellings)('the key, %s', async (_, header, valid) => {
  const authorization = header(service.key)
  const answers = await Promise.all([
    service.rest('GET', '/pets', { headers: { authorization } }),
    service.rest('POST', '/pets', { headers: { authorization }, body: '{"name":"Rex",' }),
    service.rest('GET', '/pets/none', { headers: { authorization } }),
  ])
  expect(answers.map(({ status }) => status)).toEqual(valid ? [200, 400, 400] : [401, 401, 401])
  const seen: (string | null)[] = []
  const client = trpcClient(service.origin, '', async (url, { headers: _, ...init } = {}) => {
    const answer = await fetch(url, {
      ...init,
      ...(authorization !== undefined && { headers: { authorization } }),
    })
    seen.push(answer.headers.get('www-authenticate'))
    return answer
  })
  const trpc = await ofTrpc(client.listPets.query())
  if (valid) {
    expect(trpc).toEqual({ output: [] })
    expect(seen).toEqual([null])
    return
  }
  const challenge = authorization === undefined ? 'Bearer' : 'Bearer error="invalid_token"'
  for (const { headers, body } of answers) {
    expect(headers.get('www-authenticate')).toBe(challenge)
    expect(body).toEqual(trpc)
  }
  expect(trpc).toMatchObject({ code: 'UNAUTHORIZED', status: 401 })
  expect(seen).toEqual([challenge])
})

const body = '{"name":"Rex","categoryId":3}'
const bytes = (text: string) => new Uint8Array(Buffer.from(text, 'latin1'))

type Sent = [
  title: string,
  body: string | Uint8Array,
  code: string,
  headers?: Record<string, string>,
]
const bodies: Sent[] = [
  ['an opening brace alone', '{', 'PARSE_ERROR'],
  ['a trailing comma', '{"name":"Rex","categoryId":3,}', 'PARSE_ERROR'],
  ['single quotes', "{'name':'Rex','categoryId':3}", 'PARSE_ERROR'],
  ['two JSON texts', '{} {}', 'PARSE_ERROR'],
  ['NaN', '{"name":"Rex","categoryId":NaN}', 'PARSE_ERROR'],
  ['a leading zero', '{"name":"Rex","categoryId":03}', 'PARSE_ERROR'],
  ['not UTF-8', bytes('{"name":"Zo\xeb","categoryId":3}'), 'PARSE_ERROR'],
  [
    'half an encoded surrogate pair',
    bytes('{"name":"\xed\xa0\xbd","categoryId":3}'),
    'PARSE_ERROR',
  ],
  ['UTF-16', new Uint8Array(Buffer.from(body, 'utf16le')), 'PARSE_ERROR'],
  ['nested too deeply', '['.repeat(60_000), 'PARSE_ERROR'],
  ['one byte beyond the limit', body.padEnd(MAX_BODY + 1), 'PAYLOAD_TOO_LARGE'],
  ['ten times the limit', body.padEnd(MAX_BODY * 10), 'PAYLOAD_TOO_LARGE'],
  ['text', body, 'UNSUPPORTED_MEDIA_TYPE', { 'content-type': 'text/plain' }],
  [
    'a form',
    'name=Rex',
    'UNSUPPORTED_MEDIA_TYPE',
    { 'content-type': 'application/x-www-form-urlencoded' },
  ],
  [
    'multipart',
    '--x--',
    'UNSUPPORTED_MEDIA_TYPE',
    { 'content-type': 'multipart/form-data; boundary=x' },
  ],
  [
    'another type of JSON',
    body,
    'UNSUPPORTED_MEDIA_TYPE',
    { 'content-type': 'application/problem+json' },
  ],
  [
    'another character set',
    body,
    'UNSUPPORTED_MEDIA_TYPE',
    { 'content-type': 'application/json; charset=latin1' },
  ],
  ['an invalid content type', body, 'UNSUPPORTED_MEDIA_TYPE', { 'content-type': 'json' }],
  [
    'compressed',
    new Uint8Array(gzipSync(body)),
    'UNSUPPORTED_MEDIA_TYPE',
    { 'content-encoding': 'gzip' },
  ],
]

describe('a body:', () => {
  test.each(bodies)('%s', async (_, sent, code, headers) => {
    const rest = await ofRest(
      'createPet',
      service.rest('POST', '/pets', { body: sent, ...(headers && { headers }) }),
    )
    const client = trpcClient(service.origin, service.key, (url, init) =>
      fetch(url, {
        ...init,
        body: typeof sent === 'string' ? sent : new Uint8Array(sent),
        headers: { ...(init?.headers as Record<string, string>), ...headers },
      }),
    )
    expect(await ofTrpc(client.createPet.mutate({ name: 'Rex', categoryId: 3 }))).toEqual(rest)
    const statuses = { PARSE_ERROR: 400, PAYLOAD_TOO_LARGE: 413, UNSUPPORTED_MEDIA_TYPE: 415 }
    expect(rest).toMatchObject({ code, status: statuses[code as keyof typeof statuses] })
    expect(await service.trpc.listPets.query()).toEqual([])
  })
})
