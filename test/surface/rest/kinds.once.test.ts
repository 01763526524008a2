/** Every type of value that a schema may have, in a URL, in a request body, in a response and in a link. */
import { inspect } from 'node:util'
import { Validator } from '@seriousme/openapi-schema-validator'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { dateTimeInput, int64Input, int64Output } from '../../../src/procedure/fields.ts'
import { paged, pagingInputs } from '../../../src/procedure/paging.ts'
import { router } from '../../../src/procedure/procedure.ts'
import { write, writeIdempotent } from '../../../src/procedure/write.ts'
import { described, procedure, resourcesOf } from '../../support/procedures.ts'
import type { KeyedInit } from '../../support/rest.ts'
import { keys, serviceForFile, trpcClient } from '../../support/service.ts'

const date = dateTimeInput({ description: 'A time.' })
const great = int64Input({ description: 'Of 64 bits.' })
const long = int64Output({ description: 'Of 64 bits.' })

/** The types that a URL can hold; `text` is in the path. */
const InAddress = z.object({
  text: z.string(),
  long: great.optional(),
  whole: z.int().optional(),
  number: z.number().optional(),
  flag: z.boolean().optional(),
  time: date.optional(),
  word: z.enum(['one', 'two']).optional(),
  usual: z.int().default(7),
  words: z.array(z.enum(['one', 'two'])).optional(),
  longs: z.array(great).max(2, 'are too many').optional(),
  only: z.literal('two').optional(),
  double: z
    .preprocess((value) => (typeof value === 'number' ? value * 2 : value), z.int())
    .optional(),
})
const InBody = z
  .object({
    ...InAddress.shape,
    text: z.string().optional(),
    list: z.array(z.int()).optional(),
    longs: z.array(great).optional(),
    counts: z.record(z.string(), great).optional(),
    exactly: z.literal(['one', 1, true, null]).optional(),
    perhaps: z.int().nullable().optional(),
    perhapsLong: great.nullable().optional(),
    inner: z.object({ time: date.optional(), long: great }).optional(),
  })
  .meta({ id: 'InBody' })
const Seen = z.object({ seen: z.string() }).meta({ id: 'Seen' })
const example = { seen: 'it' }

const Note = z.object({ label: z.string() }).meta({ id: 'Note' })
const note = { label: 'a' }
const Order = z.object({ id: long, note: z.string() }).meta({ id: 'Order' })

const deprecated = {
  since: new Date('2026-11-20T00:00:00.999Z'), // the header has seconds
  sunset: new Date('2030-12-05'),
  successor: '/see',
} as const

const removed: object[] = []
const see = async ({ input }: { input: object }) => ({
  seen: inspect(input, { breakLength: Number.POSITIVE_INFINITY, depth: 9 }),
})
const served = router({
  address: procedure
    .meta(described('GET', '/see.it/{text}/(x)', { example }))
    .input(InAddress)
    .output(Seen)
    .query(see),
  body: procedure
    .meta(described('PUT', '/see', { example, exampleInput: { usual: 8 } }))
    .input(InBody)
    .output(Seen)
    .mutation(({ ctx, input }) => write(ctx, () => see({ input }))),
  make: procedure
    .meta(
      described('POST', '/shops/{shop}/notes', {
        creates: '/shops/{shop}/notes/{label}',
        takesKey: true,
        conflict: 'This note exists',
        example: note,
        exampleInput: note,
        inputId: 'NewNote',
      }),
    )
    .input(z.object({ shop: z.string() }))
    .input(z.object({ label: z.string() }))
    .output(Note)
    .mutation(({ ctx, input: { label } }) =>
      writeIdempotent(ctx, async () => ({ label: label.toLowerCase() })),
    ),
  remove: procedure
    .meta(described('DELETE', '/shops/{shop}/notes/{label}', { deprecated }))
    .input(z.object({ shop: z.string(), label: z.string(), whole: z.boolean().optional() }))
    .output(z.void())
    .mutation(({ ctx, input }) =>
      write(ctx, async () => {
        removed.push(input)
      }),
    ),
  mark: procedure
    .meta(described('PUT', '/shops/{shop}/mark', {}))
    .input(z.object({ shop: z.string() }))
    .output(z.void())
    .mutation(({ ctx }) => write(ctx, async () => {})),
  search: procedure
    .meta(described('POST', '/search', { example, exampleInput: { longs: [1] } }))
    .input(z.object({ longs: z.array(great) }).meta({ id: 'Search' }))
    .output(Seen)
    .query(see),
  orders: procedure
    .meta(
      described('GET', '/shops/{shop}/orders', {
        isPaged: true,
        deprecated,
        example: [{ id: 2n ** 63n - 1n, note: 'soon' }],
      }),
    )
    .input(
      z.object({
        shop: z.string(),
        ...pagingInputs('orders'),
        'note[is]': z.string().optional(),
        flag: z.boolean().optional(),
        marks: z.array(z.string()).optional(),
      }),
    )
    .output(paged(z.array(Order).meta({ id: 'Orders' })))
    .query(async ({ input: { shop, limit, cursor = 0n } }) => {
      const ids = Array.from({ length: limit }, (_, index) => cursor + BigInt(index) + 1n)
      return { items: ids.map((id) => ({ id, note: shop })), next: ids.at(-1) }
    }),
})

