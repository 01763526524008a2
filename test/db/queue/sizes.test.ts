/** The most that one statement and one transaction take of many concurrent calls, on either engine. */
import { expect, test } from 'vitest'
import { Deadline } from '../../../db/deadline.ts'
import { execute } from '../../../db/statement.ts'
import { insertPlan, remove } from '../../../src/idempotency/store.ts'
import { petStore } from '../../../src/petstore/pets/store.ts'
import { engine } from '../../support/database.ts'
import { migratedForFile } from '../../support/migrated.ts'
import { addPet, newPet } from '../../support/pets.ts'

const { db, statements } = await migratedForFile()
const deadline = new Deadline(Number.POSITIVE_INFINITY)
const pet = { name: 'Rex', categoryId: 3n, status: 'sold' } as const

/** Makes this many calls in one turn, and returns how many statements of a kind they sent: on pets, unless it is said. */
async function statementsOf(
  count: number,
  call: (index: number) => Promise<unknown>,
  kind = /^(select|insert)\b.* [`"]pets[`"]/is,
) {
  const sent = async () => (await statements.like(kind)).length
  const before = await sent()
  await Promise.all(Array.from({ length: count }, (_, index) => call(index)))
  return (await sent()) - before
}

test.runIf(engine === 'mysql')('a query looks up at most 100 rows', async () => {
  const get = (index: number) => petStore(db).get({ deadline }, BigInt(index))
  expect(await statementsOf(100, get)).toBe(1)
  expect(await statementsOf(101, get)).toBe(2)
})

test('a statement inserts at most 200 rows', async () => {
  const create = () => addPet(petStore(db), { deadline }, pet)
  expect(await statementsOf(200, create)).toBe(1)
  expect(await statementsOf(201, create)).toBe(2)
})

test('a transaction inserts at most 100 rows with keys', async () => {
  const ids = new Set<bigint | undefined>()
  let serial = 0
  const create = async () => {
    const key = { api_key_id: 1n, key_hash: `${serial++}`, operation: 'createPet', fingerprint: '' }
    const { newPet: creation } = petStore(db)
    const input = newPet(pet)
    const make = (id: bigint) => {
      return { receipt: { ...key, answer: String(id) }, output: creation.output(id, input) }
    }
    const output = await creation.insertWithReceipt?.({ deadline }, input, {
      make,
      plan: insertPlan,
    })
    ids.add(output?.id)
  }
  expect(await statementsOf(100, create)).toBe(1)
  expect(await statementsOf(101, create)).toBe(2)
  expect(ids.size).toBe(201)
})

test('a statement removes at most 100 receipts', async () => {
  const ids = async () => {
    const all = db.kysely.selectFrom('idempotency_keys').select('id').orderBy('id')
    return (await execute(db, all)).rows.map(({ id }) => id)
  }
  const [kept, ...others] = await ids()
  const removing = async (count: number) =>
    statementsOf(
      count,
      (index) => remove(db, others[index] as bigint, deadline),
      /^delete\b.* [`"]idempotency_keys[`"]/is,
    )
  expect(await removing(100)).toBe(1)
  expect(await removing(101)).toBe(2)
  expect(await ids()).toEqual([kept, ...others.slice(101)])
})
