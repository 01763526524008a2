/** The OpenAPI document: valid, complete, and equal to the interface document. */
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { Validator } from '@seriousme/openapi-schema-validator'
import type { AnyTRPCRouter } from '@trpc/server'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { MAX_BODY, TITLE } from '../../../src/config/product.ts'
import { appRouter } from '../../../src/petstore/resources.ts'
import { texts } from '../../../src/petstore/texts.ts'
import { operationsOf } from '../../../src/procedure/definitions.ts'
import { MAX_LIMIT } from '../../../src/procedure/paging.ts'
import { router } from '../../../src/procedure/procedure.ts'
import { write } from '../../../src/procedure/write.ts'
import { openApiDocument } from '../../../src/surface/rest/openapi/document.ts'
import { documentOf } from '../../../src/surface/rest/openapi/published.ts'
import { routesOf } from '../../../src/surface/rest/routes.ts'
import { blocksOf, filesIn } from '../../support/documents.ts'
import { described, procedure } from '../../support/procedures.ts'
import { parseExact } from '../../support/rest.ts'
import { resourcesOfService, serviceForFile } from '../../support/service.ts'
import { teamRouter } from '../../teams/router.ts'
import { visitRouter } from '../../visits/router.ts'

/** The parts of OpenAPI that these tests read. */
interface Document {
  openapi: string
  info: { title: string; version: string; description: string }
  servers: { url: string }[]
  paths: Record<string, Record<string, Operation>>
  components: Record<'schemas' | 'headers' | 'securitySchemes', Record<string, object>>
}
interface Described {
  properties?: Record<string, object>
}
interface Operation {
  operationId: string
  deprecated?: boolean
  description: string
  security: object[]
  parameters?: { name: string; schema: { default?: unknown } }[]
  'x-codeSamples'?: { lang: string; source: string }[]
  responses: Record<string, { content: object }>
}

const make = (router: AnyTRPCRouter, baseUrl: string) =>
  openApiDocument(routesOf(operationsOf(router), baseUrl), texts, {
    baseUrl,
    stagingUrl: undefined,
  })
const operationAt = (method: string, path: string) => document.paths[path]?.[method] as Operation
const service = await serviceForFile({ STAGING_URL: 'https://staging.petstore.example/v1' })
const response = await fetch(`${service.origin}/v1/openapi.json`) // without a key
expect(response.status).toBe(200)
expect(response.headers.get('content-type')).toBe('application/json')
const text = await response.text()
const document = parseExact(text) as Document

test.each([
  ['http://localhost:3000/v1', undefined],
  ['https://pets.example/shop/$&/V1', 'https://staging.pets.example/v1'],
  ['https://petstore.example/v1', undefined],
])('the document at %s is the published one with its URLs', (baseUrl, stagingUrl) => {
  const urls = { baseUrl, stagingUrl }
  const { authentication } = resourcesOfService
  const routes = routesOf(operationsOf(appRouter), baseUrl)
  const generated = openApiDocument(routes, texts, urls, authentication)
  const published = readFileSync('openapi.json', 'utf8')
  const own = JSON.stringify(documentOf(published, urls))
  expect(parseExact(own)).toEqual(parseExact(generated))
})

test('the document is valid OpenAPI 3.1', async () => {
  expect(document.openapi).toMatch(/^3\.1\.\d$/)
  const { valid, errors } = await new Validator().validate(JSON.parse(text))
  expect(errors).toBeUndefined()
  expect(valid).toBe(true)
})

test('the document has version 1.0.0 and two servers: production, then staging', () => {
  expect(document.info).toMatchObject({ title: TITLE, version: '1.0.0' })
  expect(document.servers.map(({ url }) => url)).toEqual([
    'https://petstore.example/v1',
    'https://staging.petstore.example/v1',
  ])
})

test.each([
  ['http://localhost:3000/v1', 'Local'],
  ['http://[::1]:3000/v1', 'Local'],
  ['https://127-shop.example/V1', 'Production'],
])('%s is a server of the kind %s, and its guides have its URLs', (baseUrl, description) => {
  const made = make(appRouter, baseUrl)
  const { servers, info } = JSON.parse(made) as Document
  expect(servers).toEqual([{ url: baseUrl, description }])
  expect(info.description).toContain(`url: '${new URL('/trpc', baseUrl)}'`)
  expect(info.description).toContain(`'${baseUrl}/pets?limit=100'`)
  expect(made).not.toContain('{{')
})

test.each([
  ['an id', z.object({ size: z.int() }), { size: 1 }],
  ['an example', z.object({ size: z.int() }).meta({ id: 'Size' }), undefined],
])('a body without %s is refused', (_what, input, exampleInput) => {
  const meta = described('POST', '/sizes', {
    example: 1,
    ...(exampleInput && { exampleInput }),
  })
  const size = procedure.meta(meta).input(input).output(z.int())
  const served = router({ size: size.mutation(({ ctx }) => write(ctx, async () => 1)) })
  expect(() => make(served, 'https://x/v1')).toThrow(
    'The procedure size reads a body, so its input needs an id and an exampleInput',
  )
})