const service = await serviceForFile({}, { resources: resourcesOf(served) })

const ask = (path: string, init: KeyedInit = {}) => service.fetch(`/v1${path}`, init)

/** The input that a procedure received, or the names of the fields that were rejected. */
async function seen(answer: Promise<Response>): Promise<string> {
  const { status } = await answer
  // The body is either the output or the Error.
  const { seen, message } = (await (await answer).json()) as { seen: string; message: string }
  if (status === 200) return seen
  expect(status).toBe(400)
  return `no ${message.split('; ').map((mistake) => mistake.split(' ')[0])}`
}

/** Texts that are not a date-time of RFC 3339, or that a Date cannot represent. */
const wrongTimes = [
  ...['', '2026-01-02', '2026-01-02T03:04:05', '2026-01-02T03:04Z', '2026-01-02 03:04:05Z'],
  ...['1767323045', 'x2026-01-02T03:04:05Z', '2026-01-02T03:04:05Z\n', '2026-01-02T03:04:05+0200'],
  // Longer than the document allows; a year of five digits.
  ...['2026-01-02T03:04:05.Z', '2026-01-02T03:04:05.1234567890+00:00', '+010000-01-01T00:00:00Z'],
  // Days and hours that do not exist.
  ...[
    '2026-13-02T03:04:05Z',
    '2026-00-02T03:04:05Z',
    '2026-02-31T00:00:00Z',
    '2026-02-29T00:00:00Z',
  ],
  ...['1900-02-29T00:00:00Z', '2026-04-31T00:00:00+01:00', '2026-01-00T00:00:00Z'],
  ...['2026-01-02T24:00:00Z', '2026-01-02T03:60:00Z', '2026-01-02T03:04:05+24:00'],
  // Leap seconds; the first one existed. In UTC the last ones have years of five digits, or negative ones.
  ...['2016-12-31T23:59:60Z', '2026-01-02T03:04:60Z', '2026-01-02T03:04:05+01:60'],
  ...['9999-12-31T23:59:59-23:59', '0000-01-01T00:00:00+00:01'],
]

/** A field, its texts with the accepted value of each, and its texts that are rejected. */
type Texts = [field: string, accepted: Record<string, string>, rejected?: string[]]

const inQuery = (...[field, accepted, rejected = []]: Texts) => [
  ...Object.entries(accepted).map(([text, value]) => [
    `${field}=${text}`,
    `{ text: 'a', ${field}: ${value}, usual: 7 }`,
  ]),
  ...rejected.map((text) => [`${field}=${text}`, `no ${field}`]),
]

