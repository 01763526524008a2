/** A second resource on the service's own parts: calls, document, client, repetitions, errors. */
import { createTRPCClient, httpLink, type TRPCClient } from '@trpc/client'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { forClients } from '../../client/src/interface.ts'
import { transformer } from '../support/router.ts'
import { errorOf, keys, type Service, startService } from '../support/service.ts'
import { createStoresWithToys, routerWithToys } from './router.ts'
import { up } from './store.ts'

const clientRouter = forClients(routerWithToys)
type Client = TRPCClient<typeof clientRouter>

/** As much of the document as is looked at here. */
interface Document {
  paths: Record<string, Record<string, DocumentedOperation>>
  components: { schemas: Record<string, unknown> }
}

interface DocumentedOperation {
  operationId: string
  parameters?: { in: string; name: string; required?: boolean }[]
  requestBody?: { content: { 'application/json': { schema: object } } }
  responses: Record<
    string,
    { description: string; content: { 'application/json': { examples?: object } } }
  >
}

let service: Service
let toys: Client['toys']
beforeAll(async () => {
  service = await startService(
    { CORS_ORIGINS: 'https://shop.example', METRICS_PORT: '0' },
    {
      resources: {
        router: routerWithToys,
        tags: { pets: 'The animals.', toys: 'What they play with.' },
        createStores: createStoresWithToys,
      },
      prepare: up,
    },
  )
  const link = httpLink({
    url: `${service.origin}/trpc`,
    transformer,
    headers: { authorization: `Bearer ${service.key}` },
  })
  toys = createTRPCClient<typeof clientRouter>({ links: [link] }).toys
})
afterAll(() => service.stop())

const madeAt = '2026-01-02T03:04:05.678Z'
const ball = { label: 'Ball', price: 2.5, washable: true, madeAt, ages: [3, 4] }
const create = (body: object, headers = {}) => service.rest('POST', '/toys', { body, headers })

test('a toy is the same on both surfaces: number, boolean, date, list', async () => {
  const made = await create(ball)
  expect(made.status).toBe(201)
  const { id } = made.body as { id: number }
  expect(made.text).toBe(JSON.stringify({ id, ...ball }))
  expect(made.headers.get('location')).toBe(`${service.baseUrl}/toys/${id}`)
  expect((await service.rest('GET', `/toys/${id}`)).text).toBe(made.text)
  const toy = { ...ball, id: BigInt(id), madeAt: new Date(madeAt) }
  expect(await toys.get.query({ toyId: id })).toEqual(toy)
  const second = { ...toy, label: 'Rope' }
  const { id: secondId } = await toys.create.mutate(second)
  expect(secondId).toBeGreaterThan(toy.id)
  expect((await service.rest('GET', `/toys/${secondId}`)).body).toMatchObject({
    label: 'Rope',
    madeAt,
  })
})

const madeAtRule =
  'madeAt must be a date and time in the years 0000 to 9999 (UTC), such as 2026-01-02T03:04:05Z'

test.each([
  [{ price: '2.5' }, 'price must be a number'],
  [{ price: null }, 'price must be a number'],
  [{ price: -1 }, 'price must be at least 0'],
  [{ washable: 'true' }, 'washable must be true or false'],
  [{ washable: 1 }, 'washable must be true or false'],
  [{ madeAt: '2026-01-02' }, madeAtRule],
  [{ madeAt: '2026-02-31T25:00:00Z' }, madeAtRule],
  [{ madeAt: 1_767_322_800_000 }, madeAtRule],
  [{ ages: 3 }, 'ages must be a list'],
  [{ ages: [3.5] }, 'ages.0 must be a whole number'],
  [{ ages: ['3'] }, 'ages.0 must be a whole number'],
  [{ label: 7 }, 'label must be a string'],
  [{ label: 'x'.repeat(41) }, 'label must have at most 40 characters'],
])('%j is refused', async (wrong, message) => {
  const answer = await create({ ...ball, label: 'Wrong', ...wrong })
  expect(answer.body).toEqual({ code: 'BAD_REQUEST', message, status: 400 })
})

