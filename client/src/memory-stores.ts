/** The stores of the service in memory, for the stand-in: a new resource adds its own here. */
import type { NewPet, Pet } from '../../src/petstore/pets/schema.ts'
import type { PetStore } from '../../src/petstore/pets/store.ts'
import type { createStores } from '../../src/petstore/resources.ts'

/** The stores of the service. */
export type Stores = ReturnType<typeof createStores>

/** Takes back one change of a transaction. */
export type Undo = () => void

/** Rows whose ids are 1, 2, 3, and so on, in the order of their creation. */
interface Table<Row> {
  rows: Row[]
  lastId: bigint
}

/** Returns a table with these rows, which get their ids. */
function tableOf<Row>(initial: Omit<Row, 'id'>[] = []): Table<Row & { id: bigint }> {
  const rows = initial.map((row, index) => ({ ...(row as Row), id: BigInt(index + 1) }))
  return { rows, lastId: BigInt(rows.length) }
}

/**
 * Returns a function that makes the stores on tables of their own, which have these pets. In a transaction,
 * each change adds to `undo`.
 */
export function storesInMemory(initial: NewPet[]): (undo?: Undo[]) => Stores {
  const pets = tableOf<Pet>(initial)
  return (undo) => ({
    pets: petsInMemory(pets, undo),
  })
}

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
    newPet: {
      output: (id, pet) => ({ id, ...pet }),
      async insert(_, pet) {
        const created = { id: ++pets.lastId, ...pet }
        pets.rows.push(created)
        undo?.push(() => pets.rows.splice(pets.rows.indexOf(created), 1))
        return created.id
      },
    },
  }
}
