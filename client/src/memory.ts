/** The stores of the service in memory, for the stand-in. */
import { parse, stringify } from 'devalue'
import type { Deadline } from '../../db/deadline.ts'
import { problem } from '../../src/errors/problem.ts'
import type { Idempotency, Make } from '../../src/idempotency/store.ts'
import type { NewPet, Pet } from '../../src/petstore/pets/schema.ts'
import type { PetStore } from '../../src/petstore/pets/store.ts'
import type { Shared, Stores } from '../../src/procedure/call.ts'

/** Takes back one change of a transaction. */
type Undo = () => void

/** Rows whose ids are 1, 2, 3, and so on, in the order of their creation. */
interface Table<Row> {
  rows: Row[]
  lastId: bigint
}

/** Returns what all calls of the stand-in share, with these pets in memory. */
export function sharedInMemory(initial: NewPet[]): Shared {
  const rows = initial.map((pet, index) => ({ id: BigInt(index + 1), ...pet }))
  const pets: Table<Pet> = { rows, lastId: BigInt(rows.length) }
  const createStores = (undo?: Undo[]): Stores => ({ pets: petsInMemory(pets, undo) })
  const transact: Shared['transact'] = async (work) => {
    const undo: Undo[] = []
    try {
      return await work(createStores(undo))
    } catch (error) {
      for (const step of undo.reverse()) step()
      throw error
    }
  }
  return { stores: createStores(), transact, idempotency: idempotencyInMemory(transact) }
}

/** Returns the store of these pets. In a transaction, each change adds to `undo`. */
function petsInMemory(pets: Table<Pet>, undo?: Undo[]): PetStore {
  return {
    async list(_, { limit, status, cursor }) {
      const rows = pets.rows.filter(
        (pet) =>
          (status === undefined || pet.status === status) &&
          (cursor === undefined || pet.id > cursor),
      )
      const items = rows.slice(0, limit)
      return { items, next: rows.length > limit ? items.at(-1)?.id : undefined }
    },
    get: async (_, id) => pets.rows.find((pet) => pet.id === id),
    async create(_, pet) {
      const created = { id: ++pets.lastId, ...pet }
      pets.rows.push(created)
      undo?.push(() => pets.rows.splice(pets.rows.indexOf(created), 1))
      return created
    },
  }
}

/** Returns the record of Idempotency-Keys, whose works run in these transactions. It keeps every key. */
export function idempotencyInMemory(transact: Shared['transact']): Idempotency<Stores> {
  const known = new Map<string, { request: string; answer?: string }>()
  return {
    async once<Output>(
      { holder, key, operation, input }: Parameters<Idempotency<Stores>['once']>[0],
      deadline: Deadline,
      make: Make<Stores, Output>,
    ) {
      const name = `${holder} ${key}`
      const request = stringify([operation, input])
      const before = known.get(name)
      if (before) {
        if (before.answer === undefined) throw problem('keyRunning')
        if (before.request !== request) throw problem('keyUsed')
        return parse(before.answer) as Output // the same operation returned it
      }
      known.set(name, { request })
      try {
        const output = await transact((stores) => make(stores, deadline), deadline)
        // As a text: a store that changes its object in place must not change the answer, too.
        known.set(name, { request, answer: stringify(output) })
        return output
      } catch (error) {
        known.delete(name)
        throw error
      }
    },
  }
}