test.each([
  ['2', 2],
  ['2.0', 2],
  ['2e0', 2],
  ['0.1', 0.1],
  ['1e-3', 0.001],
  ['12345678901234567890', 12345678901234567000],
])('the number %s is %d', async (written, price) => {
  const body = `{"label":"Number ${written}","price":${written},"madeAt":"${madeAt}"}`
  const answer = await service.rest('POST', '/toys', { body })
  expect(JSON.parse(answer.text)).toMatchObject({ price, washable: false, ages: [] })
})

test('what is wrong with each item of a list is told by its place', async () => {
  const wrong = {
    ...ball,
    label: 'Wrong',
    madeAt: new Date(madeAt),
    ages: [3, 3.5, 4, 'x' as never],
  }
  const failed = await toys.create.mutate(wrong).catch((error) => error)
  expect(failed.data.fields).toEqual({
    'ages.1': 'must be a whole number',
    'ages.3': 'must be a whole number',
  })
})

test('a query holds texts, booleans and lists, as they are written', async () => {
  for (const label of ['Graz', 'Graz ', 'graz']) {
    expect((await create({ ...ball, label, washable: false })).status).toBe(201)
  }
  const labels = async (query: string) =>
    ((await service.rest('GET', `/toys?${query}`)).body as { label: string }[]).map(
      ({ label }) => label,
    )
  expect(await labels('label=Graz')).toEqual(['Graz'])
  expect(await labels('label=Graz%20')).toEqual(['Graz '])
  expect(await labels('washable=false&ages=3&ages=4&limit=2')).toEqual(['Graz', 'Graz '])
  expect(await labels('label=Graz&ages=3')).toEqual(['Graz'])
  expect((await toys.list.query({ label: 'graz' })).map(({ label }) => label)).toEqual(['graz'])
  for (const query of [
    'washable=1',
    'washable=True',
    'washable=',
    'ages=x',
    'ages=3.5',
    'limit=0',
  ]) {
    expect((await service.rest('GET', `/toys?${query}`)).status, query).toBe(400)
  }
})

test('pages follow each other by their Link', async () => {
  const seen: string[] = []
  let path: string | undefined = '/toys?limit=2&ages=3&ages=4'
  while (path) {
    const page = await service.rest('GET', path)
    seen.push(...(page.body as { label: string }[]).map(({ label }) => label))
    path = page.headers.get('link')?.match(/<.*\/v1(.*)>/)?.[1]
  }
  const whole = await toys.list.query({ limit: 100, ages: [3, 4] })
  expect(seen).toEqual(whole.map(({ label }) => label))
})

test('PATCH changes what it names', async () => {
  const { id } = await toys.create.mutate({ ...ball, label: 'Cube', madeAt: new Date(madeAt) })
  const patch = (body: object) => service.rest('PATCH', `/toys/${id}`, { body })
  expect((await patch({ price: 3 })).body).toMatchObject({
    label: 'Cube',
    price: 3,
    washable: true,
  })
  expect((await patch({ washable: false, toyId: 1, label: 'x' })).body).toMatchObject({
    id: Number(id),
    label: 'Cube',
    price: 3,
    washable: false,
  })
  expect((await patch({})).status).toBe(200)
  expect((await patch({ price: '3' })).status).toBe(400)
  expect((await patch([])).status).toBe(400)
  expect((await service.rest('PATCH', '/toys/999', { body: { price: 1 } })).status).toBe(404)
  expect(await toys.update.mutate({ toyId: id, price: 4 })).toMatchObject({ price: 4 })
})

test('a key that may only read changes nothing, by whatever method', async () => {
  const { body } = await create({ ...ball, label: 'Safe' })
  const { id } = body as { id: number }
  const { key } = await keys.create(service.databaseUrl, 'reader', undefined, true)
  const headers = { authorization: `Bearer ${key}` }
  for (const [method, path, sent] of [
    ['POST', '/toys', { body: { ...ball, label: 'New' } }],
    ['PATCH', `/toys/${id}`, { body: { price: 9 } }],
    ['DELETE', `/toys/${id}`, {}],
  ] as const) {
    const { status } = await service.rest(method, path, { ...sent, headers })
    expect([method, status]).toEqual([method, 403])
  }
  expect((await service.rest('GET', `/toys/${id}`, { headers })).body).toEqual(body)
})

