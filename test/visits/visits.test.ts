import { beforeEach, expect, test } from 'vitest'
import { writePosition } from '../../client/src/encoding.ts'
import { errorOf, keys, serviceForFile, trpcClient } from '../support/service.ts'
import { visitResources, type visitRouter } from './router.ts'
import { up } from './store.ts'

/** As much of the document as is looked at here. */
interface Document {
  paths: Record<string, Record<string, DocumentedOperation>>
  components: { schemas: Record<string, unknown>; headers: Record<string, { example: string }> }
}

interface DocumentedOperation {
  operationId: string
  description: string
  parameters?: { in: string; name: string; required?: boolean; schema: object }[]
  requestBody?: { content: { 'application/json': { schema: object } } }
  responses: Record<
    string,
    { description: string; content: { 'application/json': { examples?: object } } }
  >
}

const service = await serviceForFile(
  { CORS_ORIGINS: 'https://shop.example' },
  { resources: visitResources, prepare: up },
)
const client = trpcClient<typeof visitRouter>(service.origin, service.key)

let ownerId: bigint
let visits: string
beforeEach(async () => {
  const { id } = await client.owners.create.mutate({ name: 'Ada' })
  ownerId = id
  visits = `/owners/${id}/visits`
})

const at = '2026-01-02T03:04:05.678Z'
let serial = 0
const newVisit = () => ({ reference: `V-${serial++}`, price: '2.50', at })
const create = (body: object = newVisit(), headers = {}) =>
  service.rest('POST', visits, { body, headers })
/** Adds a visit, and returns its path. */
const added = async (): Promise<string> =>
  `${visits}/${((await create()).body as { id: number }).id}`
const spent = async () => (await client.owners.get.query({ ownerId })).spent

test('a visit is the same on both surfaces', async () => {
  const body = { ...newVisit(), note: 'Asleep' }
  const made = await create(body)
  expect(made.status).toBe(201)
  const { id, createdAt } = made.body as { id: number; createdAt: string }
  const { note, ...fields } = body
  const whole = { id, ...fields, urgent: false, note, createdAt, closedAt: null }
  expect(made.text).toBe(JSON.stringify(whole))
  expect(made.headers.get('location')).toBe(`${service.baseUrl}${visits}/${id}`)
  expect((await service.rest('GET', `${visits}/${id}`)).text).toBe(made.text)
  expect(await client.visits.get.query({ ownerId, visitId: id })).toEqual({
    ...whole,
    id: BigInt(id),
    at: new Date(at),
    createdAt: new Date(createdAt),
  })
})

test('a parent that is not there is 404, on whatever it would hold', async () => {
  for (const headers of [{}, { 'idempotency-key': '"nowhere"' }]) {
    const nowhere = await service.rest('POST', '/owners/404/visits', { body: newVisit(), headers })
    expect(nowhere.body).toMatchObject({ message: 'There is no owner with the id 404' })
  }
  expect((await service.rest('GET', '/owners/404/visits')).status).toBe(404)
  const path = await added()
  const { id } = await client.owners.create.mutate({ name: 'Bob' })
  const elsewhere = path.replace(`/${ownerId}/`, `/${id}/`)
  for (const [method, place] of [
    ['GET', elsewhere],
    ['DELETE', elsewhere],
    ['POST', `${elsewhere}/close`],
  ] as const) {
    expect((await service.rest(method, place)).status, method).toBe(404)
  }
  expect((await service.rest('GET', path)).body).toMatchObject({ closedAt: null })
})

test.each([
  [{ price: 2.5 }, 'price must be a decimal number'],
  [{ price: '2.505' }, 'price must be a decimal number'],
  [{ at: '2026-02-31T00:00:00Z' }, 'at must be a date and time'],
  [{ urgent: 1 }, 'urgent must be true or false'],
  [{ note: '' }, 'note must not be empty'],
  [{ reference: 'x'.repeat(41) }, 'reference must have at most 40 characters'],
])('%j is refused', async (wrong, message) => {
  const answer = await create({ ...newVisit(), ...wrong })
  expect(answer.body).toMatchObject({ status: 400, message: expect.stringContaining(message) })
})

