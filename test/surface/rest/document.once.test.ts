/** The OpenAPI document: valid, complete, and equal to the interface document. */
import { execFile } from 'node:child_process'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { Validator } from '@seriousme/openapi-schema-validator'
import { expect, test } from 'vitest'
import { resources } from '../../../src/petstore/resources.ts'
import { openApiDocument } from '../../../src/surface/rest/openapi/document.ts'
import { operationsOf } from '../../../src/surface/rest/operations.ts'
import { parseExact } from '../../support/rest.ts'
import { serviceForFile } from '../../support/service.ts'

/** The parts of OpenAPI that these tests read. */
interface Document {
  openapi: string
  info: { title: string; version: string; description: string }
  servers: { url: string }[]
  paths: Record<string, Record<string, Operation>>
  components: Record<'schemas' | 'headers' | 'securitySchemes', Record<string, object>>
}
interface Operation {
  operationId: string
  deprecated?: boolean
  description: string
  security: object[]
  parameters?: {
    name: string
    in: string
    required?: boolean
    description: string
    schema: object
  }[]
  requestBody?: { required: boolean; content: Record<string, { schema: object; example: unknown }> }
  'x-codeSamples'?: { lang: string; source: string }[]
  responses: Record<
    string,
    { headers: object; content: Record<string, { schema: object; examples?: object }> }
  >
}

const operation = (method: string, path: string) => document.paths[path]?.[method] as Operation
const service = await serviceForFile({ STAGING_URL: 'https://staging.petstore.example/v1' })
const response = await fetch(`${service.origin}/v1/openapi.json`) // without a key
expect(response.status).toBe(200)
expect(response.headers.get('content-type')).toBe('application/json')
const text = await response.text()
const document = parseExact(text) as Document

test('the document is valid OpenAPI 3.1', async () => {
  expect(document.openapi).toMatch(/^3\.1\.\d$/)
  const { valid, errors } = await new Validator().validate(JSON.parse(text))
  expect(errors).toBeUndefined()
  expect(valid).toBe(true)
})

test('the document has version 1.0.0 and two servers: production, then staging', () => {
  expect(document.info).toMatchObject({ title: 'Petstore', version: '1.0.0' })
  expect(document.servers.map(({ url }) => url)).toEqual([
    'https://petstore.example/v1',
    'https://staging.petstore.example/v1',
  ])
})

test.each([
  ['http://localhost:3000/v1', 'Local'],
  ['https://localhost/v1', 'Local'],
  ['http://127.0.0.1/v1', 'Local'],
  ['http://[::1]:3000/v1', 'Local'],
  ['https://127-shop.example/V1', 'Production'],
])(
  '%s is a server of the kind %s, and its samples have the URL of tRPC',
  (baseUrl, description) => {
    const operations = operationsOf(resources.router, resources.tags)
    const { servers, info } = openApiDocument(resources, operations, {
      baseUrl,
      stagingUrl: undefined,
    })
    expect(servers).toEqual([{ url: baseUrl, description }])
    expect(info.description).toContain(`url: '${new URL('/trpc', baseUrl)}'`)
  },
)