test('the guides explain every error code with its statuses, each limit, and each deprecation', async () => {
  const { description } = document.info
  const statuses = Map.groupBy(
    [...text.matchAll(/"code":"([A-Z_]+)","message":"[^"]*(?:\\"[^"]*)*","status":(\d+)/g)],
    ([, code]) => code,
  )
  expect(statuses.size).toBeGreaterThan(10)
  for (const [code, found] of statuses) {
    const all = [...new Set(found.map(([, , status]) => status))].toSorted().join(', ')
    expect(description).toContain(`| \`${code}\` | ${all} |`)
  }
  for (const limit of [MAX_BODY, MAX_LIMIT]) expect(description).toContain(`at most ${limit}`)
  const limit = operationAt('get', '/pets').parameters?.find(({ name }) => name === 'limit')
  expect(description).toContain(`\`limit\` is the size of a page: ${limit?.schema.default} if`)
  for (const [path, item] of Object.entries(document.paths)) {
    for (const [method, { deprecated }] of Object.entries(item)) {
      const line = `\n- \`${method.toUpperCase()} ${path}\` is deprecated since`
      expect(description.includes(line)).toBe(deprecated ?? false)
    }
  }
  const { headers } = await service.rest('GET', '/pets/1')
  for (const name of ['Deprecation', 'Sunset', 'Link'])
    expect(description).toContain(`\n${name}: ${headers.get(name)}\n`)
})

test('the code of the guide to paging lists everything and does not take an error for the end', async () => {
  const [, program = ''] =
    /## Paging\n[\s\S]*?```JavaScript\n([\s\S]*?)```/.exec(document.info.description) ?? []
  const list = (key: string) => {
    const script = program
      .replace('https://petstore.example', service.origin)
      .replace('<API_KEY>', key)
    return promisify(execFile)(process.execPath, ['--input-type=module', '-e', script])
  }
  expect((await list(service.key)).stdout).toMatch(/^\[.*\]\n$/)
  await expect(list('another')).rejects.toThrow('"code":"UNAUTHORIZED"')
})

test.each([
  ['bigints have no toJSON', ''],
  ['their toJSON rounds', 'BigInt.prototype.toJSON = function () { return Number(this) }'],
  ['their toJSON returns a text', 'BigInt.prototype.toJSON = function () { return String(this) }'],
])(
  '%s: the code for 64-bit ids, of the guide and of docs/clients.md, keeps all digits',
  async (_, polyfill) => {
    const [, guide = ''] =
      /## 64-bit ids.*?```JavaScript\n(.*?)```/s.exec(document.info.description) ?? []
    const json =
      '{"id":9007199254740993,"categoryId":-3,"name":"12345678901234567890","tags":[1.5,null]}'
    const exact = filesIn(blocksOf('docs/clients.md'))['exact.ts']
    for (const code of [
      `const response = new Response('${json}')\n${guide}`,
      `${exact}\nconst text = stringify(parse('${json}'))`,
    ]) {
      const program = `${polyfill}\n${code}\nconsole.log(text)`
      const words = ['--input-type=module-typescript', '-e', program]
      expect((await promisify(execFile)(process.execPath, words)).stdout).toBe(`${json}\n`)
    }
  },
)

