/** Nine errors that REST on a tRPC router is prone to. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { errorOf, type Service, startService, trpcClient } from '../../support/service.ts'

let service: Service
beforeAll(async () => {
  service = await startService({ STAGING_URL: 'https://staging.petstore.example/v1' })
  await service.rest('POST', '/pets', { body: { name: 'Rex', categoryId: 3 } })
})
afterAll(() => service.stop())

const anonymous = { authorization: undefined }

test('1: REST calls do not loosen the validation of tRPC', async () => {
  const { rest, trpc } = service
  await rest('GET', '/pets?limit=7&cursor=0')
  await rest('GET', '/pets/1')
  await rest('POST', '/pets', { body: { name: 'Rex', categoryId: 3 } })
  const loose = ['7', true, null, '']
  for (const value of loose) {
    const calls = [
      trpc.listPets.query({ limit: value as never }),
      trpc.listPets.query({ cursor: value as never }),
      trpc.getPet.query({ petId: value as never }),
      trpc.createPet.mutate({ name: 'Rex', categoryId: value as never }),
    ]
    for (const call of calls) expect(await errorOf(call)).toMatchObject({ code: 'BAD_REQUEST' })
    const answer = await rest('POST', '/pets', { body: { name: 'Rex', categoryId: value } })
    expect(answer.status).toBe(400)
  }
})

test('2: application/json with a parameter is accepted as a body', async () => {
  const { status } = await service.rest('POST', '/pets', {
    body: { name: 'Rex', categoryId: 3 },
    headers: { 'content-type': 'application/json; charset=utf-8' },
  })
  expect(status).toBe(201)
})

test('3: an error has a code, a message of the service, and a status', async () => {
  const { text } = await service.rest('POST', '/pets', { body: { name: '' } })
  expect(text).toBe(
    '{"code":"BAD_REQUEST","message":"name must not be empty; categoryId is required","status":400}',
  )
})

test('4: an unknown error returns no details', async () => {
  await service.sql('alter table pets rename to animals')
  try {
    const { text } = await service.rest('GET', '/pets')
    expect(text).toBe(
      '{"code":"INTERNAL_SERVER_ERROR","message":"Internal server error","status":500}',
    )
    expect((await errorOf(service.trpc.listPets.query())).message).toBe('Internal server error')
  } finally {
    await service.sql('alter table animals rename to pets')
  }
})

test('5: the document has 201, one Error schema, an example per error, and two servers', async () => {
  const text = await (await fetch(`${service.origin}/v1/openapi.json`)).text()
  const { paths, servers, components } = JSON.parse(text)
  expect(Object.keys(paths['/pets'].post.responses)).toContain('201')
  expect(Object.keys(paths['/pets'].post.responses)).not.toContain('200')
  expect(Object.keys(components.schemas)).toContain('Error')
  expect(text).not.toMatch(/issues|error\.[A-Z_]+/)
  expect(servers).toHaveLength(2)
  const messages = [paths['/pets'].get, paths['/pets'].post, paths['/pets/{petId}'].get].map(
    ({ responses }) => {
      const { example, examples } = responses[400].content['application/json']
      return (example ?? examples.BAD_REQUEST.value).message
    },
  )
  expect(new Set(messages).size).toBe(3)
})

test('6: without a key a malformed body is 401', async () => {
  for (const body of ['{', '[]', '{}', new Uint8Array([0xff])]) {
    expect((await service.rest('POST', '/pets', { body, headers: anonymous })).status).toBe(401)
  }
})

test('7: HEAD, other methods, percent-encoding, case, and paths outside REST', async () => {
  const { rest } = service
  expect((await rest('HEAD', '/pets')).status).toBe(200)
  expect((await rest('DELETE', '/pets')).status).toBe(405)
  expect((await rest('GET', '/pets/%31')).body).toMatchObject({ id: 1 })
  expect((await rest('GET', '/PETS')).status).toBe(404)
  expect((await rest('GET', '/nothing')).body).toMatchObject({
    message: 'There is nothing at this URL',
  })
})

test('8: the document names its schemas and keeps the formats of their integers', async () => {
  const { body } = await service.rest('GET', '/openapi.json')
  // document.once.test.ts checks the form of the document.
  const { paths, components } = body as { paths: Paths; components: Components }
  expect(Object.keys(components.schemas)).toEqual(
    expect.arrayContaining(['Error', 'NewPet', 'Pet', 'PetStatus', 'Pets']),
  )
  for (const [name, fields] of [
    ['NewPet', ['categoryId']],
    ['Pet', ['id', 'categoryId']],
  ] as const) {
    for (const field of fields) {
      const schema = components.schemas[name]?.properties?.[field]
      expect(schema, `${name}.${field}`).toMatchObject({ type: 'integer', format: 'int64' })
    }
  }
  const [petId] = paths['/pets/{petId}']?.get?.parameters ?? []
  expect(petId).toMatchObject({ name: 'petId', schema: { type: 'integer', format: 'int64' } })
})

type Paths = Record<string, Record<string, { parameters?: object[] }>>
interface Components {
  schemas: Record<string, { properties?: Record<string, object> }>
}

test('9: tRPC checks the key before the input', async () => {
  const { listPets } = trpcClient(service.origin, 'none')
  expect(await errorOf(listPets.query({ limit: 0 }))).toMatchObject({ code: 'UNAUTHORIZED' })
})