test('DELETE gives nothing, and a second one 404', async () => {
  const { id } = await toys.create.mutate({ ...ball, label: 'Ring', madeAt: new Date(madeAt) })
  const removed = await service.rest('DELETE', `/toys/${id}`)
  expect(removed).toMatchObject({ status: 204, body: undefined })
  expect((await service.rest('DELETE', `/toys/${id}`)).status).toBe(404)
  expect(await errorOf(toys.remove.mutate({ toyId: id }))).toMatchObject({ code: 'NOT_FOUND' })
})

test('a label that is taken is 409 in words of its own, with a key and without, and ends', async () => {
  await create({ ...ball, label: 'Taken' })
  for (const headers of [{}, { 'idempotency-key': '"taken"' }, { 'idempotency-key': '"taken"' }]) {
    expect((await create({ ...ball, label: 'Taken' }, headers)).body).toEqual({
      code: 'CONFLICT',
      message: 'There is a toy with this label already',
      status: 409,
    })
  }
})

test('one Idempotency-Key, two operations: each is told that the key is used for another', async () => {
  const headers = { 'idempotency-key': '"both"' }
  const first = await create({ ...ball, label: 'Once' }, headers)
  expect((await create({ ...ball, label: 'Once' }, headers)).text).toBe(first.text)
  const pet = { name: 'Rex', categoryId: 3 }
  const other = await service.rest('POST', '/pets', { body: pet, headers })
  expect(other.status).toBe(422)
  expect((await service.rest('GET', '/pets')).text).toBe('[]')
})

test('a repetition is answered with what the first was, whatever became of it', async () => {
  const headers = { 'idempotency-key': '"kept"' }
  const first = await create({ ...ball, label: 'Kept' }, headers)
  const { id } = first.body as { id: number }
  await service.rest('PATCH', `/toys/${id}`, { body: { price: 9 } })
  expect((await create({ ...ball, label: 'Kept' }, headers)).text).toBe(first.text)
})

test('what was left out is not the same as what was sent', async () => {
  const headers = { 'idempotency-key': '"absent"' }
  const { washable: _, ...bare } = ball
  await create({ ...bare, label: 'Absent' }, headers)
  const same = await create({ ...bare, label: 'Absent', washable: false }, headers)
  expect(same.status).toBe(201) // what is left out is false
  expect((await create({ ...bare, label: 'Absent', washable: true }, headers)).status).toBe(422)
})

test('methods, Allow and CORS follow from the operations', async () => {
  const refused = await service.rest('PUT', '/toys/1')
  expect(refused.headers.get('allow')).toBe('GET, HEAD, PATCH, DELETE')
  expect(refused.body).toMatchObject({
    message: 'PUT is not supported here: use GET, HEAD, PATCH or DELETE',
  })
  const text = await service.rest('PATCH', '/toys/1', {
    body: '{}',
    headers: { 'content-type': 'text/plain' },
  })
  expect(text.status).toBe(415)
  const asked = await fetch(`${service.origin}/v1/toys/1`, {
    method: 'OPTIONS',
    headers: { origin: 'https://shop.example', 'access-control-request-method': 'PATCH' },
  })
  const allowed = asked.headers.get('access-control-allow-methods')?.split(',')
  expect(allowed).toEqual(expect.arrayContaining(['PATCH', 'DELETE']))
})