test('every operation has a sample for the TypeScript client that runs', async () => {
  const client = pathToFileURL(path.resolve('client/src/client.ts')).href
  const sources = Object.values(document.paths)
    .flatMap((item) => Object.values(item))
    .map((operation) => operation['x-codeSamples']?.[0]?.source ?? '')
  expect(document.info.description).toContain(sources[0])
  const run = promisify(execFile)
  const results = sources.map((source) => {
    expect(source).toContain('\nconst answer = await petstore.')
    const program = source
      .replace('@petstore-catalogue/petstore/client', client)
      .replace('https://petstore.example/trpc', `${service.origin}/trpc`)
      .replace('<API_KEY>', service.key)
    const words = ['--input-type=module', '-e', `${program}\nconsole.log(answer)`]
    return run(process.execPath, words).then(
      ({ stdout }) => stdout,
      ({ stderr }: { stderr: string }) => stderr,
    )
  })
  const [listed, made, got] = await Promise.all(results)
  expect(listed).toMatch(/^\[/)
  const fields = "name: 'Rex', categoryId: 3n, status: 'available'"
  expect(made?.replaceAll(/\s+/g, ' ')).toContain(fields)
  expect(got).toContain('There is no animal with the id 42')
})

test.each([
  ['the petstore', appRouter],
  ['visits', visitRouter],
  ['teams', teamRouter],
])('the operations of %s have the fields of their inputs, and their outputs', (_, router) => {
  const { paths, components } = JSON.parse(make(router, 'https://x/v1')) as Document
  const [scheme = ''] = Object.keys(components.securitySchemes)
  for (const { operation: served, operationId: id, ...rest } of routesOf(
    operationsOf(router),
    '',
  )) {
    const { name, input, output, access } = served
    const operation = paths[rest.path]?.[rest.method.toLowerCase()] as Operation
    const { operationId, deprecated = false, security, parameters = [], responses } = operation
    expect([operationId, deprecated]).toEqual([id, rest.deprecated !== undefined])
    expect(security, name).toEqual(access.isPublic ? [] : [{ [scheme]: [] }])
    const object = (input instanceof z.ZodPrefault ? input.unwrap() : input) as z.ZodObject
    const fields = rest.takesInput ? Object.keys(object.shape) : []
    const isInUrl = (field: string) => !rest.exampleInput || rest.path.includes(`{${field}}`)
    const inHeader = [...Object.keys(access.headers ?? {}), rest.takesKey && 'Idempotency-Key']
    const names = [...fields.filter(isInUrl), ...inHeader.filter(Boolean)].sort()
    expect(parameters.map(({ name }) => name).sort(), name).toEqual(names)
    const bodyId = `${input.meta()?.id}`
    const body = rest.exampleInput && (components.schemas[bodyId] as Described)
    const inBody = fields.filter((field) => !isInUrl(field))
    expect(Object.keys(body?.properties ?? {}).sort(), name).toEqual(inBody.sort())
    const status = rest.creates ? 201 : output instanceof z.ZodVoid ? 204 : 200
    const outputId = output?.meta()?.id
    const schema = outputId ? { $ref: `#/components/schemas/${outputId}` } : expect.anything()
    const content = status === 204 ? undefined : { 'application/json': { schema } }
    expect(responses[status]).toMatchObject({ ...(content && { content }) })
    const error = { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } }
    for (const [status, response] of Object.entries(responses))
      if (Number(status) >= 400)
        expect(response, `${name} ${status}`).toMatchObject({ content: error })
  }
})

test('404 has the messages of all resources that an operation needs', () => {
  const { paths } = JSON.parse(make(visitRouter, 'https://x/v1')) as Document
  const { put } = paths['/owners/{ownerId}/visits/{visitId}/helpers/{helperId}'] ?? {}
  const error = (message: string) => ({ value: { code: 'NOT_FOUND', message, status: 404 } })
  expect(put?.responses[404]?.content).toMatchObject({
    'application/json': {
      examples: {
        NOT_FOUND: error('There is no visit with the id 7'),
        NOT_FOUND_2: error('There is no helper with the id 5'),
      },
    },
  })
})

test('400 has the rules that no field alone can break, and 409 what comes first', () => {
  const { paths } = JSON.parse(make(visitRouter, 'https://x/v1')) as Document
  const error = (message: string) => ({ value: { code: 'BAD_REQUEST', message, status: 400 } })
  const { 400: wrong } = paths['/tours']?.post?.responses ?? {}
  expect(wrong).toMatchObject({
    description: expect.stringContaining(
      'breaks a rule: until must be after from; visitIds must not name a visit twice',
    ),
    content: {
      'application/json': {
        examples: {
          BAD_REQUEST_3: error('until must be after from'),
          BAD_REQUEST_4: error('visitIds must not name a visit twice'),
        },
      },
    },
  })
  expect(paths['/tours/{tourId}/finish']?.post?.responses[409]).toMatchObject({
    description: expect.stringContaining('allow the request: `startTour` comes first.'),
  })
})

test('every parameter and field has a description, also behind optional()', () => {
  const color = z.string().optional().meta({ description: 'Keep only this color.' })
  const meta = described('GET', '/toys', { example: 'Ball' })
  const toys = procedure.meta(meta).input(z.object({ color })).output(z.string())
  const served = router({ toys: toys.query(async () => 'Ball') })
  const others = [served, visitRouter].map((other) => JSON.parse(make(other, 'https://x/v1')))
  for (const made of [document, ...(others as Document[])]) {
    const operations = Object.values(made.paths).flatMap((item) => Object.values(item))
    for (const { parameters = [] } of operations) {
      for (const parameter of parameters) expect(parameter).toHaveProperty('description')
    }
    for (const { properties = {} } of Object.values(made.components.schemas) as Described[]) {
      for (const field of Object.values(properties)) {
        expect(Object.keys(field).join()).toMatch(/description|\$ref/)
      }
    }
  }
  expect(make(served, 'https://x/v1')).toContain('"description":"Keep only this color."')
})

