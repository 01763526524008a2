/** The service does not start with a procedure that REST cannot serve. The error names the cause. */
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { BY_ID, orderBy } from '../../../db/order.ts'
import { dateInput, dateTimeInput } from '../../../src/procedure/dates.ts'
import { decimalInput } from '../../../src/procedure/decimal.ts'
import { idempotentWrite } from '../../../src/procedure/idempotent-write.ts'
import { INT64_MAX, INT64_MIN, int64Input, int64Output } from '../../../src/procedure/int64.ts'
import { paged, pagingInputs } from '../../../src/procedure/paging.ts'
import { procedure, router } from '../../../src/procedure/procedure.ts'
import type { Resources } from '../../../src/procedure/resources.ts'
import { restMeta } from '../../../src/procedure/rest-meta.ts'
import { write } from '../../../src/procedure/write.ts'
import { openApiDocument } from '../../../src/surface/rest/openapi/document.ts'
import { operationsOf } from '../../../src/surface/rest/operations.ts'

const Toy = z.object({ label: z.string() }).meta({ id: 'Toy' })
const Toys = z.array(Toy)
const NewToy = z.object({ label: z.string() }).meta({ id: 'NewToy' })
const example = { label: 'Ball' }
const words = { tag: 'toys', summary: 'Toys', description: 'Toys.' }
const reading = { method: 'GET', path: '/toys', example, ...words } as const
const listing = { ...reading, paged: true, example: [example] } as const
const changing = { ...reading, method: 'POST', exampleInput: example } as const
const creating = { ...changing, creates: '/toys/{label}' } as const
const removing = { method: 'DELETE', path: '/toys/{label}', ...words } as const

type Meta = Parameters<typeof restMeta>[0]
type Procedures = Parameters<typeof router>[0]

const get = procedure.meta(restMeta(reading))
const give = async () => example
const change = write(give)
const page = paged({ by: BY_ID }, async () => ({ items: [example], next: undefined, order: BY_ID }))

/** A query of a toy, at its own path or with another input. */
const query = (meta: Partial<Meta> = {}, input: z.ZodType = Toy) =>
  procedure
    .meta(restMeta({ ...reading, ...meta }))
    .input(input)
    .output(Toy)
    .query(give)

/** A mutation that returns a toy; `resolve` is not made by `write` on purpose in some tests. */
const mutation = (meta: Partial<Meta> = {}, input: z.ZodType = NewToy, resolve = change) =>
  procedure
    .meta(restMeta({ ...changing, ...meta }))
    .input(input)
    .output(Toy)
    .mutation(resolve)

/** An operation on one toy, at a path with parameters. */
function labelled(method: 'get' | 'patch', path: `/${string}`) {
  const fields = [...path.matchAll(/\{(.+?)\}/g)].map(([, field]) => [String(field), z.string()])
  const input = z.object(Object.fromEntries(fields)).meta({ id: 'OneToy' })
  return method === 'get'
    ? query({ path }, input)
    : procedure
        .meta(restMeta({ ...reading, method: 'PATCH', path }))
        .input(input)
        .output(Toy)
        .mutation(change)
}

/** A creation whose output has optional fields. */
const making = (creates: `/${string}`) =>
  procedure
    .meta(restMeta({ ...changing, creates, example: { ...example, owner: null, sizes: [] } }))
    .input(NewToy)
    .output(
      Toy.extend({
        colour: z.string().optional(),
        owner: z.string().nullable(),
        sizes: z.array(z.int()),
      }),
    )
    .mutation(idempotentWrite(async () => ({ ...example, owner: null, sizes: [] })))

/** A creation whose output has options. */
const makingOneOf = (...options: [z.ZodType, z.ZodType]) =>
  procedure
    .meta(restMeta(creating))
    .input(NewToy)
    .output(z.union(options))
    .mutation(idempotentWrite(give))

const Nest = z
  .object({
    get inside(): z.ZodOptional<z.ZodArray<typeof Nest>> {
      return z.array(Nest).optional()
    },
  })
  .meta({ id: 'Nest' })
const Chain = z.object({
  label: z.string(),
  get next(): z.ZodOptional<typeof Link> {
    return Link.optional()
  },
})
const Link = z.object({ chain: Chain.optional() })
const Knot = z.object({
  label: z.string(),
  get next(): z.ZodNullable<typeof Knot> {
    return Knot.nullable()
  },
})
const Fork = z.object({
  label: z.string(),
  get next(): z.ZodUnion<[typeof Fork, typeof Toy]> {
    return z.union([Fork, Toy])
  },
})

const byLabel = orderBy([{ column: 'label', type: 'text', direction: 'ascending', unique: true }])

const client = { module: '@toys/toys/client', create: 'createClient' }

/** An integer of 64 bits as an input, with these examples. */
const long = (examples?: number[]) =>
  int64Input({ description: 'A.', ...(examples && { examples }) })

const toys = { toys: 'What they play with.' }

/** Builds the document of these procedures, as the service does at its start. */
function start(
  procedures: Procedures,
  tags: Record<string, string> = toys,
  made?: Resources['client'],
) {
  const servers = { baseUrl: 'https://petstore.example/v1', stagingUrl: 'https://x.example/v1' }
  const served = router(procedures)
  const resources = { description: 'Toys.', ...(made && { client: made }) }
  return openApiDocument(resources, operationsOf(served, tags), servers)
}

const right = query()