test.each([
  ['', "{ text: 'a', usual: 7 }"],
  ['unknown=1&text=b', "{ text: 'a', usual: 7 }"],
  ['long=7&long=8', 'no long'],
  ...inQuery(
    'long',
    {
      '7': '7n',
      '-7': '-7n',
      '007': '7n',
      '9223372036854775807': '9223372036854775807n',
      '-9223372036854775808': '-9223372036854775808n',
    },
    ['', '%2B7', '7.0', '7e0', '0x7', '%207', '7%20', '9223372036854775808', 'NaN', '٧'],
  ),
  ...inQuery('whole', { '7': '7', '-7': '-7' }, ['', '7.0', '1e1', '9007199254740993', '٧']),
  ...inQuery(
    'number',
    { '7': '7', '-1.50': '-1.5', '1e3': '1000', '1E-3': '0.001', '1e%2B3': '1000' },
    ['', '%2B7', '.5', '5.', '1e', '0x7', 'NaN', 'Infinity', '1e400', '1,5'],
  ),
  ...inQuery('flag', { true: 'true', false: 'false' }, ['', 'TRUE', '1', '0', 'constructor']),
  ...inQuery(
    'time',
    {
      '2026-01-02t03:04:05.006z': '2026-01-02T03:04:05.006Z',
      '2026-01-02T03:04:05%2B02:00': '2026-01-02T01:04:05.000Z',
    },
    wrongTimes.map(encodeURIComponent),
  ),
  ...inQuery('word', { two: "'two'" }, ['Two', 'a?b=c%26%3D+d']),
  ['usual=8', "{ text: 'a', usual: 8 }"],
  ['words=two&words=one', "{ text: 'a', usual: 7, words: [ 'two', 'one' ] }"],
  ['words=two', "{ text: 'a', usual: 7, words: [ 'two' ] }"],
  ['words=two&words=six', 'no words.1'],
  ['words[]=two&words,=two', "{ text: 'a', usual: 7 }"],
  ['longs=-7&longs=9007199254740993', "{ text: 'a', usual: 7, longs: [ -7n, 9007199254740993n ] }"],
  ['longs=7,8', 'no longs.0'],
  ['longs=', 'no longs.0'],
  ['longs=1&longs=2&longs=3', 'no longs'],
  ['only=two', "{ text: 'a', usual: 7, only: 'two' }"],
  ['only=six', 'no only'],
  ['double=2', "{ text: 'a', usual: 7, double: 4 }"],
  ['double=x', 'no double'],
])('in a query: %s', async (query, expected) => {
  expect(await seen(ask(`/see.it/a/(x)?${query}`))).toBe(expected)
})

test.each([
  ['7', "'7'"],
  ['a%2Fb', "'a/b'"],
  ['%2541', "'%41'"],
  ['%C3%A4%20+', "'ä +'"],
  ['null', "'null'"],
])('in a path: %s', async (text, expected) => {
  expect(await seen(ask(`/see.it/${text}/(x)`))).toBe(`{ text: ${expected}, usual: 7 }`)
})

test.each(['/see-it/a/(x)', '/see.it/a/b/(x)', '/see.it//(x)', '/see.it/a/x', '/x/see.it/a/(x)'])(
  '%s is another address',
  async (path) => {
    expect((await ask(path)).status).toBe(404)
  },
)

const inBody = (...[field, accepted, rejected = []]: Texts) => [
  ...Object.entries(accepted).map(([json, value]) => [
    `{"${field}":${json}}`,
    `{ ${field}: ${value}, usual: 7 }`,
  ]),
  ...rejected.map((json) => [`{"${field}":${json}}`, `no ${field}`]),
]

/** JSON.parse rounds it to 7. */
const nearlySeven = '7.00000000000000000001'

