/** Every type of value that a schema may have, in a URL, in a request body, in a response and in a link. */
import { inspect } from 'node:util'
import { Validator } from '@seriousme/openapi-schema-validator'
import { TRPCError } from '@trpc/server'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { Problem } from '../../../src/errors/problem.ts'
import { dateTimeInput, dateTimeOutput } from '../../../src/procedure/dates.ts'
import { int64Input, int64Output } from '../../../src/procedure/fields.ts'
import { idempotentWrite } from '../../../src/procedure/idempotent-write.ts'
import { paged, pagingInputs } from '../../../src/procedure/paging.ts'
import { procedure, router } from '../../../src/procedure/procedure.ts'
import { write } from '../../../src/procedure/write.ts'
import { described, resourcesOf } from '../../support/procedures.ts'
import type { KeyedInit } from '../../support/rest.ts'
import { transformer } from '../../support/router.ts'
import { serviceForFile } from '../../support/service.ts'

const date = dateTimeInput({ description: 'A time.' })

/** The types that a URL can hold; `text` is in the path. */
const InAddress = z.object({
  text: z.string(),
  long: int64Input({ description: 'Of 64 bits.' }).optional(),
  whole: z.int().optional(),
  number: z.number().optional(),
  flag: z.boolean().optional(),
  time: date.optional(),
  word: z.enum(['one', 'two']).optional(),
  either: z.union([z.string(), z.literal('x')]).optional(),
  list: z.array(z.int()).optional(),
  texts: z.array(z.string()).optional(),
  usual: z.int().default(7),
})
const InBody = z
  .object({
    ...InAddress.omit({ text: true }).shape,
    perhaps: z.int().nullable().optional(),
    text: z.string().optional(),
    longs: z.array(int64Input({ description: 'Of 64 bits.' })).optional(),
    perhapsLong: int64Input({ description: 'Of 64 bits.' }).nullable().optional(),
    'first-name': z.string().optional(),
    inner: z
      .object({ time: date.optional(), long: int64Input({ description: 'Of 64 bits.' }) })
      .optional(),
    shape: z
      .discriminatedUnion('kind', [
        z.object({ kind: z.literal('circle'), radius: z.number(), time: date.optional() }),
        z.object({
          kind: z.literal('line'),
          longs: z.array(int64Input({ description: 'Of 64 bits.' })).nullable(),
        }),
        z.object({
          kind: z.literal('box'),
          longs: z
            .array(int64Input({ description: 'Of 64 bits.' }))
            .max(1)
            .nullable(),
        }),
      ])
      .optional(),
  })
  .meta({ id: 'InBody' })
const Seen = z.object({ seen: z.string() }).meta({ id: 'Seen' })
const example = { seen: 'it' }

const long = int64Output({ description: 'Of 64 bits.' })
const Given = z
  .object({
    long: long.optional(),
    longs: z.array(long),
    perhapsLong: long.nullable(),
    perhaps: z.string().nullable(),
    time: dateTimeOutput(),
    number: z.number(),
    inner: z.object({ long: long.nullable(), text: z.string() }),
    inners: z.array(z.object({ long })),
    shapes: z
      .array(
        z.union([
          z.object({ long: long.nullable(), time: dateTimeOutput().optional() }),
          z.union([z.object({ lines: z.array(long) }), z.object({ lines: z.array(long).min(9) })]),
        ]),
      )
      .optional(),
  })
  .meta({ id: 'Given' })
const given = {
  longs: [1n, 2n ** 53n, -(2n ** 63n)],
  perhapsLong: null,
  perhaps: null,
  time: new Date('2026-01-02T03:04:05.006Z'),
  number: 0.1,
  inner: { long: null, text: '"ä😀' },
  inners: [{ long: 2n ** 63n - 1n }],
}
/** Beside the fields of the output, a resolver may return others, and fields that are undefined. */
const bare = { ...given, long: undefined, owner: 7n }
const full = {
  ...given,
  long: 7n,
  perhapsLong: 9_007_199_254_740_993n,
  perhaps: 'x',
  inner: { ...given.inner, long: 0n },
  shapes: [{ long: 2n, time: new Date('2026-01-02T03:04:05.006Z') }, { lines: [3n, 4n] }],
}

