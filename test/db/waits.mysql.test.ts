/** Calls beside transactions that wait for a row which another client has locked. */
import { setTimeout } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { Deadline } from '../../db/deadline.ts'
import { retry } from '../../db/retry.ts'
import { lockRow } from '../../db/statement.ts'
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