test.each([
  ['{}', '{ usual: 7 }'],
  ['{"unknown":{"a":[1.5]},"toString":1}', '{ usual: 7 }'],
  ['{"__proto__":{"text":"x"}}', '{ usual: 7 }'],
  ...inBody(
    'long',
    {
      ...{ '7': '7n', '-0': '0n', '7.0': '7n', '70E-1': '7n', '0.7e1': '7n', '700.00e-2': '7n' },
      ...{ '9e18': '9000000000000000000n', '-0.0e-5': '0n', '0e999999999': '0n' },
      '9007199254740993': '9007199254740993n',
      '-9007199254740993.0': '-9007199254740993n',
      '999999999999999': '999999999999999n',
      '9223372036854775807': '9223372036854775807n',
      '-9223372036854775808.000': '-9223372036854775808n',
      '92233720368547758.07e2': '9223372036854775807n',
    },
    [
      ...['7.5', nearlySeven, '9007199254740993.5', '1e-1', '-5e-3', '-1e-999'],
      ...['9223372036854775808', '1e19', '1e999999999', '"7"', 'true', 'null', '[7]'],
    ],
  ),
  ...inBody('whole', { '7.0': '7', '7e1': '70' }, [
    ...['7.5', nearlySeven, '"7"', '9007199254740993', '1e400', 'null', '{}'],
  ]),
  ...inBody(
    'number',
    { '-7.25': '-7.25', '1e-7': '1e-7', '12345678901234567890': '12345678901234567000' },
    ['"7"', '1e400', 'null', 'true'],
  ),
  ...inBody('flag', { false: 'false' }, ['"true"', '1', '0.5', 'null']),
  ...inBody(
    'time',
    {
      '"9999-12-31T23:59:59.999Z"': '9999-12-31T23:59:59.999Z',
      '"2024-02-29T23:59:59.123456789-23:59"': '2024-03-01T23:58:59.123Z',
    },
    ['"2026-02-29T00:00:00Z"', '""', '1767323045', '1.5', 'null'],
  ),
  ['{"text":"a \\" [{ 1.5 \\\\"}', `{ text: 'a " [{ 1.5 \\\\', usual: 7 }`],
  ...inBody('text', { '"7"': "'7'" }, ['7', '7.5', '9007199254740993', 'null', '["7"]']),
  ...inBody('word', { '"one"': "'one'" }, ['1.5']),
  ...inBody('list', { '[7,8.0]': '[ 7, 8 ]' }, ['7', '{"0":7}']),
  ['{"list":[7,"8"]}', 'no list.1'],
  ...inBody('longs', { '[7,9007199254740993]': '[ 7n, 9007199254740993n ]', '[]': '[]' }),
  ...inBody('perhaps', { null: 'null', '7': '7' }, ['"7"']),
  ...inBody('perhapsLong', { null: 'null', '9007199254740993': '9007199254740993n' }),
  ...inBody(
    'counts',
    { '{"a":9007199254740993,"__proto__":1}': '{ a: 9007199254740993n }', '{}': '{}' },
    ['[]', '7'],
  ),
  ['{"counts":{"a":"7"}}', 'no counts.a'],
  ...inBody('exactly', { '"one"': "'one'", '1.0': '1', true: 'true', null: 'null' }, ['2', '"1"']),
  ...inBody('double', { '2.0': '4' }, ['"2"']),
  ['{"usual":null}', 'no usual'],
  ...inBody(
    'inner',
    {
      '{"long":7.0,"time":"2026-01-02T03:04:05Z","more":1}':
        '{ time: 2026-01-02T03:04:05.000Z, long: 7n }',
    },
    ['[]', '7.5'],
  ),
  ['{"inner":{"time":"x"}}', 'no inner.time,inner.long'],
])('in a body: %s', async (body, expected) => {
  const order = (text: string) =>
    text
      .replace(/^\{ (.*) \}$/, '$1')
      .split(', ')
      .sort()
  expect(order(await seen(ask('/see', { method: 'PUT', body })))).toEqual(order(expected))
})

test('the document of all kinds is valid OpenAPI 3.1, and its examples have all digits', async () => {
  const text = await (await ask('/openapi.json')).text()
  const { valid, errors } = await new Validator().validate(JSON.parse(text))
  expect(errors).toBeUndefined()
  expect(valid).toBe(true)
  expect(text).toContain('"example":[{"id":9223372036854775807,"note":"soon"}]')
})