const great = int64Input({ description: 'Of 64 bits.' })
const Count = z.object({ count: great, counts: z.array(great), at: date, label: z.string() })
const counted = {
  count: 9_007_199_254_740_993n,
  counts: [-(2n ** 63n), 7n],
  at: new Date('2026-01-02T03:04:05Z'),
  label: "Rex's",
}

/** A schema in each wrapper that leaves a value as it is. */
const wrapped = (schema: z.ZodType) =>
  z.object({
    optional: schema.optional(),
    default: schema.default(7n),
    prefault: schema.prefault(7n),
    readonly: schema.readonly(),
    nonoptional: schema.optional().nonoptional(),
    catch: z.array(schema).catch([]),
  })
const Wrapped = wrapped(great)
const WrappedOutput = wrapped(long).readonly().meta({ id: 'WrappedOutput' })
const beyond = 9_007_199_254_740_993n
const inWrappers = {
  ...{ optional: beyond, default: beyond, prefault: beyond, readonly: beyond, nonoptional: beyond },
  catch: [beyond],
}

const Note = z.object({ label: z.string() }).meta({ id: 'Note' })
const NewNote = z.object({ label: z.string() }).meta({ id: 'NewNote' })
const note = { label: 'a' }

const deprecated = {
  since: new Date('2026-11-20T00:00:00.999Z'), // the header has seconds
  sunset: new Date('2030-12-05'),
  successor: '/notes',
} as const

const Order = z.object({ id: long, note: z.string() }).meta({ id: 'Order' })

/** What a faulty resolver may throw. */
const failures: Record<string, unknown> = {
  error: new Error('the secret'),
  wrapped: new TRPCError({ code: 'INTERNAL_SERVER_ERROR', message: 'the secret' }),
  problem: new Problem('INTERNAL_SERVER_ERROR', 'the secret'),
  aggregate: new AggregateError([new Error('the secret')], 'the secret'),
  text: 'the secret',
  nothing: undefined,
  object: { message: 'the secret', code: 'NOT_FOUND', status: 404 },
}

const removed: object[] = []

