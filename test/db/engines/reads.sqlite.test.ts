/** Reads of the embedded database, which begin at once: what each of them sees, and when it waits. */
import { DatabaseSync } from 'node:sqlite'
import { setTimeout } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { connect } from '../../../db/connect.ts'
import { Deadline } from '../../../db/deadline.ts'
import { DatabaseTimeoutError } from '../../../db/errors.ts'
import { execute } from '../../../db/statement.ts'
import { inTransaction } from '../../../db/transaction.ts'
import { petStore } from '../../../src/petstore/pets/store.ts'
import { migratedForFile } from '../../support/migrated.ts'
import { addPet } from '../../support/pets.ts'

const { db, url, statements } = await migratedForFile()
const call = { deadline: new Deadline(Number.POSITIVE_INFINITY) }
const pets = petStore(db)
const rex = { name: 'Rex', categoryId: 3n, status: 'sold' } as const

const isRead = /^select .* from "pets"/is
const idsOf = async (list = pets.list(call, { limit: 100 })) =>
  (await list).items.map(({ id }) => id)

/** Lets the turn of the event loop end: reads of another turn share nothing. */
const nextTurn = () => setTimeout(1)

/** Another process, whose statements take effect at once. */
function otherProcess(): DatabaseSync {
  const other = new DatabaseSync(url.slice('sqlite:'.length))
  onTestFinished(() => void (other.isOpen && other.close()))
  return other
}

/** Adds a pet by a statement that writes and returns rows. */
async function addReturning(): Promise<{ id: bigint }> {
  const values = { name: 'Rex', category_id: 3n, status: 'sold' } as const
  const { rows } = await execute(db, db.kysely.insertInto('pets').values(values).returning('id'))
  return rows[0] as { id: bigint }
}

/** Runs work in one turn of the event loop, and fails if it takes another one. */
async function inOneTurn(work: () => Promise<void>): Promise<void> {
  await nextTurn()
  let isOver = false
  setImmediate(() => {
    isOver = true
  })
  await work()
  expect(isOver).toBe(false)
}

test('a read begins in its call, and needs no turn of the event loop', async () => {
  const { id } = await addPet(pets, call, rex)
  await inOneTurn(async () => {
    expect(await pets.get(call, id)).toEqual({ id, ...rex })
    expect(await idsOf()).toContain(id)
  })
})

test('a read sees what another process has committed before, in the same turn', async () => {
  const other = otherProcess()
  const remove = other.prepare('delete from pets where id = (select max(id) from pets)')
  for (let added = 0; added < 5; added++) await addPet(pets, call, rex)
  await inOneTurn(async () => {
    const before = await idsOf()
    for (let round = 1; round <= 4; round++) {
      remove.run()
      for (let again = 0; again < 3; again++) expect(await idsOf()).toEqual(before.slice(0, -round))
    }
    expect(await pets.get(call, before.at(-1) as bigint)).toBeUndefined()
  })
})

test.each([
  ['a statement', () => addPet(pets, call, rex)],
  ['a transaction', () => inTransaction(db, (inside) => addPet(petStore(inside), call, rex))],
  ['a statement with rows', addReturning],
])('a read sees what %s of its own resolver has committed', async (_, add) => {
  for (let round = 0; round < 3; round++) {
    const before = await idsOf()
    expect(await idsOf()).toEqual(before)
    const [{ id }] = await Promise.all([add(), idsOf(), idsOf()])
    const after = [...before, id]
    expect(await Promise.all([idsOf(), idsOf(), idsOf()])).toEqual([after, after, after])
  }
})

test('equal lists of one turn share their rows, and each has items of its own', async () => {
  for (let added = 0; added < 4; added++) await addPet(pets, call, rex)
  const all = await idsOf()
  const sent = async () => (await statements.like(isRead)).length
  const lists = (limit: number) => Array.from({ length: 20 }, () => pets.list(call, { limit }))
  await nextTurn()
  const before = await sent()
  const found = await Promise.all(lists(2))
  expect((await sent()) - before).toBeLessThanOrEqual(2)
  expect(new Set(found.flatMap(({ items }) => items)).size).toBe(40)
  await nextTurn()
  const mixed = await Promise.all(
    [...lists(1), ...lists(3), ...lists(1)].map((list) => idsOf(list)),
  )
  expect(new Set(mixed.map(String))).toEqual(new Set([`${all[0]}`, `${all.slice(0, 3)}`]))
  expect(mixed.map(({ length }) => length)).toEqual([1, 3, 1].flatMap((n) => Array(20).fill(n)))
})

test('a read waits for the end of a transaction, at most until its deadline', async () => {
  const { id } = await addPet(pets, call, rex)
  const begun = Promise.withResolvers<void>()
  const over = Promise.withResolvers<void>()
  const removed = inTransaction(db, async (inside) => {
    await execute(inside, inside.kysely.deleteFrom('pets').where('id', '=', id))
    begun.resolve()
    await over.promise
  })
  await begun.promise
  const leaving = pets.get({ deadline: new Deadline(20) }, id)
  const staying = pets.get(call, id)
  const left = await leaving.catch((error: unknown) => error)
  const stays = await Promise.race([staying, 'it waits'])
  over.resolve()
  expect([left, stays]).toEqual([expect.any(DatabaseTimeoutError), 'it waits'])
  await removed
  expect(await staying).toBeUndefined()
})

test('a read waits for a process that keeps readers out, at most until its deadline', async () => {
  await addPet(pets, call, rex)
  await db.destroy()
  const other = otherProcess()
  other.exec('pragma locking_mode = exclusive; begin immediate; commit')
  await using again = await connect(url)
  const left = new Deadline(50)
  const [leaving, staying] = [left, call.deadline].map((deadline) =>
    petStore(again).list({ deadline }, { limit: 1 }),
  )
  await expect(leaving).rejects.toThrow(DatabaseTimeoutError)
  await setTimeout(500) // longer than a call that fails is repeated
  other.close()
  expect((await staying)?.items).toHaveLength(1)
})