test('only operations with a body can fail because of it; the example of 400 is one of the operation', async () => {
  const { paths } = JSON.parse(await (await ask('/openapi.json')).text())
  const operations = Object.values<object>(paths).flatMap((item) => Object.values(item))
  for (const { operationId, requestBody, responses } of operations) {
    const hasBody = requestBody !== undefined
    const examples = JSON.stringify(responses[400].content)
    expect(examples.includes('PARSE_ERROR'), operationId).toBe(hasBody)
    expect([413, 415].map((status) => status in responses)).toEqual([hasBody, hasBody])
  }
  const methods = Object.values<object>(paths).flatMap((item) => Object.entries(item))
  for (const [method, { responses, operationId }] of methods)
    expect('403' in responses).toBe(method !== 'get' && operationId !== 'search')
  const badRequest = (path: string, method: string) =>
    JSON.stringify(paths[path][method].responses[400].content)
  expect(badRequest('/shops/{shop}/notes', 'post')).toContain('"message":"label ')
  const textOf204 = (path: string, method: string) => paths[path][method].responses[204].description
  expect(textOf204('/shops/{shop}/notes/{label}', 'delete')).toBe('Removed')
  expect(textOf204('/shops/{shop}/mark', 'put')).toBe('Done')
  expect(badRequest('/see', 'put')).toContain('The body must be a JSON object')
  expect(badRequest('/shops/{shop}/notes/{label}', 'delete')).toContain('Host')
  const { examples } = paths['/shops/{shop}/notes'].post.responses[409].content['application/json']
  expect(examples.CONFLICT.value.message).toBe('This note exists')
  expect(examples.CONFLICT_2.value.message).toMatch(/still running/)
})

test('the Location of a created resource names what was made, and encodes it', async () => {
  for (const [label, escaped] of [
    ['A', 'a'],
    ['a/b c?ä', 'a%2Fb%20c%3F%C3%A4'],
    ['half \ud800', 'half%20%EF%BF%BD'],
  ]) {
    const made = await ask('/shops/7%2F8/notes', {
      method: 'POST',
      body: JSON.stringify({ label }),
    })
    expect(made.status).toBe(201)
    expect(made.headers.get('location')).toBe(`${service.baseUrl}/shops/7%2F8/notes/${escaped}`)
  }
})

test.each([
  ['a/b c?d>e', 'a%2Fb%20c%3Fd%3Ee'],
  ['50%', '50%25'],
  ['{shop}', '%7Bshop%7D'],
])(
  'Link of a list encodes the parameter %s of its path, and keeps the query',
  async (shop, encoded) => {
    const path = `/shops/${encodeURIComponent(shop)}/orders`
    const { headers } = await ask(
      `${path}?limit=2&flag=false&marks=b&note[is]=a%26b+%3E&marks=a%20`,
    )
    const link = headers.get('link')
    expect(link).toBe(
      `<${service.baseUrl}/see>; rel="successor-version", <${service.baseUrl}/shops/${encoded}/orders?limit=2&cursor=2&note%5Bis%5D=a%26b%20%3E&flag=false&marks=b&marks=a%20>; rel="next"`,
    )
    expect((await ask(`${path}?note[is]=a&note[is]=b`)).status).toBe(400)
    const second = await ask(String(link?.match(/<.*\/v1(.*)>/)?.[1]))
    expect(await second.json()).toEqual([
      { id: 3, note: shop },
      { id: 4, note: shop },
    ])
  },
)

test('a query by POST is a search by a body, which a read-only key may send, and a GET on tRPC', async () => {
  const { key } = await keys.create(service.databaseUrl, 'reader', undefined, true)
  const headers = { authorization: `Bearer ${key}` }
  const body = '{"longs":[9007199254740993]}'
  const found = { seen: '{ longs: [ 9007199254740993n ] }' }
  const answer = await ask('/search', { method: 'POST', headers, body })
  expect([answer.status, await answer.json()]).toEqual([200, found])
  expect((await ask('/search', { headers })).headers.get('allow')).toBe('POST')
  const client = trpcClient<typeof served>(service.origin, key)
  expect(await client.search.query({ longs: [9007199254740993n] })).toEqual(found)
})

test('a DELETE has a query, ignores a body, and answers 204 without headers about content', async () => {
  const init = { method: 'DELETE', headers: { 'content-type': 'application/json' }, body: '{' }
  const answer = await ask('/shops/7/notes/a?whole=true', init)
  expect([answer.status, await answer.text()]).toEqual([204, ''])
  expect(removed).toEqual([{ shop: '7', label: 'a', whole: true }])
  for (const name of ['content-type', 'content-length', 'transfer-encoding']) {
    expect(answer.headers.get(name), name).toBeNull()
  }
  expect(answer.headers.get('cache-control')).toBe('no-store')
  expect(answer.headers.get('x-content-type-options')).toBe('nosniff')
  expect(answer.headers.get('deprecation')).toBe('@1795132800')
})