const exampleInput = {
  text: `It's "x"`,
  time: '2026-01-02T03:04:05Z',
  longs: [1, 2],
  perhaps: null,
  'first-name': 'Rex',
}
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
    .meta(described('PUT', '/see', { example, exampleInput }))
    .input(InBody)
    .output(Seen)
    .mutation(write(see)),
  give: procedure
    .meta(described('GET', '/given/{what}', { example: given }))
    .input(z.object({ what: z.string() }))
    .output(Given)
    .query(async ({ input: { what } }) => (what === 'full' ? full : bare)),
  wrappedInQuery: procedure
    .meta(described('GET', '/wrapped', { example: inWrappers }))
    .input(Wrapped)
    .output(WrappedOutput)
    .query(async ({ input }) => input),
  wrappedInBody: procedure
    .meta(
      described('PUT', '/wrapped/{nonoptional}', { example: inWrappers, exampleInput: inWrappers }),
    )
    .input(Wrapped.meta({ id: 'Wrapped' }))
    .output(WrappedOutput)
    .mutation(write(async ({ input }) => input)),
  count: procedure
    .meta(
      described('POST', '/counts', { repeatable: true, example: counted, exampleInput: counted }),
    )
    .input(Count.meta({ id: 'NewCount' }))
    .output(z.object({ count: long, counts: z.array(long) }).meta({ id: 'Count' }))
    .mutation(idempotentWrite(async () => counted)),
  make: procedure
    .meta(
      described('POST', '/notes', {
        creates: '/notes/{label}',
        example: note,
        exampleInput: { label: "Rex's" },
      }),
    )
    .input(NewNote)
    .output(Note)
    .mutation(idempotentWrite(async ({ input }) => input)),
  remove: procedure
    .meta(
      described('DELETE', '/notes/{label}', {
        deprecated,
      }),
    )
    .input(z.object({ label: z.string(), whole: z.boolean().optional() }))
    .output(z.void())
    .mutation(
      write(async ({ input }) => {
        removed.push(input)
      }),
    ),
  orders: procedure
    .meta(
      described('GET', '/shops/{shop}/orders', {
        deprecated,
        paged: true,
        example: [{ id: 7n, note: 'soon' }],
      }),
    )
    .input(
      z.object({
        shop: z.string(),
        ...pagingInputs('orders'),
        notes: z.array(z.string()).optional(),
      }),
    )
    .output(z.array(Order).meta({ id: 'Orders' }))
    .query(
      paged(async ({ input: { shop, limit, cursor = 0n } }) => {
        const ids = Array.from({ length: limit }, (_, index) => cursor + BigInt(index) + 1n)
        return { items: ids.map((id) => ({ id, note: shop })), next: ids.at(-1) }
      }),
    ),
  fail: procedure
    .meta(described('GET', '/failures/{what}', { example }))
    .input(z.object({ what: z.string() }))
    .output(Seen)
    .query(({ input: { what } }) => {
      if (what === 'misfit') return { seen: 7 as unknown as string }
      throw failures[what]
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

/** Strings that are not a date-time of RFC 3339, or that a Date cannot represent. */
const wrongTimes = [
  '',
  '2026-01-02',
  '2026-01-02T03:04:05',
  '2026-01-02T03:04Z',
  '2026-01-02 03:04:05Z',
  '1767323045',
  'x2026-01-02T03:04:05Z',
  '2026-01-02T03:04:05Z\n',
  '2026-01-02T03:04:05+0200',
  '2026-01-02T03:04:05.Z',
  '2026-01-02T03:04:05.1234567890+00:00', // longer than the document allows
  '+010000-01-01T00:00:00Z',
  // Days and hours that do not exist.
  '2026-13-02T03:04:05Z',
  '2026-00-02T03:04:05Z',
  '2026-02-31T00:00:00Z',
  '2026-02-29T00:00:00Z',
  '1900-02-29T00:00:00Z',
  '2026-04-31T00:00:00+01:00',
  '2026-01-00T00:00:00Z',
  '2026-01-02T24:00:00Z',
  '2026-01-02T03:60:00Z',
  '2026-01-02T03:04:05+24:00',
  '2026-01-02T03:04:05+01:60',
  // Leap seconds; the first one existed.
  '2016-12-31T23:59:60Z',
  '2026-01-02T03:04:60Z',
  // In UTC their years have more than four digits or are negative.
  '9999-12-31T23:59:59-23:59',
  '0000-01-01T00:00:00+00:01',
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
  ...inQuery('whole', { '7': '7', '-7': '-7' }, [
    '',
    '%2B7',
    '7.0',
    '1e1',
    '9007199254740993',
    'Infinity',
    '٧',
  ]),
  ...inQuery(
    'number',
    { '7': '7', '-1.50': '-1.5', '1e3': '1000', '1E-3': '0.001', '1e%2B3': '1000' },
    ['', '%2B7', '.5', '5.', '1e', '0x7', 'NaN', 'Infinity', '1e400', '1,5'],
  ),
  ...inQuery('flag', { true: 'true', false: 'false' }, ['', 'TRUE', 'False', '1', '0', 'yes']),
  ...inQuery(
    'time',
    {
      '2026-01-02T03:04:05Z': '2026-01-02T03:04:05.000Z',
      '2026-01-02t03:04:05.006z': '2026-01-02T03:04:05.006Z',
      '2026-01-02T03:04:05%2B02:00': '2026-01-02T01:04:05.000Z',
    },
    wrongTimes.map(encodeURIComponent),
  ),
  ['word=two&either=', "{ text: 'a', word: 'two', either: '', usual: 7 }"],
  ['word=Two', 'no word'],
  ['list=7', "{ text: 'a', list: [ 7 ], usual: 7 }"],
  ['list=7&list=-8', "{ text: 'a', list: [ 7, -8 ], usual: 7 }"],
  ['list=7&list=x', 'no list.1'],
  ['list=7,8', 'no list.0'],
  ['texts=7&texts=', "{ text: 'a', texts: [ '7', '' ], usual: 7 }"],
  ['usual=8', "{ text: 'a', usual: 8 }"],
  ['either=a?b=c%26%3D+d', "{ text: 'a', either: 'a?b=c&= d', usual: 7 }"],
])('in a query: %s', async (query, expected) => {
  expect(await seen(ask(`/see.it/a/(x)?${query}`))).toBe(expected)
})

test.each([
  ['7', "'7'"],
  ['a%2Fb', "'a/b'"],
  ['%2541', "'%41'"],
  ['%C3%A4%20+', "'ä +'"],
  ['%20a%20', "' a '"],
  ['a.b', "'a.b'"],
  ['null', "'null'"],
])('in a path: %s', async (text, expected) => {
  expect(await seen(ask(`/see.it/${text}/(x)`))).toBe(`{ text: ${expected}, usual: 7 }`)
})

test.each([
  '/see-it/a/(x)',
  '/see.it/a/b/(x)',
  '/see.it//(x)',
  '/see.it/a/x',
  '/see.it/a/(x)/',
  '/x/see.it/a/(x)',
])('%s is another address', async (path) => {
  expect((await ask(path)).status).toBe(404)
})

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
      ...{ '7': '7n', '-7': '-7n', '-0': '0n', '7.0': '7n', '70E-1': '7n', '0.7e1': '7n' },
      ...{ '7E+0': '7n', '7e2': '700n', '0.07e2': '7n', '700.00e-2': '7n', '7E+2': '700n' },
      ...{ '9e18': '9000000000000000000n', '-9E18': '-9000000000000000000n' },
      ...{ '-0.0e-5': '0n', '0e999': '0n', '0e999999999': '0n' },
      '9007199254740993': '9007199254740993n',
      '9007199254740993.0': '9007199254740993n',
      '-9007199254740993': '-9007199254740993n',
      '999999999999999': '999999999999999n',
      '9223372036854775807': '9223372036854775807n',
      '-9223372036854775808.000': '-9223372036854775808n',
      '922337203685477580.7e1': '9223372036854775807n',
      '92233720368547758.07e2': '9223372036854775807n',
    },
    [
      ...['7.5', nearlySeven, '9007199254740993.5', '1e-1', '71e-1', '-5e-3', '-1e-999'],
      ...['9223372036854775808', '1e19', '1e400', '1e999999999', '"7"', 'true', 'null', '[7]'],
    ],
  ),
  ...inBody('whole', { '7': '7', '7.0': '7', '7e1': '70' }, [
    '7.5',
    nearlySeven,
    '"7"',
    '9007199254740993',
    '1e400',
    'null',
    '{}',
  ]),
  ...inBody(
    'number',
    { '7': '7', '-7.25': '-7.25', '1e-7': '1e-7', '12345678901234567890': '12345678901234567000' },
    ['"7"', '1e400', 'null', 'true'],
  ),
  ...inBody('flag', { false: 'false' }, ['"true"', '1', '0.5', 'null']),
  ...inBody(
    'time',
    {
      '"2026-01-02T03:04:05Z"': '2026-01-02T03:04:05.000Z',
      '"9999-12-31T23:59:59.999Z"': '9999-12-31T23:59:59.999Z',
      '"0000-01-01T00:00:00Z"': '0000-01-01T00:00:00.000Z',
      '"2024-02-29T23:59:59.123456789-23:59"': '2024-03-01T23:58:59.123Z',
    },
    [...wrongTimes.map((text) => JSON.stringify(text)), '1767323045', '1.5', 'null'],
  ),
  [
    '{"text":"7","either":"2026-01-02T03:04:05Z"}',
    "{ either: '2026-01-02T03:04:05Z', text: '7', usual: 7 }",
  ],
  ['{"text":"a \\" [{ 1.5 \\\\"}', `{ text: 'a " [{ 1.5 \\\\', usual: 7 }`],
  ...inBody('text', {}, ['7', '7.5', '9007199254740993', 'null', '["7"]']),
  ['{"word":"one"}', "{ word: 'one', usual: 7 }"],
  ['{"word":1.5}', 'no word'],
  ['{"list":[7,8.0],"texts":[]}', '{ list: [ 7, 8 ], texts: [], usual: 7 }'],
  ['{"list":7}', 'no list'],
  ['{"list":{"0":7}}', 'no list'],
  ['{"list":[7,"8"],"texts":[1.5]}', 'no list.1,texts.0'],
  ['{"longs":[7,9007199254740993]}', '{ longs: [ 7n, 9007199254740993n ], usual: 7 }'],
  ['{"perhaps":null,"perhapsLong":null}', '{ perhaps: null, perhapsLong: null, usual: 7 }'],
  [
    '{"perhaps":7,"perhapsLong":9007199254740993}',
    '{ perhaps: 7, perhapsLong: 9007199254740993n, usual: 7 }',
  ],
  ['{"usual":null}', 'no usual'],
  [
    '{"inner":{"long":7.0,"time":"2026-01-02T03:04:05Z","more":1}}',
    '{ inner: { time: 2026-01-02T03:04:05.000Z, long: 7n }, usual: 7 }',
  ],
  ['{"inner":{"time":"x"}}', 'no inner.time,inner.long'],
  ['{"inner":[]}', 'no inner'],
  ...inBody(
    'shape',
    {
      '{"kind":"circle","radius":1.5,"time":"2026-01-02T03:04:05Z","longs":[1]}':
        "{ kind: 'circle', radius: 1.5, time: 2026-01-02T03:04:05.000Z }",
      '{"kind":"line","longs":[9007199254740993,7.0],"radius":1}':
        "{ kind: 'line', longs: [ 9007199254740993n, 7n ] }",
      '{"kind":"box","longs":null}': "{ kind: 'box', longs: null }",
    },
    ['7', 'null', '[]'],
  ),
  ['{"shape":{"kind":"circle"}}', 'no shape.radius'],
  ['{"shape":{"kind":"box","longs":[1,2]}}', 'no shape.longs'],
  ['{"shape":{"kind":"other"}}', 'no shape.kind'],
])('in a body: %s', async (body, expected) => {
  const order = (text: string) =>
    text
      .replace(/^\{ (.*) \}$/, '$1')
      .split(', ')
      .sort()
  expect(order(await seen(ask('/see', { method: 'PUT', body })))).toEqual(order(expected))
})

