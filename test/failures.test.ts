/** The database fails under the running service: 500 or 503 on both surfaces, and not a word more. */
import { DatabaseSync } from 'node:sqlite'
import { sql } from 'kysely'
import { afterEach, expect, test } from 'vitest'
import { engine, newDatabase } from './support/database.ts'
import { ofRest, ofTrpc } from './support/outcome.ts'
import { startProxy } from './support/proxy.ts'
import { type Service, startService } from './support/service.ts'

let service: Service
afterEach(() => service.stop())

const pet = { name: 'Rex', categoryId: 3 }

/** The outcome of each operation on each surface, all at once. */
function outcomes({ rest, trpc }: Service) {
  return Promise.all([
    ofRest(rest('GET', '/pets')),
    ofRest(rest('POST', '/pets', { body: pet })),
    ofRest(rest('GET', '/pets/1')),
    ofTrpc(trpc.listPets.query()),
    ofTrpc(trpc.createPet.mutate(pet)),
    ofTrpc(trpc.getPet.query({ petId: 1 })),
  ])
}

const internal = { code: 'INTERNAL_SERVER_ERROR', message: 'Internal server error', status: 500 }
const unavailable = {
  code: 'SERVICE_UNAVAILABLE',
  message: 'The service cannot use its database right now; try again later',
  status: 503,
}

test('a table is gone: 500, and the log knows why', async () => {
  service = await startService()
  await sql`alter table pets rename to animals`.execute(service.db)
  expect(await outcomes(service)).toEqual(Array(6).fill(internal))
  expect(service.logged.filter((line) => /no such table|doesn't exist/.test(line))).toHaveLength(6)
  await sql`alter table animals rename to pets`.execute(service.db)
  expect(await ofRest(service.rest('GET', '/pets'))).toEqual({ pets: [] })
})

test('the table of the keys is gone: 500 before anything else', async () => {
  service = await startService()
  await sql`drop table api_keys`.execute(service.db)
  expect(await outcomes(service)).toEqual(Array(6).fill(internal))
})

test('a row that no pet can have: 500, for the output is checked too', async () => {
  service = await startService()
  await sql`insert into pets (name, category_id, status) values ('Rex', 3, 'stolen')`.execute(
    service.db,
  )
  const [list, , get, trpcList, , trpcGet] = await outcomes(service)
  expect([list, get, trpcList, trpcGet]).toEqual(Array(4).fill(internal))
})

const testServerGone = () =>
  test('the server is gone: 503 with Retry-After, until it is back', async () => {
    const database = await newDatabase()
    const url = new URL(database.url)
    const proxy = await startProxy(url.hostname, Number(url.port || 3306))
    url.port = String(proxy.port)
    service = await startService({}, undefined, { ...database, url: url.href })
    await service.rest('GET', '/pets') // the key is known now, so the operations themselves fail

    await proxy.cut()
    expect(await outcomes(service)).toEqual(Array(6).fill(unavailable))
    expect((await service.rest('GET', '/pets')).headers.get('retry-after')).toBe('5')
    const stranger = { headers: { authorization: `Bearer petstore_${'A'.repeat(43)}` } }
    expect(await ofRest(service.rest('GET', '/pets', stranger))).toEqual(unavailable)

    await proxy.mend()
    expect((await service.rest('POST', '/pets', { body: pet })).status).toBe(201)
    expect(await service.trpc.getPet.query({ petId: 1 })).toMatchObject({ name: 'Rex' })
    await proxy.cut()
  })

const testFileHeld = () =>
  test('another process holds the file: 503 to who writes, while reading goes on', async () => {
    const database = await newDatabase()
    service = await startService({}, undefined, database)
    await service.rest('POST', '/pets', { body: pet })
    const other = new DatabaseSync(database.url.slice('sqlite:'.length))
    other.exec('begin immediate')
    const refused = await service.rest('POST', '/pets', { body: pet })
    expect(refused.body).toEqual(unavailable)
    expect(refused.headers.get('retry-after')).toBe('5')
    expect((await service.rest('GET', '/pets/1')).status).toBe(200)
    other.exec('rollback')
    other.close()
    expect((await service.rest('POST', '/pets', { body: pet })).status).toBe(201)
  })

if (engine === 'mysql') testServerGone()
else testFileHeld()
