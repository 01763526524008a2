/** The number of statements for many calls, by the log of a MySQL server. */
import { afterAll, expect, test } from 'vitest'
import { newDatabase } from '../support/database.ts'
import { serviceForFile } from '../support/service.ts'
import { watchStatements } from '../support/statements.ts'

const database = await newDatabase()
const statements = await watchStatements(database.url)
afterAll(() => statements.close())
const service = await serviceForFile({}, { database })

const create = (key?: string) =>
  service.rest('POST', '/pets', {
    headers: { 'idempotency-key': key },
    body: { name: 'Rex', categoryId: 3 },
  })

/** Returns how many statements on pets the work sends. */
async function statementsOf(work: () => Promise<unknown>): Promise<number> {
  await create() // the API key is in the cache, and connections are open
  const count = async () => (await statements.like(/`pets`/)).length
  const before = await count()
  await work()
  return (await count()) - before
}

test('a single call is one statement', async () => {
  expect(await statementsOf(() => create())).toBe(1)
  expect(await statementsOf(() => service.rest('GET', '/pets/1'))).toBe(1)
  expect(await statementsOf(() => service.rest('GET', '/pets?status=sold'))).toBe(1)
})

test('200 concurrent creations with keys share commits', async () => {
  await create()
  let serial = 0
  const commits = async () => (await statements.like(/^commit/)).length
  const before = await commits()
  const answers = await Promise.all(
    Array.from({ length: 200 }, () => create(`"commit ${serial++}"`)),
  )
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([201]))
  expect((await commits()) - before).toBeLessThan(150)
})
