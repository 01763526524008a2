/** Concurrent reads share a query, and each call has its own result. */
import { setTimeout } from 'node:timers/promises'
import { afterAll, describe, expect, test, vi } from 'vitest'
import { connect } from '../../../db/connect.ts'
import { Deadline } from '../../../db/deadline.ts'
import { petStore } from '../../../src/petstore/pets/store.ts'
import { engine, newDatabase } from '../../support/database.ts'
import { running } from '../../support/instance.ts'
import { abortable } from '../../support/raw.ts'
import { transformer } from '../../support/router.ts'
import { serviceForFile } from '../../support/service.ts'
import { watchStatements } from '../../support/statements.ts'

const PETS = 300

const database = await newDatabase()
const statements = await watchStatements(database.url)
afterAll(() => statements.close())
// Long, so that no timeout ends a statement.
const service = await serviceForFile({ DATABASE_TIMEOUT: '30s' }, { database })
const { sql } = service
const names = Array.from({ length: PETS }, (_, index) => `('Pet ${index + 1}', 1, 'available')`)
await sql(`insert into pets (name, category_id, status) values ${names.join(', ')}`)

const get = async (id: number) => (await service.rest('GET', `/pets/${id}`)).body
const create = async (name: string) =>
  (await service.rest('POST', '/pets', { body: { name, categoryId: 1 } })).body as { id: number }
await get(1)

test('each of many concurrent calls has its own pet, or its own 404', async () => {
  const ids = Array.from({ length: PETS + 20 }, (_, index) => index + 1)
  const answers = await Promise.all(ids.map(get))
  for (const [index, body] of answers.entries()) {
    const id = index + 1
    expect(body).toMatchObject(id <= PETS ? { id, name: `Pet ${id}` } : { code: 'NOT_FOUND' })
  }
})