test('complete procedures start', () => {
  const { limit, cursor } = pagingInputs('toys', BY_ID)
  const document = start(
    {
      get: right,
      list: procedure
        .meta(restMeta({ ...listing, path: '/all' }))
        .input(z.object({ limit, cursor }))
        .output(Toys)
        .query(page),
      make: procedure
        .meta(restMeta(creating))
        .input(NewToy)
        .output(Toy)
        .mutation(idempotentWrite(give)),
      drop: procedure
        .meta(restMeta(removing))
        .input(Toy)
        .output(z.void())
        .mutation(write(async () => {})),
    },
    toys,
  )
  expect(Object.keys(document.paths ?? {})).toEqual(['/toys', '/all', '/toys/{label}'])
  // The array of the list has no schema of its own.
  expect(document.paths?.['/all']?.get?.responses).toMatchObject({
    200: { content: { 'application/json': { schema: { type: 'array', maxItems: 100 } } } },
  })
  const { responses } = document.paths?.['/toys/{label}']?.delete ?? {}
  expect(responses?.[204]).toEqual({ description: 'Removed', headers: expect.any(Object) })
})

test('a DELETE has its other fields in the query, and no body', () => {
  const input = Toy.extend({ size: z.int().optional() })
  const drop = procedure
    .meta(restMeta(removing))
    .input(input)
    .output(z.void())
    .mutation(write(async () => {}))
  const { parameters, requestBody } = start({ drop }).paths?.['/toys/{label}']?.delete ?? {}
  expect(parameters).toMatchObject([
    { name: 'label', in: 'path' },
    { name: 'size', in: 'query' },
  ])
  expect(requestBody).toBeUndefined()
})

test('an input may be transformed as a whole', () => {
  const input = Toy.extend({ size: z.int() }).transform(({ label }) => ({ label }))
  const { parameters } =
    start({ it: query({ path: '/toys/{label}' }, input) }).paths?.['/toys/{label}']?.get ?? {}
  expect(parameters).toMatchObject([
    { name: 'label', in: 'path' },
    { name: 'size', in: 'query' },
  ])
})

test('an output may have a Date of any year', () => {
  const at = z.date().meta({ override: { type: 'string', format: 'date-time' } })
  const it = procedure
    .meta(restMeta({ ...reading, example: { at: new Date(0) } }))
    .input(Toy)
    .output(z.object({ at }))
    .query(async () => ({ at: new Date(0) }))
  expect(() => start({ it })).not.toThrow()
})

test('a name may have 64 characters', () => {
  expect(() => start({ ['a'.repeat(64)]: right })).not.toThrow()
})

/** An action on one toy that a client may repeat. */
const repeating = (path: `/${string}`) =>
  procedure
    .meta(restMeta({ ...reading, method: 'POST', path, repeatable: true }))
    .input(Toy)
    .output(Toy)
    .mutation(idempotentWrite(give))