test('pages are newest first, also where all were added at the same moment', async () => {
  for (let count = 0; count < 5; count++) await create({ ...newVisit(), urgent: count !== 1 })
  await service.sql(`update test_visits set created_at = 7 where owner_id = ${ownerId}`)
  const idsBy = async (query: string): Promise<number[]> => {
    const ids: number[] = []
    for (let path: string | undefined = `${visits}?${query}`; path; ) {
      const page = await service.rest('GET', path)
      ids.push(...(page.body as { id: number }[]).map(({ id }) => id))
      path = page.headers.get('link')?.match(/<.*\/v1(.*)>/)?.[1]
    }
    return ids
  }
  const ids = await idsBy('limit=2')
  expect(ids).toHaveLength(5)
  expect(ids).toEqual(ids.toSorted((one, other) => other - one))
  expect(await idsBy('limit=2&urgent=true')).toEqual(ids.filter((_, index) => index !== 3))
  const [first, second] = await client.visits.list.query({ ownerId, limit: 2 })
  if (!first) throw new Error('There is no visit')
  const cursor = writePosition([first.createdAt, first.id])
  expect(await client.visits.list.query({ ownerId, limit: 1, cursor })).toEqual([second])
  const wrong = await service.rest('GET', `${visits}?cursor=7`)
  expect(wrong.body).toMatchObject({ status: 400, message: expect.stringMatching(/^cursor must/) })
})

test('PATCH changes what it names, and null clears', async () => {
  const path = await added()
  const patch = (body: object) => service.rest('PATCH', path, { body })
  expect((await patch({ price: '3', note: 'Asleep' })).body).toMatchObject({
    price: '3.00',
    note: 'Asleep',
    urgent: false,
  })
  expect((await patch({ urgent: true, visitId: 1, at })).body).toMatchObject({
    urgent: true,
    note: 'Asleep',
  })
  expect((await patch({ note: null })).body).toMatchObject({ price: '3.00', note: null })
  expect((await patch({})).status).toBe(200)
  expect((await patch({ price: null })).status).toBe(400)
  expect((await patch([])).status).toBe(400)
  expect((await service.rest('PATCH', `${visits}/999`, { body: {} })).status).toBe(404)
})

test('what is removed is seen no more, and its row stays', async () => {
  const [path] = [await added(), await added()]
  expect((await service.rest('GET', `${visits}/count`)).body).toEqual({ count: 2 })
  expect(await service.rest('DELETE', path)).toMatchObject({ status: 204, text: '' })
  expect((await service.rest('GET', `${visits}/count`)).body).toEqual({ count: 1 })
  expect((await service.rest('GET', visits)).body).toHaveLength(1)
  for (const [method, place, init] of [
    ['GET', path, {}],
    ['DELETE', path, {}],
    ['PATCH', path, { body: { price: '1' } }],
    ['POST', `${path}/close`, {}],
  ] as const) {
    expect((await service.rest(method, place, init)).status, method).toBe(404)
  }
  const visitId = Number(path.split('/').at(-1))
  const gone = client.visits.remove.mutate({ ownerId, visitId })
  expect(await errorOf(gone)).toMatchObject({ code: 'NOT_FOUND' })
  expect(await service.sql(`select id from test_visits where owner_id = ${ownerId}`)).toHaveLength(
    2,
  )
})

test('an action changes both tables, once, and repeats its answer under its key', async () => {
  const path = await added()
  const headers = { 'idempotency-key': `"close ${path}"` }
  const closed = await service.rest('POST', `${path}/close`, { headers })
  expect([closed.status, await spent()]).toEqual([200, '2.50'])
  await service.rest('PATCH', path, { body: { price: '9' } })
  const again = await service.rest('POST', `${path}/close`, { headers })
  expect([again.status, again.text]).toEqual([200, closed.text])
  expect((await service.rest('POST', `${path}/close`)).body).toMatchObject({
    status: 409,
    message: 'This visit is closed already',
  })
  const other = await added()
  const reused = await service.rest('POST', `${other}/close`, { headers })
  expect(reused.body).toMatchObject({ status: 422 })
  expect(await spent()).toBe('2.50')
})

