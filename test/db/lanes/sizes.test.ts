/** The most that one statement and one transaction take of many concurrent calls, on either engine. */
import { expect, test } from 'vitest'
import type { Database } from '../../../db/database.ts'
import { Deadline } from '../../../db/deadline.ts'
import { shareTransaction } from '../../../db/transaction.ts'
import { petStore } from '../../../src/petstore/pets/store.ts'
import { migratedForFile } from '../../support/migrated.ts'

const { db, statements } = await migratedForFile()
const deadline = new Deadline(Number.POSITIVE_INFINITY)
const pet = { name: 'Rex', categoryId: 3n, status: 'sold' } as const

/** Makes this many calls in one turn, and returns how many statements on pets they sent. */
async function statementsOf(count: number, call: (index: number) => Promise<unknown>) {
  const sent = async () => (await statements.like(/^(select|insert)\b.* [`"]pets[`"]/is)).length
  const before = await sent()
  await Promise.all(Array.from({ length: count }, (_, index) => call(index)))
  return (await sent()) - before
}

test('a query looks up at most 100 rows', async () => {
  const get = (index: number) => petStore(db).get({ deadline }, BigInt(index))
  expect(await statementsOf(100, get)).toBe(1)
  expect(await statementsOf(101, get)).toBe(2)
})

test('a statement inserts at most 200 rows', async () => {
  const create = () => petStore(db).create({ deadline }, pet)
  expect(await statementsOf(200, create)).toBe(1)
  expect(await statementsOf(201, create)).toBe(2)
})

test('a shared transaction has at most 100 works, whose inserts share a statement', async () => {
  const ids = new Set<bigint>()
  const work = {
    async run(transaction: Database, ofAll: Deadline) {
      const made = await petStore(transaction).create({ deadline: ofAll }, pet)
      ids.add(made.id)
      return made
    },
  }
  const share = () => shareTransaction(db, work, deadline)
  expect(await statementsOf(100, share)).toBe(1)
  expect(await statementsOf(101, share)).toBe(2)
  expect(ids.size).toBe(201)
})