test('a default of a body is in its description alone, also in objects and lists; a parameter has its own', () => {
  const place = z.object({ floor: z.int().default(0).meta({ description: 'The floor.' }) })
  const one = z.object({ size: z.enum(['s', 'm']).default('m'), default: z.boolean() })
  const Parcel = z.object({
    place: place.meta({ id: 'Place' }),
    toys: z.array(one).default([]),
    note: z.string().nullable().default(null).meta({ description: 'A note.' }),
  })
  const meta = { example: 'Sent', exampleInput: { place: {} } }
  const send = (path: `/${string}`) =>
    procedure
      .meta(described('POST', path, meta))
      .input(Parcel.meta({ id: 'Parcel' }))
      .output(z.string())
      .mutation(({ ctx }) => write(ctx, async () => 'Sent'))
  const list = procedure
    .meta(described('GET', '/parcels', { example: 'None' }))
    .input(z.object({ floor: z.int().default(0) }))
    .output(z.string())
    .query(async () => 'None')
  const served = router({ send: send('/parcels'), sendAgain: send('/parcels/again'), list })
  const { paths, components } = JSON.parse(make(served, 'https://x/v1'))
  expect(components.schemas.Parcel.properties).toEqual({
    place: { $ref: '#/components/schemas/Place' },
    toys: {
      type: 'array',
      items: {
        type: 'object',
        properties: {
          size: { type: 'string', enum: ['s', 'm'], description: 'Default: `m`.' },
          default: { type: 'boolean' },
        },
        required: ['default'],
      },
      description: 'Default: `[]`.',
    },
    note: { type: ['string', 'null'], description: 'A note. Default: `null`.' },
  })
  const { floor } = components.schemas.Place.properties
  expect(floor).toMatchObject({ type: 'integer', description: 'The floor. Default: `0`.' })
  expect(floor).not.toHaveProperty('default')
  expect(paths['/parcels'].get.parameters[0].schema.default).toBe(0)
})

test('a tag with two texts, and a schema with the id of another, are refused', () => {
  const toy = (path: `/${string}`, text = 'Toys.', id = 'Toy') =>
    procedure
      .meta(
        described('PUT', path, {
          ...{ tag: { name: 'toys', description: text }, example: 1 },
          exampleInput: { [path]: 1 },
        }),
      )
      .input(z.object({ [path]: z.int() }).meta({ id }))
      .output(z.int())
      .mutation(({ ctx }) => write(ctx, async () => 1))
  const start = (procedures: Record<string, ReturnType<typeof toy>>) => () =>
    make(router(procedures), 'https://x/v1')
  expect(start({ one: toy('/a'), two: toy('/b', 'Games.', 'Game') })).toThrow(
    'The procedure two has another text for the tag toys',
  )
  expect(start({ one: toy('/a'), two: toy('/b') })).toThrow(
    /The body of the procedure two has the id Toy/,
  )
})

test('every component is referenced, and no example is an Idempotency-Key', () => {
  const referred = [...text.matchAll(/"#\/components\/schemas\/([^"]+)"/g)].map(([, name]) => name)
  const names = Object.keys(document.components.schemas)
  expect(names.toSorted()).toEqual([...new Set(referred)].toSorted())
  expect(names).toEqual(expect.arrayContaining(['Error', 'NewPet', 'Pet', 'PetStatus', 'Pets']))
  // A program that fills in examples would send the same key with every request.
  const [key] = operationAt('post', '/pets').parameters ?? []
  expect(key).toMatchObject({ name: 'Idempotency-Key', in: 'header' })
  expect(JSON.stringify(key)).not.toContain('example')
  // A program that knows no patterns fills in as many characters as are allowed.
  expect(key).toHaveProperty('schema.maxLength', 255)
})

test('tools of any language can read the document: integers, patterns, answers with new fields', () => {
  const visit = (part: unknown): void => {
    if (typeof part !== 'object' || part === null) return
    const { pattern, additionalProperties, ...rest } = part as Record<string, unknown>
    expect(additionalProperties, 'answers may gain fields').toBeUndefined()
    if (typeof pattern === 'string') {
      // \\s, \\w and \\d mean other characters elsewhere, and a quote ends a string of Python.
      expect(pattern).not.toMatch(/\\[a-wyzA-Z]|["'\n]/)
      expect(pattern.match(/\\x(?![0-9a-f]{2})/)).toBeNull()
      // A tool that makes strings of a pattern may not end with a repeated group.
      expect(pattern).not.toMatch(/\)[*+?{]/)
    }
    for (const value of Object.values(rest)) {
      if (typeof value === 'number') expect(Number.isSafeInteger(value)).toBe(true)
      visit(value)
    }
  }
  visit(JSON.parse(text))
  expect(document.components.schemas.Pet).not.toHaveProperty('properties.name.pattern')
  expect(document.components.schemas.Pet).toHaveProperty('properties.name.maxLength', 2 * 255)
})
