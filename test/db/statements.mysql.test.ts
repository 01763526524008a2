/** What a MySQL server hears of many calls, by its own log. */
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { setTimeout } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { newDatabase } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'
import { type Service, startService } from '../support/service.ts'
import { openSql } from '../support/sql.ts'
import { type Statements, watchStatements } from '../support/statements.ts'

let service: Service
let statements: Statements
beforeAll(async () => {
  const database = await newDatabase()
  statements = await watchStatements(database.url)
  service = await startService({}, { database })
})
afterAll(async () => {
  await service.stop()
  await statements.close()
})

const create = (key?: string) =>
  service.rest('POST', '/pets', {
    headers: { 'idempotency-key': key },
    body: { name: 'Rex', categoryId: 3 },
  })

/** How many statements on pets this makes the service send. */
async function statementsOf(work: () => Promise<unknown>): Promise<number> {
  await create() // the key is known, and connections are there
  const count = async () => (await statements.like(/`pets`/)).length
  const before = await count()
  await work()
  return (await count()) - before
}

test('one call alone is one statement', async () => {
  expect(await statementsOf(() => create())).toBe(1)
  expect(await statementsOf(() => service.rest('GET', '/pets/1'))).toBe(1)
  expect(await statementsOf(() => service.rest('GET', '/pets?status=sold'))).toBe(1)
})

test('200 creations at once, each with a key: few commits', async () => {
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

test.each<[what: string, call: (index: number) => Promise<unknown>]>([
  ['the same pet', () => service.rest('GET', '/pets/1')],
  ['different pets', (index) => service.rest('GET', `/pets/${index + 1}`)],
  ['the same list', () => service.rest('GET', '/pets?limit=5')],
  ['creations', () => create()],
])('200 calls at once, %s, are at most half as many statements', async (_, call) => {
  // All are there before the first is answered.
  const many = async () => {
    await using locker = await openSql(service.databaseUrl)
    await locker('lock tables pets write')
    let begun = 0
    const hear = () => void begun++
    subscribe('http.server.request.start', hear)
    const answers = Promise.all(Array.from({ length: 200 }, (_, index) => call(index)))
    await eventually(() => expect(begun).toBe(200))
    unsubscribe('http.server.request.start', hear)
    await setTimeout(100) // the last of them has asked, too
    await locker.close()
    await answers
  }
  expect(await statementsOf(many)).toBeLessThanOrEqual(100)
})