test('of actions at the same moment one is done, and what each adds is there', async () => {
  const paths = [await added(), await added(), await added()]
  const answers = await Promise.all(
    [...paths, ...paths].map((path) => service.rest('POST', `${path}/close`)),
  )
  expect(answers.map(({ status }) => status).sort()).toEqual([200, 200, 200, 409, 409, 409])
  expect(await spent()).toBe('7.50')
})

test('a reference that is taken is 409 in words of its own, with a key and without', async () => {
  const visit = newVisit()
  await create(visit)
  for (const headers of [{}, { 'idempotency-key': '"taken"' }, { 'idempotency-key': '"taken"' }]) {
    expect((await create(visit, headers)).body).toEqual({
      code: 'CONFLICT',
      message: 'There is a visit with this reference already',
      status: 409,
    })
  }
})

test('a repetition is answered as the first was, whatever became of it', async () => {
  const headers = { 'idempotency-key': '"kept"' }
  const visit = newVisit()
  const first = await create(visit, headers)
  await service.rest('DELETE', `${visits}/${(first.body as { id: number }).id}`)
  expect((await create(visit, headers)).text).toBe(first.text)
  // What is left out is what it is by default, and nothing else.
  expect((await create({ ...visit, urgent: false }, headers)).text).toBe(first.text)
  expect((await create({ ...visit, urgent: true }, headers)).status).toBe(422)
})

test('a key that may only read changes nothing, by whatever method', async () => {
  const path = await added()
  const before = await service.rest('GET', path)
  const { key } = await keys.create(service.databaseUrl, 'reader', undefined, true)
  const headers = { authorization: `Bearer ${key}` }
  for (const [method, place, sent] of [
    ['POST', visits, { body: newVisit() }],
    ['PATCH', path, { body: { price: '9' } }],
    ['POST', `${path}/close`, {}],
    ['DELETE', path, {}],
  ] as const) {
    const { status } = await service.rest(method, place, { ...sent, headers })
    expect([method, status]).toEqual([method, 403])
  }
  expect((await service.rest('GET', path, { headers })).text).toBe(before.text)
})

test('methods, Allow and CORS follow from the operations', async () => {
  const path = await added()
  const refused = await service.rest('PUT', path)
  expect(refused.headers.get('allow')).toBe('GET, HEAD, PATCH, DELETE')
  const counted = await service.rest('DELETE', `${visits}/count`)
  expect([counted.status, counted.headers.get('allow')]).toEqual([405, 'GET, HEAD'])
  const text = await service.rest('PATCH', path, {
    body: '{}',
    headers: { 'content-type': 'text/plain' },
  })
  expect(text.status).toBe(415)
  const asked = await service.fetch(`/v1${path}`, {
    method: 'OPTIONS',
    headers: { origin: 'https://shop.example', 'access-control-request-method': 'PATCH' },
  })
  const allowed = asked.headers.get('access-control-allow-methods')?.split(',')
  expect(allowed).toEqual(expect.arrayContaining(['PATCH', 'DELETE']))
})