test('the error for a number is about a number, however it is written', async () => {
  const body = '{"list":1.5,"inner":1e5,"shape":12345678901234567890,"text":0.5}'
  const { message } = (await (await ask('/see', { method: 'PUT', body })).json()) as Error
  expect(message.split('; ').sort()).toEqual(
    [
      ['inner', 'object'],
      ['list', 'array'],
      ['shape', 'object'],
      ['text', 'string'],
    ].map(([name, type]) => `${name} Invalid input: expected ${type}, received number`),
  )
})

test('the errors of inner fields and of items have the whole path in `fields` of tRPC', async () => {
  const body = JSON.stringify(transformer.serialize({ inner: {}, list: [7, 'x'] }))
  const answer = await service.fetch('/trpc/body', { method: 'POST', body })
  const { error } = (await answer.json()) as { error: string }
  const { data } = transformer.deserialize(error) as { data: { fields: object } }
  expect(Object.keys(data.fields)).toEqual(['inner.long', 'list.1'])
})

test('a body may be nested 500 levels deep', async () => {
  const nested = (levels: number) =>
    `{"unknown":${'['.repeat(levels - 1)}${']'.repeat(levels - 1)}}`
  expect(await seen(ask('/see', { method: 'PUT', body: nested(500) }))).toBe('{ usual: 7 }')
  const deeper = await ask('/see', { method: 'PUT', body: nested(501) })
  expect(await deeper.json()).toMatchObject({ code: 'PARSE_ERROR', status: 400 })
  // Objects and lists beside each other are not levels, nor are brackets in a string.
  const beside = `{"unknown":[${'{},[],'.repeat(600)}0]}`
  expect(await seen(ask('/see', { method: 'PUT', body: beside }))).toBe('{ usual: 7 }')
  for (const start of ['', '"', '\\', '\\"', '"\\']) {
    const body = JSON.stringify({ unknown: start + '['.repeat(501), usual: 8 })
    expect(await seen(ask('/see', { method: 'PUT', body }))).toBe('{ usual: 8 }')
  }
})