test.runIf(engine === 'mysql')(
  'the calls of a batch share one statement, also where nothing else runs',
  async () => {
    const sent = () => statements.like(/^select .* from [`"]pets[`"]/is)
    const ids = Array.from({ length: 20 }, (_, index) => index + 1)
    const inputs = ids.map((petId, index) => [index, transformer.serialize({ petId })])
    const input = encodeURIComponent(JSON.stringify(Object.fromEntries(inputs)))
    const path = `/trpc/${ids.map(() => 'getPet').join()}?batch=1&input=${input}`
    await get(1) // the next call is alone, too
    for (const when of ['after a single call', 'after a batch']) {
      const before = (await sent()).length
      expect((await service.fetch(path)).status).toBe(200)
      expect((await sent()).length - before, when).toBe(1)
    }
  },
)

test('a batch with repeated ids and unknown ids returns a result for each call', async () => {
  const ids = [1, 2, 1, 404_404, 1, 3, 404_404, 2]
  const inputs = ids.map((petId, index) => [index, transformer.serialize({ petId })])
  const input = encodeURIComponent(JSON.stringify(Object.fromEntries(inputs)))
  const path = `/trpc/${ids.map(() => 'getPet').join()}?batch=1&input=${input}`
  const answer = await service.fetch(path)
  const answers = (await answer.json()) as { result?: { data: string } }[]
  const found = answers.map(({ result }) => {
    const pet = result && transformer.deserialize(result.data)
    return (pet as { id: bigint } | undefined)?.id
  })
  expect(found).toEqual([1n, 2n, 1n, undefined, 1n, 3n, undefined, 2n])
})

test('each of many concurrent lists has its own pets', async () => {
  const kinds = [
    ['?limit=1', [1]],
    ['?limit=2&status=available', [1, 2]],
    ['?limit=2&status=pending', []],
    ['?limit=3', [1, 2, 3]],
    ['?cursor=5&limit=3', [6, 7, 8]],
    ['?cursor=7&limit=3', [8, 9, 10]],
    // The same digits in the same order.
    ['?limit=1&cursor=23', [24]],
    ['?limit=12&cursor=3', [4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]],
    ['?limit=1&status=available&cursor=23', [24]],
    ['?limit=12&status=available&cursor=3', [4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]],
  ] as const
  const requests = Array.from({ length: 20 }, () => kinds).flat()
  const answers = await Promise.all(requests.map(([query]) => service.rest('GET', `/pets${query}`)))
  const ids = answers.map(({ body }) => (body as { id: number }[]).map(({ id }) => id))
  expect(ids).toEqual(requests.map(([, expected]) => expected))
})

test('each of many concurrent callers has rows of its own', async () => {
  await using db = await connect(service.databaseUrl)
  const pets = petStore(db)
  using deadline = new Deadline(10_000)
  const callers = Array.from({ length: 20 })
  const found = await Promise.all(callers.map(() => pets.get({ deadline }, 1n)))
  expect(new Set(found).size).toBe(callers.length)
  const lists = await Promise.all(callers.map(() => pets.list({ deadline }, { limit: 2 })))
  for (const { items } of lists) items.push(...items.splice(0, 1))
  expect(new Set(lists.flatMap(({ items }) => items)).size).toBe(2 * callers.length)
  for (const { items } of lists) expect(items.map(({ id }) => id)).toEqual([2n, 1n])
})

test('each call of a shared query fails with it', async () => {
  await sql('alter table pets rename to elsewhere')
  try {
    // A call that never settles would be 503 at its deadline.
    const paths = Array.from({ length: 60 }, (_, index) => `/pets${index % 2 ? '' : `/${index}`}`)
    const answers = await Promise.all(paths.map((path) => service.rest('GET', path)))
    expect(answers.map(({ status }) => status)).toEqual(paths.map(() => 500))
  } finally {
    await sql('alter table elsewhere rename to pets')
  }
})

test('an acknowledged pet is read, even under load', async () => {
  let isOver = false
  const load = Array.from({ length: 16 }, async (_, reader) => {
    for (let round = 0; !isOver; round++) await get(((reader * 17 + round) % PETS) + 1)
  })
  for (let serial = 0; serial < 60; serial++) {
    const { id } = await create(`new ${serial}`)
    // Another call may have read its absence just before.
    const [found, list] = await Promise.all([
      get(id),
      service.rest('GET', `/pets?cursor=${id - 1}&limit=1`),
    ])
    expect(found).toMatchObject({ id, name: `new ${serial}` })
    expect(list.body).toMatchObject([{ id }])
  }
  isOver = true
  await Promise.all(load)
})

describe.runIf(engine === 'mysql')('on a server', () => {
  const runningReads = () => running(sql, '%from `pets`%')
  const port = Number(new URL(service.origin).port)
  const send = (path: string) => abortable(port, `GET /v1${path}`, { key: service.key })

  test('an aborted call does not affect the others', async () => {
    await sql('lock tables pets write')
    const waiting = [get(1), get(2)]
    await vi.waitFor(async () => expect(await runningReads()).not.toHaveLength(0), 30_000)
    // They wait for the next batch, or are sent.
    const leaving = await send('/pets/3')
    const staying = get(4)
    await setTimeout(100)
    leaving.resetAndDestroy()
    await vi.waitFor(() => expect(service.logged.join()).toContain('"status":499'), 30_000)
    await sql('unlock tables')
    const pets = await Promise.all([...waiting, staying])
    expect(pets).toMatchObject([{ id: 1 }, { id: 2 }, { id: 4 }])
  })

  test('the statement ends with the last of its calls', async () => {
    await sql('lock tables pets write')
    const calls = await Promise.all(['/pets/1', '/pets/2', '/pets/3'].map(send))
    await vi.waitFor(async () => expect(await runningReads()).not.toHaveLength(0), 30_000)
    await setTimeout(100) // all three were sent
    for (const call of calls) call.resetAndDestroy()
    await vi.waitFor(async () => expect(await runningReads()).toEqual([]), 30_000)
    await sql('unlock tables')
    expect(await get(1)).toMatchObject({ id: 1 })
  })
})

// The last one: further ids are beyond these.
test('concurrent lists behind ids that a number rounds have their own pets', async () => {
  const ids = [2n ** 53n, 2n ** 53n + 1n, 2n ** 53n + 2n]
  for (const id of ids) {
    await sql(`insert into pets (id, name, category_id, status) values (${id}, 'x', 1, 'sold')`)
  }
  const first = async (id: bigint) =>
    /"id":(\d+)/.exec((await service.rest('GET', `/pets?limit=1&cursor=${id - 1n}`)).text)?.[1]
  const requested = Array.from({ length: 20 }, () => ids).flat()
  expect(await Promise.all(requested.map(first))).toEqual(requested.map(String))
})
