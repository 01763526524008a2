/** The store of Idempotency-Keys: calls that fail, and large outputs. */
import { pino } from 'pino'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { connect } from '../../db/connect.ts'
import { Deadline } from '../../db/deadline.ts'
import { migrate } from '../../db/migrate.ts'
import type { Database } from '../../db/tables.ts'
import { createIdempotency, type Idempotency, type Make } from '../../src/idempotency/store.ts'
import { createKey, listKeys } from '../../src/keys/store.ts'
import { newDatabase, type TestDatabase } from '../support/database.ts'

let database: TestDatabase
let db: Database
let idempotency: Idempotency<Database>
beforeAll(async () => {
  database = await newDatabase()
  db = await connect(database.url)
  await migrate(db)
  idempotency = createIdempotency(
    db,
    (transaction) => transaction,
    60_000,
    pino({ enabled: false }),
  )
})
afterAll(async () => {
  idempotency.stop()
  await db.destroy()
  await database.remove()
})

const forever = () => new Deadline(Number.POSITIVE_INFINITY)
const ended = () => {
  const deadline = forever()
  deadline.giveUp(new Error('The client has gone'))
  return deadline
}
const cyclic: { self?: object } = {}
cyclic.self = cyclic

test.each<[what: string, input: unknown, deadline: () => Deadline, make: () => Promise<string>]>([
  ['a call that is aborted before it begins leaves its key unused', 1, ended, async () => 'made'],
  [
    'a call with an input that cannot be compared leaves its key unused',
    cyclic,
    forever,
    async () => 'made',
  ],
  [
    'a call that fails leaves its key unused',
    1,
    forever,
    () => Promise.reject(new Error('It failed')),
  ],
  [
    'a call with an output that cannot be stored leaves its key unused',
    1,
    forever,
    async () => (() => {}) as never,
  ],
])('%s', async (key, input, deadline, make) => {
  for (const oneStatement of [true, false]) {
    const request = { holder: 1n, key: `${key} ${oneStatement}`, operation: 'test' }
    let works = 0
    const work = () => {
      works++
      return make()
    }
    const once = idempotency.once({ ...request, input }, deadline(), work, { oneStatement })
    await expect(once).rejects.toThrow()
    expect(works, 'a failure is not repeated').toBeLessThanOrEqual(1)
    const again = { ...request, input: 1 }
    const makeAgain = async () => 'made'
    expect(await idempotency.once(again, forever(), makeAgain, { oneStatement })).toEqual({
      output: 'made',
    })
  }
})

test('a call that fails without a statement does not affect one that shares its transaction', async () => {
  const call = (key: string, make: Make<Database, string>) => {
    const request = { holder: 1n, key, operation: 'test', input: 1 }
    return idempotency.once(request, forever(), make, { oneStatement: true })
  }
  const create = async (transaction: Database) => {
    await createKey(transaction, 'shared')
    return 'made'
  }
  const [failed, made] = await Promise.allSettled([
    call('fails at once', () => Promise.reject(new Error('It failed'))),
    call('creates', create),
  ])
  expect(failed).toMatchObject({ reason: { message: 'It failed' } })
  expect(made).toMatchObject({ value: { output: 'made' } })
  expect(await listKeys(db)).toHaveLength(1)
})

test('a repetition returns an output of 100,000 characters', async () => {
  const request = { holder: 1n, key: 'long', operation: 'test', input: 1 }
  const output = 'ä'.repeat(100_000)
  for (let attempt = 0; attempt < 2; attempt++) {
    expect(await idempotency.once(request, forever(), async () => output)).toEqual({ output })
  }
})