test.each([
  [
    'full',
    '{"long":7,"longs":[1,9007199254740992,-9223372036854775808],"perhapsLong":9007199254740993,"perhaps":"x","time":"2026-01-02T03:04:05.006Z","number":0.1,"inner":{"long":0,"text":"\\"ä😀"},"inners":[{"long":9223372036854775807}],"shapes":[{"long":2,"time":"2026-01-02T03:04:05.006Z"},{"lines":[3,4]}]}',
  ],
  [
    'bare',
    '{"longs":[1,9007199254740992,-9223372036854775808],"perhapsLong":null,"perhaps":null,"time":"2026-01-02T03:04:05.006Z","number":0.1,"inner":{"long":null,"text":"\\"ä😀"},"inners":[{"long":9223372036854775807}]}',
  ],
])('a response: %s', async (what, expected) => {
  expect(await (await ask(`/given/${what}`)).text()).toBe(expected)
})

test('a wrapper leaves the value of a parameter, of a body and of an output as it is', async () => {
  const query = Object.entries(inWrappers).map(([name, value]) => `${name}=${value}`)
  const output = `{${query.map((text) => text.replace(/(.*)=(.*)/, '"$1":$2'))}}`.replace(
    /"catch":(\d+)/,
    '"catch":[$1]',
  )
  expect(await (await ask(`/wrapped?${query.join('&')}`)).text()).toBe(output)
  const put = { method: 'PUT', body: output }
  expect(await (await ask(`/wrapped/${beyond}`, put)).text()).toBe(output)
})