test('the guides explain every error code and name every operation that they are for', () => {
  const { description } = document.info
  expect(description.match(/^## .*$/gm)).toEqual([
    '## TypeScript? Use the client',
    '## Paging',
    '## Errors',
    '## Idempotency',
    '## 64-bit ids in JavaScript',
    '## Rate limits',
    '## Deprecation',
  ])
  const codes = new Set([...text.matchAll(/"code":"([A-Z_]+)"/g)].map(([, code]) => code))
  expect(codes.size).toBeGreaterThan(10)
  for (const code of codes) expect(description).toMatch(new RegExp(`^\\| \`${code}\` \\|`, 'm'))
  expect(description).toContain(
    'The package `@petstore-catalogue/petstore` has a typed client of this service, over tRPC. It is on no public registry: ask the operator for it.',
  )
  expect(description).toContain('`GET /pets` returns a list in pages')
  expect(description).toContain('the answer to `POST /pets` is lost')
  expect(description).toContain('`GET /pets/{petId}` is deprecated since 2026-11-20')
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

test('every operation has a sample for the TypeScript client that runs', async () => {
  const client = pathToFileURL(path.resolve('client/src/client.ts')).href
  const sources = Object.values(document.paths)
    .flatMap((item) => Object.values(item))
    .map((operation) => operation['x-codeSamples']?.[0]?.source ?? '')
  expect(sources.map((source) => source.split('\n').at(-1))).toEqual([
    'const answer = await petstore.listPets.query({ limit: 20 })',
    "const answer = await petstore.createPet.mutate({ name: 'Rex', categoryId: 3n, status: 'available' })",
    'const answer = await petstore.getPet.query({ petId: 42n })',
  ])
  const run = promisify(execFile)
  const results = sources.map((source) => {
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
  expect(made).toContain("name: 'Rex', categoryId: 3n, status: 'available'")
  expect(got).toContain('There is no animal with the id 42')
})

test('every operation requires a bearer key', () => {
  const [name] = Object.keys(document.components.securitySchemes)
  expect(document.components.securitySchemes[String(name)]).toMatchObject({
    type: 'http',
    scheme: 'bearer',
  })
  for (const item of Object.values(document.paths)) {
    for (const { security } of Object.values(item))
      expect(security).toEqual([{ [String(name)]: [] }])
  }
})

// Beyond the safe integers: these are the exact digits.
const int64 = {
  type: 'integer',
  format: 'int64',
  minimum: -9223372036854775808n,
  maximum: 9223372036854775807n,
}
const reference = (name: string) => ({ $ref: `#/components/schemas/${name}` })

test('parameters have their constraints and defaults', () => {
  const { parameters = [] } = operation('get', '/pets')
  const byName = Object.fromEntries(parameters.map((parameter) => [parameter.name, parameter]))
  expect(
    parameters.map((parameter) => [parameter.name, parameter.in, parameter.required ?? false]),
  ).toEqual([
    ['limit', 'query', false],
    ['status', 'query', false],
    ['cursor', 'query', false],
  ])
  expect(byName.limit?.schema).toEqual({
    type: 'integer',
    format: 'int32',
    minimum: 1,
    maximum: 100,
    default: 20,
  })
  expect(JSON.stringify(byName.status?.schema)).toContain(reference('PetStatus').$ref)
  expect(byName.cursor?.schema).toEqual(int64)
  expect(operation('get', '/pets/{petId}').parameters).toMatchObject([
    { name: 'petId', in: 'path', required: true, schema: int64 },
  ])
  expect(operation('post', '/pets').parameters).toMatchObject([
    { name: 'Idempotency-Key', in: 'header' },
  ])
  for (const { description } of parameters) expect(description).toMatch(/\.$/)
})

test('every component is defined once and referenced', () => {
  const { schemas } = document.components
  const names = Object.keys(schemas)
  const known = ['Error', 'NewPet', 'Pet', 'PetStatus', 'Pets', 'Refusal']
  expect(names).toEqual(expect.arrayContaining(known))
  // No component is unused, and no reference is broken.
  const referred = [...text.matchAll(/"#\/components\/schemas\/([^"]+)"/g)].map(([, name]) => name)
  expect(names.sort()).toEqual([...new Set(referred)].sort())
  expect(schemas.PetStatus).toMatchObject({
    type: 'string',
    enum: ['available', 'pending', 'sold'],
  })
  expect(schemas.NewPet).toMatchObject({
    type: 'object',
    required: ['name', 'categoryId'],
    properties: { name: { type: 'string', minLength: 1, maxLength: 255 }, categoryId: int64 },
  })
  expect(schemas.NewPet, 'unknown fields').not.toHaveProperty('additionalProperties', false)
  expect(schemas.Pet).toMatchObject({
    required: ['id', 'name', 'categoryId', 'status'],
    properties: {
      id: int64,
      name: { type: 'string', minLength: 1, maxLength: 255 },
      categoryId: int64,
      status: reference('PetStatus'),
    },
  })
  expect(schemas.Pets).toMatchObject({ type: 'array', items: reference('Pet'), maxItems: 100 })
  expect(schemas.Error).toMatchObject({
    required: ['code', 'message', 'status'],
    properties: {
      code: { type: 'string' },
      message: { type: 'string' },
      status: { type: 'integer' },
    },
  })
  expect(text.match(/"enum":\["available"/g)).toHaveLength(1)
  expect(operation('post', '/pets').requestBody).toMatchObject({
    required: true,
    content: { 'application/json': { schema: reference('NewPet') } },
  })
})

test.each([
  ['listPets', 'get', '/pets', 200, 'Pets', [400, 401, 408, 429, 431, 500, 503], ['Link']],
  [
    'createPet',
    'post',
    '/pets',
    201,
    'Pet',
    [400, 401, 403, 408, 409, 413, 415, 422, 429, 431, 500, 503],
    ['Location'],
  ],
  [
    'getPet',
    'get',
    '/pets/{petId}',
    200,
    'Pet',
    [400, 401, 404, 408, 429, 431, 500, 503],
    ['Deprecation', 'Link', 'Sunset'],
  ],
] as const)(
  '%s: %s %s returns %i with %s, or one of its errors',
  (id, method, path, success, name, errors, headers) => {
    const { operationId, responses } = operation(method, path)
    expect(operationId).toBe(id)
    expect(Object.keys(responses).map(Number)).toEqual([success, ...errors])
    expect(responses[success]?.content).toMatchObject({
      'application/json': { schema: reference(name) },
    })
    expect(Object.keys(responses[success]?.headers ?? {})).toEqual(
      expect.arrayContaining([...headers]),
    )
    for (const status of errors) {
      expect(responses[status]?.content).toMatchObject({
        'application/json': {
          schema: reference([408, 431].includes(status) ? 'Refusal' : 'Error'),
        },
      })
    }
    expect(responses[401]?.headers).toHaveProperty('WWW-Authenticate')
  },
)

test('400 has an example of each code, with the code as its name', () => {
  const { examples } = operation('post', '/pets').responses[400]?.content['application/json'] ?? {}
  const example = (code: string, message: string) => ({ value: { code, message, status: 400 } })
  expect(examples).toEqual({
    BAD_REQUEST: example('BAD_REQUEST', 'name is required; categoryId is required'),
    PARSE_ERROR: example('PARSE_ERROR', 'The request is not well-formed: its JSON cannot be read'),
  })
})

test('listPets can look up one animal, as the description of getPet says', async () => {
  const { description } = operation('get', '/pets/{petId}')
  expect(description).toContain('`cursor` = `id` − 1 and `limit=1`')
  expect(description).toContain(
    'if the list is empty, or its animal has a greater `id`, no animal has this `id`',
  )
  const made: bigint[] = []
  for (const name of ['Rex', 'Bella', 'Max']) {
    made.push((await service.trpc.createPet.mutate({ name, categoryId: 1 })).id)
  }
  const [first, second, third] = made as [bigint, bigint, bigint]
  await service.sql(`delete from pets where id = ${second}`)
  const idAt = async (id: bigint) => {
    const { body } = await service.rest('GET', `/pets?cursor=${id - 1n}&limit=1`)
    return (body as { id: number }[])[0]?.id
  }
  expect(await Promise.all([first, second, third, third + 1n].map(idAt))).toEqual([
    Number(first),
    Number(third), // a greater id: the second animal does not exist
    Number(third),
    undefined,
  ])
})

test('getPet is deprecated and has a date of removal', () => {
  const getPet = operation('get', '/pets/{petId}')
  expect(getPet.deprecated).toBe(true)
  expect(getPet.description).toContain('5 December 2030')
  expect(operation('get', '/pets').deprecated ?? false).toBe(false)
  expect(operation('post', '/pets').deprecated ?? false).toBe(false)
})