test('the guide to idempotency sends no body where the operation has none', () => {
  const { description } = start({ again: repeating('/toys/{label}') }).info
  expect(description).toMatch(/-H 'Idempotency-Key: [^\n]*'\n```$/m)
})

/** A list of the toys in a shop. */
const listOf = (path: `/${string}`) => {
  const { limit, cursor } = pagingInputs('toys', BY_ID)
  return procedure
    .meta(restMeta({ ...listing, path }))
    .input(z.object({ shop: z.string(), limit, cursor }))
    .output(Toys)
    .query(page)
}

test('a guide names each operation that it is for, with the URL of the first', () => {
  const procedures = {
    one: listOf('/shops/{shop}/toys'),
    other: listOf('/toys'),
    wind: repeating('/toys/{label}'),
    lend: repeating('/toys/{label}/loans'),
  }
  const { description } = start(procedures, toys, { ...client, module: 'toys/client' }).info
  for (const part of [
    '`GET /shops/{shop}/toys` and `GET /toys` return a list in pages',
    "let url = 'https://petstore.example/v1/shops/42/toys?limit=100'",
    'If the answer to `POST /toys/{label}` or `POST /toys/{label}/loans` is lost',
    "curl -i -X POST 'https://petstore.example/v1/toys/42'",
    'The package `toys` has a typed client',
    'In the TypeScript client it is `{ context: { idempotencyKey } }`',
  ]) {
    expect(description).toContain(part)
  }
  expect(start(procedures).info.description).not.toContain('TypeScript')
})

test('the document has only the headers, guides and error codes that its operations need', () => {
  const always = [
    'WWW-Authenticate',
    'Retry-After',
    'X-Request-Id',
    'RateLimit-Policy',
    'RateLimit',
  ]
  const { components, info } = start({ get: right })
  expect(Object.keys(components?.headers ?? {})).toEqual(always)
  expect(info.description?.match(/^## .*$/gm)).toEqual(['## Errors', '## Rate limits'])
  const rows = [...`${info.description}`.matchAll(/^\| `(\w+)` \| (.*?) \|/gm)]
  expect(rows.map(([, code, statuses]) => `${code} ${statuses}`)).toEqual([
    'BAD_REQUEST 400, 431',
    'UNAUTHORIZED 401',
    'NOT_FOUND 404',
    'METHOD_NOT_SUPPORTED 405',
    'TIMEOUT 408',
    'TOO_MANY_REQUESTS 429',
    'INTERNAL_SERVER_ERROR 500',
    'SERVICE_UNAVAILABLE 503',
  ])
  const deprecated = { since: new Date(0), sunset: new Date(1), successor: '/toys' } as const
  const { headers } =
    start({ get: right, old: query({ path: '/balls', deprecated }) }).components ?? {}
  expect(Object.keys(headers ?? {})).toEqual(['Link', 'Deprecation', 'Sunset', ...always])
  expect(headers?.Link).toMatchObject({
    example: expect.stringContaining('<https://petstore.example/v1/toys'),
  })
})

test('a field with the name limit bounds no output that is not a page', () => {
  const { components } = start({ it: query({}, z.object({ limit: z.int().max(9).optional() })) })
  expect(components?.schemas?.Toy).toHaveProperty('properties')
  expect(components?.schemas?.Toy).not.toHaveProperty('maxItems')
})

test('only an integer of 32 bits has the format int32', () => {
  const [least, most] = [-(2 ** 31), 2 ** 31 - 1]
  const int32 = { both: [least, most], greatest: [0, most] }
  const others = { tooLittle: [least - 1, 0], tooGreat: [0, most + 1] }
  const between = ([min = 0, max = 0]: number[]) => z.int().min(min).max(max)
  const sizes = z.object({
    ...Object.fromEntries(
      Object.entries({ ...int32, ...others }).map(([name, range]) => [name, between(range)]),
    ),
    onlyLeast: z.int().min(least),
    any: z.int(),
    number: z.number().min(0).max(1),
  })
  const it = procedure
    .meta(restMeta({ ...reading, example: {}, path: '/sizes' }))
    .input(z.object({}))
    .output(sizes.partial().meta({ id: 'Sizes' }))
    .query(() => ({}))
  const schema = start({ it }).components?.schemas?.Sizes
  const { properties } = schema as { properties: Record<string, { format?: string }> }
  const formatted = Object.keys(properties).filter((name) => properties[name]?.format !== undefined)
  expect(formatted).toEqual(Object.keys(int32))
  for (const name of formatted) expect(properties[name]?.format).toBe('int32')
})

test('an int64 keeps its own bounds, beside those of its type', () => {
  const int64 = { type: 'integer', format: 'int64' } as const
  const size = z.bigint().meta({ override: { ...int64, minimum: -5 } })
  const weight = z.bigint().meta({ override: { ...int64, maximum: 5 } })
  const list = z.array(z.object({ weight }).partial())
  const Sized = z.object({ size, weight, some: list, others: list }).partial().meta({ id: 'Sized' })
  const it = procedure
    .meta(restMeta({ ...reading, example: {} }))
    .input(z.object({}))
    .output(Sized)
    .query(() => ({}))
  const atMost5 = { minimum: JSON.rawJSON(String(INT64_MIN)), maximum: JSON.rawJSON('5') }
  const items = { properties: { weight: atMost5 } }
  expect(start({ it }).components?.schemas?.Sized).toMatchObject({
    properties: {
      size: { minimum: JSON.rawJSON('-5'), maximum: JSON.rawJSON(String(INT64_MAX)) },
      weight: atMost5,
      some: { items },
      others: { items },
    },
  })
})

test('integers are complete beside fields with names of JSON Schema, and examples stay unchanged', () => {
  const like = { type: 'integer', minimum: 0, maximum: 9 }
  const names = ['minimum', 'maximum', 'type', 'format', 'example', 'properties'] as const
  const Like = z.object({ type: z.string(), minimum: z.int(), maximum: z.int() })
  const Range = z.object({
    ...Object.fromEntries(names.map((name) => [name, int64Output({ description: 'Any.' })])),
    size: z.int().min(0).max(9),
    sizes: z.array(z.int().min(0).max(9)),
    either: z.union([z.object({ default: z.int().min(0).max(9) }), Like]),
    like: Like.meta({ examples: [like], example: like, default: like }),
  })
  const it = procedure
    .meta(
      restMeta({
        ...reading,
        example: {
          ...Object.fromEntries(names.map((name) => [name, 1n])),
          size: 1,
          sizes: [],
          either: like,
          like,
        },
      }),
    )
    .input(z.object({ minimum: z.int().min(0).max(9).optional() }))
    .output(Range.meta({ id: 'default' }))
    .query(async () => ({}) as never)
  const inline = procedure
    .meta(restMeta({ ...reading, path: '/sizes', example: [] }))
    .input(z.object({}))
    .output(z.array(z.int().min(0).max(9)))
    .query(async () => [])
  const document = start({ it, inline })
  const schema = document.components?.schemas?.default
  const described = document.paths?.['/toys']?.get
  const int64 = {
    minimum: JSON.rawJSON(String(INT64_MIN)),
    maximum: JSON.rawJSON(String(INT64_MAX)),
  }
  const int32 = { format: 'int32', minimum: 0, maximum: 9 }
  expect(schema).toMatchObject({
    properties: {
      ...Object.fromEntries(names.map((name) => [name, { format: 'int64', ...int64 }])),
      size: int32,
      sizes: { items: int32 },
      either: { anyOf: [{ properties: { default: int32 } }, {}] },
    },
  })
  const { properties } = schema as { properties: Record<string, object> }
  expect(properties.like).toEqual(
    expect.objectContaining({ examples: [like], example: like, default: like }),
  )
  expect(described).toMatchObject({
    parameters: [{ schema: int32 }],
    responses: {
      200: {
        content: {
          'application/json': { example: expect.objectContaining({ either: like, like }) },
        },
      },
    },
  })
  expect(document.paths?.['/sizes']?.get?.responses).toMatchObject({
    200: { content: { 'application/json': { schema: { items: int32 } } } },
  })
})

test('the path of a created resource takes its parameters from the output and from the path', () => {
  const Part = z.object({ id: z.string() }).meta({ id: 'Part' })
  const NewPart = Toy.meta({ id: 'NewPart' })
  const part = { ...words, example: { id: 'a' } }
  const path = '/toys/{label}/parts'
  const input = z.object({ label: z.string(), part: z.string() })
  const make = restMeta({
    ...part,
    method: 'POST',
    path,
    creates: `${path}/{id}`,
  })
  const get = restMeta({ ...part, method: 'GET', path: `${path}/{part}` })
  const giveOne = async () => ({ id: 'a' })
  const procedures = {
    make: procedure.meta(make).input(NewPart).output(Part).mutation(idempotentWrite(giveOne)),
    get: procedure.meta(get).input(input).output(Part).query(giveOne),
  }
  expect(() => start(procedures)).not.toThrow()
})

test('the path of a created resource takes a parameter that every option of the output has', () => {
  const parts = z.union([
    Toy.extend({ size: z.int() }).readonly(),
    z.union([Toy, Toy.extend({ label: z.string().default('x') })]),
  ])
  const it = makingOneOf(Toy, parts)
  expect(() => start({ get: labelled('get', '/toys/{label}'), it })).not.toThrow()
})

test('path parameters may have any type, and each example of an error is a message of its operation', () => {
  const size = z.enum(['small', 'great'], { error: 'must be small or great' })
  const Sized = z.object({ size, label: z.string({ error: 'is required' }) }).meta({ id: 'Sized' })
  const path = '/toys/{size}/{label}'
  // Bodies that may be empty.
  const label = z.string({ error: 'must be a string' }).optional()
  const optional = { first: { label }, second: { labels: z.array(z.string()).optional(), label } }
  const document = start({
    change: mutation({ method: 'PATCH', path: '/toys/{size}' }, Sized),
    drop: procedure
      .meta(restMeta({ ...removing, path }))
      .input(Sized)
      .output(z.void())
      .mutation(write(async () => {})),
    get: labelled('get', '/toys'),
    ...Object.fromEntries(
      Object.entries(optional).map(([name, fields]) => [
        name,
        mutation(
          { path: `/${name}/{size}`, exampleInput: {} },
          z.object({ size, ...fields }).meta({ id: name }),
        ),
      ]),
    ),
  })
  const messageOf = (path: string, method: 'get' | 'patch' | 'post' | 'delete') => {
    const response = document.paths?.[path]?.[method]?.responses?.[400]
    const { example, examples } = response?.content['application/json'] ?? {}
    return (example ?? examples.BAD_REQUEST.value).message
  }
  expect(messageOf('/toys/{size}', 'patch')).toBe('label is required')
  expect(messageOf(path, 'delete')).toBe('size must be small or great')
  expect(messageOf('/toys', 'get')).toBe('The request must have one valid Host header')
  expect(messageOf('/first/{size}', 'post')).toBe('label must be a string')
  expect(messageOf('/second/{size}', 'post')).toBe('The body must be a JSON object')
})

test.each([
  ['its example, before an enum', z.string().meta({ examples: ['Rex', 'Bo'] }), "'Rex'"],
  ['its example of 64 bits', long([2 ** 53]), '9007199254740992n'],
  ['the first of an enum', z.enum(['small', 'great']), "'small'"],
  ['the first of a component', z.enum(['small', 'great']).meta({ id: 'Size' }), "'small'"],
  ['a literal', z.literal('small'), "'small'"],
  ['a day', dateInput({ description: 'A day.' }), "'2026-01-02'"],
  ['a time', dateTimeInput({ description: 'A time.' }), "new Date('2026-01-02T03:04:05.000Z')"],
  ['a decimal', decimalInput({ description: 'A price.' }, { precision: 4, scale: 2 }), "'42'"],
  ['an integer', z.int(), '42'],
  ['an integer of 64 bits', long(), '42n'],
  ['an integer above 42', z.int().min(100), '100'],
  ['an integer below 42', z.int().max(9), '1'],
  ['an integer from a bound', z.int().min(9).max(10), '9'],
  ['a truth value', z.boolean(), 'true'],
  ['a text', z.string().max(4), "'text'"],
])('the sample of the client has %s in the path and in the query', (_what, field, value) => {
  const sampleOf = (path: `/${string}`, fields: z.ZodRawShape) =>
    JSON.stringify(start({ it: query({ path }, z.object(fields)) }, toys, client).paths?.[path])
  const optional = field.optional().meta({ examples: [] })
  const call = (input: string) => JSON.stringify(`it.query(${input})`).slice(1, -1)
  expect(sampleOf('/toys/{key}', { key: field, optional })).toContain(call(`{ key: ${value} }`))
  expect(sampleOf('/toys', { key: field, optional })).toContain(call(`{ key: ${value} }`))
})

test('the sample of the client has a required list, and the limit of a page', () => {
  const Size = z.enum(['small', 'great']).meta({ id: 'Size' })
  const { limit, cursor } = pagingInputs('toys', BY_ID)
  const labels = z.array(z.string()).meta({ examples: [['Rex', 'Bo']] })
  const it = procedure
    .meta(restMeta(listing))
    .input(z.object({ limit, cursor, sizes: z.array(Size), labels }))
    .output(Toys)
    .query(page)
  expect(JSON.stringify(start({ it }, toys, client).paths)).toContain(
    "it.query({ limit: 20, sizes: ['small'], labels: ['Rex', 'Bo'] })",
  )
})

test('the sample of the client passes nothing to a procedure without a required field', () => {
  const it = query({}, z.object({ label: z.string().optional() }))
  const { paths } = start({ it }, toys, client)
  expect(JSON.stringify(paths)).toContain('await petstore.it.query()"')
})

test('a field of a request is not read-only', () => {
  const Size = z.enum(['small', 'great']).readonly().meta({ id: 'Size' })
  const Part = z.object({ size: Size, get: z.array(z.int()).readonly() }).readonly()
  const label = z.string().readonly().meta({ description: 'A label.' })
  const fields = { label, sizes: z.array(Size).readonly() }
  const Sized = z.object({ ...fields, readOnly: Part.meta({ id: 'Part' }) }).readonly()
  const exampleInput = { sizes: ['small'], readOnly: { size: 'great', get: [1] } }
  const path = '/toys/{label}'
  const { paths, components } = start({
    get: query({ path }, z.object(fields)),
    change: mutation({ path, exampleInput }, Sized.meta({ id: 'Sized' })),
  })
  const { get, post } = paths?.[path] ?? {}
  const { Sized: body, Size: size, Part: part } = components?.schemas ?? {}
  const request = JSON.stringify([get?.parameters, post?.parameters, body, size, part])
  expect(request).not.toContain('"readOnly":true')
  expect(body).toHaveProperty('properties.readOnly')
})

test('the example of a body has no field that the body lacks', () => {
  const Sized = z.object({ id: z.bigint(), label: z.string() }).meta({ id: 'Sized' })
  const exampleInput = { ...example, id: 2n ** 60n, colour: 2n ** 60n }
  const { paths } = start({ it: mutation({ path: '/toys/{id}', exampleInput }, Sized) })
  expect(paths?.['/toys/{id}']?.post?.requestBody).toEqual(
    expect.objectContaining({
      content: { 'application/json': expect.objectContaining({ example: { label: 'Ball' } }) },
    }),
  )
})

test('one schema may be in several fields', () => {
  const Pair = z.object({ one: Toy, other: Toy, more: z.array(Toy) }).meta({ id: 'Pair' })
  const exampleInput = { one: example, other: example, more: [] }
  expect(() => start({ it: mutation({ exampleInput }, Pair) })).not.toThrow()
})

test('a parameter has the description of its field, before that of the schema inside', () => {
  const inner = z.string().meta({ description: 'Inner.' })
  const own = { description: 'Own.' }
  const Size = z.enum(['small', 'great']).meta({ id: 'Size', description: 'A size.' })
  const fields = {
    label: inner.meta(own),
    optional: inner.optional().meta(own),
    bare: z.boolean().optional().meta(own),
    long: int64Input({ description: 'Inner.' }).optional().meta(own),
    default: inner.default('x').meta(own),
    size: Size.optional().meta(own),
    inherited: inner.optional(),
    sizes: z.array(Size).optional(),
  }
  const document = start({ it: query({ path: '/toys/{label}' }, z.object(fields)) })
  const { parameters = [] } = document.paths?.['/toys/{label}']?.get ?? {}
  const described = (parameters as { name: string; description?: string; schema: object }[]).map(
    ({ name, description, schema }) => {
      expect(schema, name).not.toHaveProperty('description')
      return [name, description]
    },
  )
  expect(Object.fromEntries(described)).toEqual({
    ...Object.fromEntries(Object.keys(fields).map((name) => [name, 'Own.'])),
    inherited: 'Inner.',
    sizes: undefined,
  })
})

test.each([
  ['readonly', z.int().readonly()],
  ['nonoptional', z.int().optional().nonoptional()],
  ['catch', z.int().catch(7)],
  ['catch', z.int().catch(({ value }) => String(value).length)],
  ['prefault', z.int().prefault(7)],
  ['union', z.union([z.int().min(1), z.int().max(-1)])],
  ['literal', z.literal(['small', 'great'])],
  ['list', z.array(z.int().readonly()).readonly()],
])('the document has a parameter of the type %s', (name, field) => {
  const document = start({ it: query({}, z.object({ [name]: field })) })
  const required = !field.safeParse(undefined).success
  expect(document.paths?.['/toys']?.get?.parameters).toMatchObject([
    { name, in: 'query', ...(required && { required }) },
  ])
})

test('a conflict is documented as 409 with its own message', () => {
  const conflict = 'There is a ball already'
  const document = start({ it: mutation({ method: 'PUT', conflict }) })
  expect(document.paths?.['/toys']?.put?.responses).toMatchObject({
    409: {
      description: 'The state of the resource does not allow the request',
      content: {
        'application/json': { example: { code: 'CONFLICT', message: conflict, status: 409 } },
      },
    },
  })
})

/** A procedure, or all that the service has; and a part of the error. */
type Wrong = [what: string, Procedures[string] | Procedures, problem: string]

const wrong: Wrong[] = [
  ['a name of 65 characters', { ['a'.repeat(65)]: right }, 'has a name of more than 64'],
  ['no meta', procedure.input(Toy).output(Toy).query(give), 'needs .meta('],
  ['no input', get.output(Toy).query(give), 'needs exactly one .input('],
  ['two inputs', get.input(Toy).input(Toy).output(Toy).query(give), 'needs exactly one .input('],
  ['no output', get.input(Toy).query(give), 'needs an .output('],
  [
    'GET for a mutation',
    mutation(reading, Toy),
    'is a mutation, which does not fit the method GET',
  ],
  [
    'POST for a query',
    query({ method: 'POST', exampleInput: example }, NewToy),
    'is a query, which does not fit the method POST',
  ],
  ['an input that is no object', query({}, z.string()), 'needs an object as its input'],
  [
    'a path parameter that the input lacks',
    query({ path: '/toys/{toyId}' }),
    'has {toyId} in its path, which its input lacks',
  ],
  [
    'DELETE with an output',
    procedure.meta(restMeta(removing)).input(Toy).output(Toy).mutation(change),
    'is a DELETE: its output must be z.void()',
  ],
  [
    'GET without an output',
    get
      .input(Toy)
      .output(z.void())
      .query(() => {}),
    'must have an output',
  ],
  [
    '`paged` without the inputs of paging',
    procedure.meta(restMeta(listing)).input(Toy).output(Toys).query(page),
    'needs `limit` and `cursor` in its input',
  ],
  [
    'pages in a different order than the cursor',
    procedure
      .meta(restMeta(listing))
      .input(z.object(pagingInputs('toys', byLabel)))
      .output(Toys)
      .query(page),
    'must have the same order in paged(…) and in the pagingInputs(…) of its input',
  ],
  [
    'a page whose limit has no maximum',
    procedure
      .meta(restMeta(listing))
      .input(z.object({ ...pagingInputs('toys', BY_ID), limit: z.number().default(20) }))
      .output(Toys)
      .query(page),
    'A page needs a limit',
  ],
  [
    'a page without a limit',
    procedure
      .meta(restMeta(listing))
      .input(z.object({ cursor: pagingInputs('toys', BY_ID).cursor }))
      .output(Toys)
      .query(page),
    'needs `limit` and `cursor` in its input',
  ],
  [
    'a page without a cursor',
    procedure
      .meta(restMeta(listing))
      .input(z.object({ limit: pagingInputs('toys', BY_ID).limit }))
      .output(Toys)
      .query(page),
    'needs `limit` and `cursor` in its input',
  ],
  [
    'a page that is no list',
    procedure
      .meta(restMeta({ ...listing, example: { toys: [] } }))
      .input(z.object(pagingInputs('toys', BY_ID)))
      .output(z.object({ toys: Toys }))
      .query(page as never),
    'and a list as its output',
  ],
  [
    '`paged` with a resolver that paged(…) did not make',
    procedure
      .meta(restMeta(listing))
      .input(z.object(pagingInputs('toys', BY_ID)))
      .output(Toys)
      .query(async () => []),
    'must say `paged` and use paged(…), or neither',
  ],
  ['paged without saying so', get.input(Toy).output(Toys).query(page), 'must say `paged`'],
  ['a creation that is not idempotent', mutation(creating, Toy), 'must say `creates`'],
  [
    'a repeatable action without an idempotency key',
    mutation({ repeatable: true }),
    'must say `creates` or `repeatable` and use idempotentWrite(',
  ],
  [
    'an idempotency key without saying so',
    mutation({}, NewToy, idempotentWrite(give)),
    'must say `creates` or `repeatable` and use idempotentWrite(…), or neither',
  ],
  [
    'an output without an example',
    query({ example: undefined }),
    'The example of it does not fit its schema: The input',
  ],
  [
    'a body without an example',
    procedure
      .meta(restMeta({ ...reading, method: 'PUT' }))
      .input(NewToy)
      .output(Toy)
      .mutation(change),
    'needs an exampleInput: a body',
  ],
  [
    'an example of a body for an operation without one',
    mutation({ method: 'PUT', path: '/toys/{label}' }),
    'has an exampleInput, but no body',
  ],
  [
    'a mutation without a transaction',
    mutation({}, NewToy, give),
    'is a mutation: write(…) or idempotentWrite(…) must make its resolver',
  ],
  [
    'a query that makes its resolver with write(…)',
    get.input(Toy).output(Toy).query(change),
    'is a query, which must not write',
  ],
  [
    'an example that does not match its schema',
    query({ example: { label: 7 } }),
    'The example of it does not fit its schema: label',
  ],
  [
    'an example of the input that does not match its schema',
    mutation({ exampleInput: {} }, Toy),
    'The example of the input of it does not fit its schema: label',
  ],
  ...(['get', 'patch'] as const).map(
    (second): Wrong => [
      `GET and ${second} at one path with other parameter names`,
      { get: labelled('get', '/toys/{label}'), second: labelled(second, '/toys/{name}') },
      '/toys/{name} and /toys/{label} are the same path',
    ],
  ),
  [
    'one literal with and without percent-encoding',
    { get: labelled('get', '/m%C3%BC/{label}'), second: labelled('get', '/mü/{label}') },
    '/mü/{label} and /m%C3%BC/{label} are the same path',
  ],
  ...(['/toys/{label}.json', '/toys/label}', '/toys/{label', '/toys/{}'] as const).map(
    (path): Wrong => [
      `a parameter that is no whole segment in ${path}`,
      query({ path }),
      `In the path ${path} a parameter must be a whole segment`,
    ],
  ),
  [
    'a list in the path',
    query({ path: '/toys/{labels}' }, z.object({ labels: z.array(z.string()) })),
    'has {labels} in its path, which is a list in its input',
  ],
  ...[z.string().optional(), z.string().optional().readonly(), z.string().nullable()].flatMap(
    (label, index): Wrong[] => {
      const problem = 'has {label} in its path, which its input may omit or set to null'
      const path = '/toys/{label}'
      const input = z.object({ label, size: z.int() }).meta({ id: 'Sized' })
      const exampleInput = { size: 1 }
      return [
        [`a path without its parameter (${index})`, query({ path }, input), problem],
        [
          `a path without its parameter, and a body (${index})`,
          mutation({ path, exampleInput }, input),
          problem,
        ],
      ]
    },
  ),
  ...[z.string().nullable(), z.int().nullable().optional(), z.array(z.int().nullable())].map(
    (label, index): Wrong => [
      `null in a query (${index})`,
      query({}, z.object({ label })),
      'has label in its query, which may be null: a URL cannot say null, so use optional()',
    ],
  ),
  [
    'two parameters with one name',
    labelled('get', '/toys/{label}/parts/{label}'),
    'In the path /toys/{label}/parts/{label} two parameters have the same name',
  ],
  [
    'a creation at a path that no procedure has',
    { get: labelled('get', '/toys/{label}'), it: making('/toy/{label}') },
    'creates /toy/{label}, a path that no procedure has',
  ],
  ...(['/toys/{nonsense}', '/toys/{colour}', '/toys/{owner}', '/toys/{sizes}'] as const).map(
    (creates): Wrong => [
      `a creation that is found by ${creates}`,
      { get: labelled('get', '/toys/{label}'), it: making(creates) },
      'in what it creates: a field that is always in its output, or one of its path',
    ],
  ),
  ...[
    Toy.partial(),
    z.object({ size: z.int() }),
    z.preprocess((value) => value, z.object({ size: z.int() })),
    z.union([Toy, z.object({ size: z.int() })]).readonly(),
  ].map(
    (other, index): Wrong => [
      `a creation whose parameter one option of the output may lack (${index})`,
      { get: labelled('get', '/toys/{label}'), it: makingOneOf(Toy, other) },
      'has {label} in what it creates: a field that is always in its output, or one of its path',
    ],
  ),
  [
    'a deprecated operation with a successor that has parameters',
    query({
      deprecated: { since: new Date(0), sunset: new Date(1), successor: '/toys/{label}' },
    }),
    'has /toys/{label} as its successor: a path without parameters',
  ],
  [
    'a deprecated operation with a successor that no procedure has',
    query({ deprecated: { since: new Date(0), sunset: new Date(1), successor: '/toy' } }),
    'The procedure it points to /toy, a path that no procedure has',
  ],
  ...[
    { since: new Date('2026-13-01'), sunset: new Date(1) },
    { since: new Date(0), sunset: new Date('soon') },
    { since: new Date(1), sunset: new Date(0) },
    { since: new Date(0), sunset: new Date(0) },
  ].map(
    (dates, index): Wrong => [
      `a deprecated operation with wrong dates (${index})`,
      query({ deprecated: { ...dates, successor: '/toys' } }),
      'is deprecated: `since` and `sunset` must be dates in this order',
    ],
  ),
  ['two at one address', { one: right, other: right }, 'other and one are both at GET /toys'],
  [
    'two at one address, with another between them',
    { one: right, between: query({ path: '/balls' }), other: right },
    'other and one are both at GET /toys',
  ],
  [
    'an object in a URL',
    query({}, z.object({ toy: Toy })),
    'toy of it is of the type object, which no URL can have',
  ],
  ...[z.date(), z.date().min(new Date(0)), z.date().max(new Date(0)).optional()].map(
    (at, index): Wrong => [
      `times of any year (${index})`,
      query({}, z.object({ at })),
      'The input of it.at accepts more years than dateTimeInput(…), which REST cannot encode',
    ],
  ),
  [
    'a type that JSON cannot represent',
    query({}, z.object({ toys: z.map(z.string(), Toy) })),
    'The input of it.toys is of the type map, which REST cannot encode',
  ],
  ...[z.boolean(), z.bigint()].map(
    (other): Wrong => [
      `a union of a string and a ${other.def.type}`,
      query({}, z.object({ label: z.union([z.string(), other]) })),
      'The input of it.label mixes types',
    ],
  ),
  ...[
    [z.array(z.string()), z.array(z.bigint()), 'label[]'] as const,
    [z.string().nullable(), z.bigint().nullable(), 'label'] as const,
    [z.string(), z.string().nullable(), 'label'] as const,
    [Toy, z.array(Toy), 'label'] as const,
    [Toy, z.object({ label: z.bigint() }), 'label.label'] as const,
    [z.object({ size: z.int() }), z.object({ size: z.bigint() }), 'label.size'] as const,
  ].map(
    ([one, other, place]): Wrong => [
      `a union of types in ${place}`,
      mutation({}, z.object({ label: z.union([one, other]) }).meta({ id: 'Mixed' })),
      `The input of it.${place} mixes types`,
    ],
  ),
  [
    'a union in a URL',
    query({}, z.object({ toy: z.union([Toy, Toy.partial()]) })),
    'toy of it is of the type union, which no URL can have',
  ],
  [
    'a union as the whole input',
    mutation({}, z.union([NewToy, NewToy.partial()]).meta({ id: 'NewToys' })),
    'needs an object as its input',
  ],
  ...['constructor', 'toString'].map(
    (name): Wrong => [
      `a field with the name ${name}`,
      query({}, z.object({ [name]: z.string().optional() })),
      `The input of it.${name} has a name that all objects inherit, which REST cannot encode`,
    ],
  ),
  [
    'an input that contains itself',
    mutation({}, Nest),
    'The input of it.inside[] contains itself, which REST cannot encode: change its schema',
  ],
  [
    'an output that contains itself by another object',
    get.input(Toy).output(Chain).query(give),
    'The output of it.next.chain contains itself, which REST cannot encode: change its schema',
  ],
  ...[Knot, Fork].map(
    (output, index): Wrong => [
      `an output that contains itself or something else (${index})`,
      get
        .input(Toy)
        .output(output)
        .query(give as never),
      'The output of it.next contains itself, which REST cannot encode: change its schema',
    ],
  ),
  ...[
    z.bigint().catch(7n),
    z.object({ size: z.bigint() }).catch({ size: 7n }),
    z.object({ size: z.bigint(), more: z.string() }).catch({ size: 7n, more: '' }),
  ].map(
    (size, index): Wrong => [
      `a bigint in catch(…) (${index})`,
      mutation({}, z.object({ size }).meta({ id: 'Caught' })),
      'The input of it.size has a bigint in catch(…), which REST cannot encode: change its schema',
    ],
  ),
  ['a rule for unknown fields', query({}, z.looseObject({})), 'has a rule for unknown fields'],
  ...[z.enum({ One: 1, Two: 2 }), z.literal(7), z.literal(['a', null])].map(
    (odd): Wrong => [
      `${odd.def.type}s of other things than texts`,
      query({}, z.object({ label: odd })),
      'The input of it.label allows values that are not strings, which REST cannot encode',
    ],
  ),
  [
    'a record in the output',
    get
      .input(Toy)
      .output(z.object({ toys: z.array(z.record(z.string(), z.string())) }))
      .query(async () => ({ toys: [] })),
    'The output of it.toys[] is of the type record, which REST cannot encode',
  ],
  ['a body without a name', mutation({}, z.object({ label: z.string() })), 'needs an id'],
  [
    'two schemas with one name',
    mutation(
      { exampleInput: { ...example, size: 3 } },
      z.object({ label: z.string(), size: z.int() }).meta({ id: 'Toy' }),
    ),
    'There are two different schemas with the name Toy',
  ],
  [
    'a schema with the name of that of the errors',
    get
      .input(Toy)
      .output(Toy.meta({ id: 'Error' }))
      .query(give),
    'There are two different schemas with the name Error',
  ],
]

test.each(wrong)('%s: no start', (_what, described, problem) => {
  // A procedure is a function; several are an object.
  const procedures = typeof described === 'function' ? { it: described } : described
  expect(() => start(procedures as Procedures)).toThrow(problem)
})

test('a tag without a description: no start', () => {
  expect(() => start({ it: right }, {})).toThrow('The tag toys of it needs a description')
})

test('an order that does not end in a unique column: no start', () => {
  const column = { column: 'label', type: 'text', direction: 'ascending' } as const
  expect(() => orderBy([column])).toThrow('An order must end in a column that is unique')
  expect(() => orderBy([])).toThrow('An order must end in a column that is unique')
})

test('a row whose ordered column has another type has no cursor', () => {
  const problem = 'must have the column label of type text'
  for (const label of [7n, undefined as never]) {
    expect(() => byLabel.cursorOf({ label })).toThrow(problem)
  }
})

describe('two bodies with schemas with one name', () => {
  const label = z.string()
  const put = (input: z.ZodType) => mutation({ method: 'PUT' }, input)
  const post = (input: z.ZodType) => mutation({}, input)
  const size = (values: [string, ...string[]]) => z.enum(values).optional().meta({ id: 'Size' })

  test.each([
    [
      'equal except for a constraint',
      z.object({ label: label.max(40) }),
      z.object({ label: label.max(41) }),
    ],
    ['equal except for `required`', z.object({ label }), z.object({ label: label.optional() })],
    [
      'equal except for the description',
      z.object({ label }),
      z.object({ label }).describe('Another.'),
    ],
  ])('%s: no start', (_what, one, other) => {
    const procedures = { one: put(one.meta({ id: 'New' })), other: post(other.meta({ id: 'New' })) }
    expect(() => start(procedures)).toThrow('There are two different schemas with the name New')
  })

  test('nested in schemas with different names: no start', () => {
    const one = z.object({ label, size: size(['small']) }).meta({ id: 'One' })
    const other = z.object({ label, size: size(['great']) }).meta({ id: 'Other' })
    expect(() => start({ one: put(one), other: post(other) })).toThrow('"Size"')
  })

  test('nested in one body: it is a component', () => {
    const one = z.object({ label, size: size(['small']) }).meta({ id: 'One' })
    expect(start({ one: put(one) }).components?.schemas).toMatchObject({
      One: { properties: { size: { $ref: '#/components/schemas/Size' } } },
      Size: { enum: ['small'] },
    })
  })

  test('two outputs with schemas with one name: no start', () => {
    const other = procedure
      .meta(restMeta({ ...reading, path: '/others' }))
      .input(z.object({}))
      .output(z.object({ label: label.max(40) }).meta({ id: 'Toy' }))
      .query(give)
    expect(() => start({ right, other })).toThrow('"Toy"')
  })

  test('equal schemas start', () => {
    const both = { one: put(NewToy), other: post(z.object({ label }).meta({ id: 'NewToy' })) }
    expect(start(both).components?.schemas).toHaveProperty('NewToy')
  })
})
