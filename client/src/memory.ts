/** The stores of the service in memory, for the stand-in. */
import { parse, stringify } from 'devalue'
import type { Deadline } from '../../db/deadline.ts'
import { problem } from '../../src/errors/problem.ts'
import type { Idempotency, Make } from '../../src/idempotency/store.ts'
import type { NewPet, Pet } from '../../src/petstore/pets/schema.ts'
import type { PetStore } from '../../src/petstore/pets/store.ts'
import type { Stores } from '../../src/procedure/context.ts'

/** Returns a store of pets, with the ids 1, 2, 3, and so on, in the order of their creation. */
export function petsInMemory(initial: NewPet[]): PetStore {
  let lastId = 0n
  const withId = (pet: NewPet): Pet => ({ id: ++lastId, ...pet })
  const pets = initial.map(withId)
  return {
    async list({ limit, status, cursor }) {
      const rows = pets.filter(
        (pet) =>
          (status === undefined || pet.status === status) &&
          (cursor === undefined || pet.id > cursor),
      )
      const items = rows.slice(0, limit)
      return { items, next: rows.length > limit ? items.at(-1)?.id : undefined }
    },
    get: async (id) => pets.find((pet) => pet.id === id),
    async create(pet) {
      const created = withId(pet)
      pets.push(created)
      return created
    },
  }
}

/** Returns the record of Idempotency-Keys for these stores. It keeps every key. */
export function idempotencyInMemory(stores: Stores): Idempotency<Stores> {
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
        const output = await make(stores, deadline)
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