test('the document of all kinds is valid OpenAPI 3.1, and has every option of a union', async () => {
  const document = JSON.parse(await (await ask('/openapi.json')).text())
  const { valid, errors } = await new Validator().validate(document)
  expect(errors).toBeUndefined()
  expect(valid).toBe(true)
  const { shape } = document.components.schemas.InBody.properties
  const kinds = (shape.oneOf ?? shape.anyOf).map(
    (option: { properties: { kind: { const: string } } }) => option.properties.kind.const,
  )
  expect(kinds).toEqual(['circle', 'line', 'box'])
})

test('the guide to deprecation has a line for each deprecated operation', async () => {
  const { info } = JSON.parse(await (await ask('/openapi.json')).text())
  const lines = info.description
    .split('\n')
    .filter((line: string) => /is deprecated since/.test(line))
  expect(lines.map((line: string) => /^- `(.+?)` is/.exec(line)?.[1])).toEqual(
    expect.arrayContaining(['DELETE /notes/{label}', 'GET /shops/{shop}/orders']),
  )
  for (const line of lines) expect(line.match(/is deprecated since/g)).toHaveLength(1)
})

test('only operations with a body can fail because of it', async () => {
  const { paths } = JSON.parse(await (await ask('/openapi.json')).text())
  const operations = Object.values<object>(paths).flatMap((item) => Object.values(item))
  for (const { operationId, requestBody, responses } of operations) {
    const hasBody = requestBody !== undefined
    const examples = JSON.stringify(responses[400].content)
    expect(examples.includes('PARSE_ERROR'), operationId).toBe(hasBody)
    expect(/^The body/.test(responses[400].description), operationId).toBe(hasBody)
    expect([413, 415].map((status) => status in responses)).toEqual([hasBody, hasBody])
  }
  expect(paths['/notes/{label}'].delete.requestBody).toBeUndefined()
})

test('the samples of the document write each kind of value', async () => {
  const { paths } = JSON.parse(await (await ask('/openapi.json')).text())
  const sampleOf = (path: string, method: string) =>
    paths[path][method]['x-codeSamples'][0].source.split('\n').at(-1)
  expect(sampleOf('/see', 'put')).toBe(
    String.raw`const answer = await petstore.body.mutate({ time: new Date('2026-01-02T03:04:05.000Z'), perhaps: null, text: 'It\'s "x"', longs: [1n, 2n], 'first-name': 'Rex' })`,
  )
  expect(sampleOf('/notes/{label}', 'delete')).toBe(
    "await petstore.remove.mutate({ label: 'text' })",
  )
})