test('the document says of toys what it says of pets: ranges to the digit, lengths, sizes of pages', async () => {
  const { body } = await service.rest('GET', '/openapi.json')
  const { components, paths } = body as Document
  const int64 = { minimum: -9223372036854775808n, maximum: 9223372036854775807n }
  expect(components.schemas).toMatchObject({
    NewToy: { properties: { label: { minLength: 1, maxLength: 40 } } },
    Toy: { properties: { id: int64, label: { minLength: 1, maxLength: 40 } } },
    Toys: { maxItems: 100 },
  })
  expect(paths['/toys']?.get?.parameters).toMatchObject([
    { name: 'limit', schema: { format: 'int32', minimum: 1, maximum: 100 } },
    { name: 'cursor', schema: int64 },
    ...['label', 'washable', 'ages'].map((name) => ({ name })),
  ])
  expect(paths['/toys/{toyId}']?.patch?.parameters).toMatchObject([
    { name: 'toyId', schema: int64 },
  ])
})

test('the document says what each operation takes, and all that it may answer', async () => {
  const { body } = await service.rest('GET', '/openapi.json')
  const { components, paths } = body as Document
  const operations = Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({ path, method, ...operation })),
  )
  const told = operations
    .filter(({ path }) => path.startsWith('/toys'))
    .map(({ operationId, method, path, parameters = [], requestBody, responses }) => [
      operationId,
      `${method} ${path}`,
      parameters.map(({ in: place, name, required }) => `${place} ${name}${required ? '!' : ''}`),
      requestBody?.content['application/json'].schema,
      Object.keys(responses).map(Number),
      responses[409]?.description,
    ])
  const page = ['query limit', 'query cursor', 'query label', 'query washable', 'query ages']
  const always = [401, 408, 429, 431, 500, 503]
  const sorted = (...statuses: number[]) => [...statuses, ...always].sort()
  expect(told).toEqual([
    ['toys.list', 'get /toys', page, undefined, sorted(200, 400), undefined],
    [
      'toys.create',
      'post /toys',
      ['header Idempotency-Key'],
      { $ref: '#/components/schemas/NewToy' },
      sorted(201, 400, 403, 409, 413, 415, 422),
      'There is such a one already, or a request with the same `Idempotency-Key` is still running',
    ],
    ['toys.get', 'get /toys/{toyId}', ['path toyId!'], undefined, sorted(200, 400, 404), undefined],
    [
      'toys.update',
      'patch /toys/{toyId}',
      ['path toyId!'],
      { $ref: '#/components/schemas/ToyChange' },
      sorted(200, 400, 403, 404, 413, 415),
      undefined,
    ],
    [
      'toys.remove',
      'delete /toys/{toyId}',
      ['path toyId!'],
      undefined,
      sorted(204, 400, 403, 404),
      undefined,
    ],
  ])
  // Of two errors with one code each has a name.
  const conflicts = paths['/toys']?.post?.responses[409]?.content['application/json'].examples
  expect(conflicts).toMatchObject({
    CONFLICT: { value: { message: 'There is a toy with this label already' } },
    CONFLICT_2: { value: { message: expect.stringContaining('Idempotency-Key') } },
  })
  // What the path says is no part of the body.
  expect(components.schemas.ToyChange).toEqual({
    type: 'object',
    properties: { price: { type: 'number', minimum: 0 }, washable: { type: 'boolean' } },
    description: 'What is to change of a toy.',
  })
})

test('the log names the operation', async () => {
  await service.rest('GET', '/toys')
  await toys.list.query()
  const lines = service.logged.map((line) => JSON.parse(line))
  for (const surface of ['rest', 'trpc']) {
    expect(lines).toContainEqual(expect.objectContaining({ surface, operation: 'toys.list' }))
  }
})

test('the docs page shows toys as it shows pets', async () => {
  const html = await (await fetch(`${service.origin}/docs/`)).text()
  const operations = ['toys.list', 'toys.create', 'toys.get', 'toys.update', 'toys.remove']
  for (const id of operations) {
    expect(html).toContain(`<a href="#${id}">`)
    const [, entry = ''] = html.split(`data-entry="operation" id="${id}"`)
    const [shown = ''] = entry.split('</form>')
    const changes = !['toys.list', 'toys.get'].includes(id)
    expect(shown.includes('this changes real data'), id).toBe(changes)
  }
  expect(html).toContain('at least 0 · Example: <code>2.5</code>')
  expect(html).not.toMatch(/undefined|\[object|NaN/)
})