test('the document says what each operation takes, and all that it may answer', async () => {
  const { body } = await service.rest('GET', '/openapi.json')
  const { components, paths } = body as Document
  const operations = Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({ path, method, ...operation })),
  )
  const documented = operations
    .filter(({ path }) => path.startsWith('/owners/{ownerId}/visits'))
    .map(({ operationId, method, path, parameters = [], requestBody, responses }) => [
      operationId,
      `${method} ${path.slice('/owners/{ownerId}'.length)}`,
      parameters.map(({ in: place, name, required }) => `${place} ${name}${required ? '!' : ''}`),
      requestBody?.content['application/json'].schema,
      Object.keys(responses).map(Number),
      responses[409]?.description,
    ])
  const key = 'header Idempotency-Key'
  const one = ['path ownerId!', 'path visitId!']
  const always = [401, 408, 429, 431, 500, 503]
  const sorted = (...statuses: number[]) => [...statuses, ...always].sort()
  const orRunning = (violation: string) =>
    `${violation}, or a request with the same \`Idempotency-Key\` is still running`
  const place = '/visits/{visitId}'
  const page = ['path ownerId!', 'query limit', 'query cursor', 'query urgent']
  const bodyOf = (name: string) => ({ $ref: `#/components/schemas/${name}` })
  expect(documented).toEqual([
    ['visits.list', 'get /visits', page, undefined, sorted(200, 400, 404), undefined],
    [
      'visits.create',
      'post /visits',
      [key, 'path ownerId!'],
      bodyOf('NewVisit'),
      sorted(201, 400, 403, 404, 409, 413, 415, 422),
      orRunning('The resource exists already'),
    ],
    ['visits.get', `get ${place}`, one, undefined, sorted(200, 400, 404), undefined],
    [
      'visits.update',
      `patch ${place}`,
      one,
      bodyOf('VisitChange'),
      sorted(200, 400, 403, 404, 413, 415),
      undefined,
    ],
    ['visits.remove', `delete ${place}`, one, undefined, sorted(204, 400, 403, 404), undefined],
    [
      'visits.count',
      'get /visits/count',
      ['path ownerId!'],
      undefined,
      sorted(200, 400),
      undefined,
    ],
    [
      'visits.close',
      `post ${place}/close`,
      [key, ...one],
      undefined,
      sorted(200, 400, 403, 404, 409, 422),
      orRunning('The state of the resource does not allow the request'),
    ],
  ])
  // Of two errors with one code each has a name.
  const conflicts =
    paths['/owners/{ownerId}/visits']?.post?.responses[409]?.content['application/json'].examples
  expect(conflicts).toMatchObject({
    CONFLICT: { value: { message: 'There is a visit with this reference already' } },
    CONFLICT_2: { value: { message: expect.stringContaining('Idempotency-Key') } },
  })
  const { description } = paths['/owners/{ownerId}/visits/{visitId}/close']?.post ?? {}
  expect(description).toContain(
    'With an `Idempotency-Key` a request can be repeated safely: the repetition changes nothing and returns the first response.',
  )
  // The examples of links have no templates.
  for (const name of ['Link', 'Location'])
    expect(components.headers[name]?.example).not.toMatch(/[{}]/)
  // What the path says is no part of the body.
  const { VisitChange, Visits } = components.schemas
  expect(Object.keys((VisitChange as { properties: object }).properties)).toEqual([
    'price',
    'urgent',
    'note',
  ])
  expect(VisitChange).not.toHaveProperty('required')
  expect(Visits).toMatchObject({ maxItems: 100 })
})

test('the log names the operation', async () => {
  await service.rest('GET', visits)
  await client.visits.list.query({ ownerId })
  const lines = service.logged.map((line) => JSON.parse(line))
  for (const surface of ['rest', 'trpc']) {
    expect(lines).toContainEqual(expect.objectContaining({ surface, operation: 'visits.list' }))
  }
})

test('the docs page shows visits as it shows pets', async () => {
  const html = await (await fetch(`${service.origin}/docs/`)).text()
  const reading = ['visits.list', 'visits.get', 'visits.count']
  const changing = ['visits.create', 'visits.update', 'visits.remove', 'visits.close']
  for (const id of [...reading, ...changing]) {
    expect(html).toContain(`<a href="#${id}">`)
    const [, entry = ''] = html.split(`data-entry="operation" id="${id}"`)
    const [shown = ''] = entry.split('</form>')
    expect(shown.includes('this changes real data'), id).toBe(changing.includes(id))
  }
  expect(html).not.toMatch(/undefined|\[object|NaN/)
})