test('examples have all digits of an int64: in the document, its samples and guides, and on the docs page', async () => {
  const counts = '"count":9007199254740993,"counts":[-9223372036854775808,7]'
  const others = '"at":"2026-01-02T03:04:05.000Z","label":"Rex\'s"'
  const document = await (await ask('/openapi.json')).text()
  const inRequest = `{${counts},${others}}`
  expect(document).toContain(
    `"requestBody":{"required":true,"content":{"application/json":{"schema":{"$ref":"#/components/schemas/NewCount"},"example":${inRequest}}}}`,
  )
  expect(document).toContain(`"schema":{"$ref":"#/components/schemas/Count"},"example":{${counts}}`)
  const { paths, info } = JSON.parse(document)
  expect(info.description).toContain(`--data-raw '${inRequest.replace("'", String.raw`'\''`)}'`)
  expect(paths['/counts'].post['x-codeSamples'][0].source).toContain(
    "count.mutate({ count: 9007199254740993n, counts: [-9223372036854775808n, 7n], at: new Date('2026-01-02T03:04:05.000Z'), label: 'Rex\\'s' })",
  )
  const page = await (await service.fetch('/docs/')).text()
  for (const integer of ['"count": 9007199254740993', '-9223372036854775808']) {
    const shown = page.replaceAll('&#34;', '"').split(`${integer},`)
    expect(shown.length, integer).toBeGreaterThan(3) // the form, its sample and the answer
  }
  expect(page).not.toMatch(/"rawJSON|9223372036854776/)
})

test('the example of 400 names the first parameter that may be invalid', async () => {
  const { paths } = JSON.parse(await (await ask('/openapi.json')).text())
  const { example } = paths['/see.it/{text}/(x)'].get.responses[400].content['application/json']
  expect(example.message).toMatch(/^long must be an integer/)
})

test('the Location of a created resource encodes its parameters', async () => {
  for (const [label, escaped] of [
    ['a', 'a'],
    ['a/b c?ä', 'a%2Fb%20c%3F%C3%A4'],
    ['half \ud800', 'half%20%EF%BF%BD'],
  ]) {
    const made = await ask('/notes', { method: 'POST', body: JSON.stringify({ label }) })
    expect(made.status).toBe(201)
    expect(made.headers.get('location')).toBe(`${service.baseUrl}/notes/${escaped}`)
  }
})

test.each([
  ['corner', 'corner'],
  ['a/b c?d>e', 'a%2Fb%20c%3Fd%3Ee'],
  ['50%', '50%25'],
  ['ä', '%C3%A4'],
  ['{shop}', '%7Bshop%7D'],
])(
  'Link of a list encodes the parameter %s of its path, and keeps the query',
  async (shop, encoded) => {
    const path = `/shops/${encodeURIComponent(shop)}/orders`
    const { headers } = await ask(`${path}?limit=2&notes=x&notes=a%26b`)
    expect(headers.get('deprecation')).toBe('@1795132800')
    const link = headers.get('link')
    expect(link).toBe(
      `<${service.baseUrl}/notes>; rel="successor-version", <${service.baseUrl}/shops/${encoded}/orders?limit=2&cursor=2&notes=x&notes=a%26b>; rel="next"`,
    )
    const second = await ask(String(link?.match(/<.*\/v1(.*)>/)?.[1]))
    expect(await second.json()).toEqual([
      { id: 3, note: shop },
      { id: 4, note: shop },
    ])
  },
)

test('a response with 204 has no body and no headers about one', async () => {
  const answer = await ask('/notes/a', { method: 'DELETE', headers: {} })
  expect([answer.status, await answer.text()]).toEqual([204, ''])
  for (const name of ['content-type', 'content-length', 'transfer-encoding']) {
    expect(answer.headers.get(name), name).toBeNull()
  }
  expect(answer.headers.get('cache-control')).toBe('no-store')
  expect(answer.headers.get('x-content-type-options')).toBe('nosniff')
  expect(answer.headers.get('deprecation')).toBe('@1795132800')
})

test('a DELETE has a query', async () => {
  removed.length = 0
  expect((await ask('/notes/a?whole=true', { method: 'DELETE' })).status).toBe(204)
  expect(removed).toEqual([{ label: 'a', whole: true }])
})

test('an operation without a body ignores one of any type', async () => {
  for (const [type, body] of [
    ['text/plain', 'x'],
    ['application/json', '{'],
    ['application/json', ''],
  ] as const) {
    const headers = { 'content-type': type }
    const answer = await ask('/notes/a', { method: 'DELETE', headers, body })
    expect(answer.status, `${type}: ${body}`).toBe(204)
  }
})

test.each([...Object.keys(failures), 'misfit'])(
  'an internal error returns no details, and the log has them: %s',
  async (what) => {
    service.logged.length = 0
    const rest = await ask(`/failures/${what}`)
    const internal = {
      code: 'INTERNAL_SERVER_ERROR',
      message: 'Internal server error',
      status: 500,
    }
    expect(await rest.json()).toEqual(internal)
    const input = encodeURIComponent(JSON.stringify(transformer.serialize({ what })))
    const trpc = await service.fetch(`/trpc/fail?input=${input}`)
    expect(trpc.status).toBe(500)
    expect(await trpc.json()).toEqual({
      error: transformer.serialize({
        message: internal.message,
        code: -32603,
        data: { code: internal.code, httpStatus: 500 },
      }),
    })
    const lines = service.logged.map((line) => JSON.parse(line)).filter(({ level }) => level === 50)
    expect(lines.map(({ msg }) => msg)).toEqual([internal.message, internal.message])
    const cause = { nothing: internal.message, misfit: 'seen' }[what] ?? 'the secret'
    for (const { err } of lines) expect(JSON.stringify(err)).toContain(cause)
  },
)
