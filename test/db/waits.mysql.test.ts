/** Calls beside transactions that wait for a row which another client has locked. */
import { setTimeout } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { Deadline } from '../../db/deadline.ts'
import { retry } from '../../db/retry.ts'
import { lockRow, lockRows } from '../../db/statement.ts'
import { inTransaction } from '../../db/transaction.ts'
import { petStore } from '../../src/petstore/pets/store.ts'
import { migratedForFile } from '../support/migrated.ts'
import { addPet } from '../support/pets.ts'

const { db, sql } = await migratedForFile()

test('transactions that wait for a row delay neither creations nor reads', async () => {
  using deadline = new Deadline(20_000)
  const call = { deadline }
  const pets = petStore(db)
  const pet = { name: 'Rex', categoryId: 3n, status: 'sold' } as const
  const { id } = await addPet(pets, call, pet)
  await sql('begin')
  await sql('select * from pets where id = ? for update', [id])
  const lock = () => inTransaction(db, (inside) => lockRow(inside, 'pets', id, call), deadline)
  const waiting = Array.from({ length: 50 }, () => retry(lock, { repeatable: true, deadline }))
  const outcomes = Promise.allSettled(waiting)
  await setTimeout(200) // they have the sessions that they may have
  const times: number[] = []
  for (let serial = 0; serial < 20; serial++) {
    const start = performance.now()
    await (serial % 2 ? pets.get(call, id) : addPet(pets, call, pet))
    times.push(performance.now() - start)
  }
  await sql('rollback')
  await outcomes
  // The server lets a statement wait for a second: without a session of their own they take about as long.
  expect(Math.max(...times)).toBeLessThan(500)
})

test('several rows are locked in the order of their ids, and only where all are there', async () => {
  using deadline = new Deadline(20_000)
  const call = { deadline }
  const pets = petStore(db)
  const pet = { name: 'Rex', categoryId: 3n, status: 'sold' } as const
  const ids: bigint[] = []
  for (let count = 0; count < 3; count++) ids.push((await addPet(pets, call, pet)).id)
  const [first = 0n, second = 0n, third = 0n] = ids
  const lock = (...wanted: bigint[]) =>
    inTransaction(db, (inside) => lockRows(inside, 'pets', wanted, call), deadline)
  expect(await lock(third, first, first)).toBe(true)
  expect(await lock()).toBe(true)
  expect(await lock(first, 10n ** 12n)).toBe(false)

  // It waits for the second, has the first, and not yet the third, which it names before.
  await sql('begin')
  await sql('select * from pets where id = ? for update', [second])
  const waiting = lock(third, second, first)
  await setTimeout(300)
  await sql('select * from pets where id = ? for update nowait', [third])
  await expect(sql('select * from pets where id = ? for update nowait', [first])).rejects.toThrow()
  await sql('rollback')
  expect(await waiting).toBe(true)
})
