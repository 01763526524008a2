/** The store of pets in memory. */
import type { Pet } from '../../../src/petstore/pets/schema.ts'
import type { PetStore } from '../../../src/petstore/pets/store.ts'
import type { Table, Undo } from './table.ts'

export const petsInMemory = (pets: Table<Pet>, undo?: Undo[]): PetStore => ({
  list: async (_, query) =>
    pets.page(query, { where: (pet) => query.status === undefined || pet.status === query.status }),
  get: async (_, id) => pets.get(id),
  newPet: {
    output: (id, pet) => ({ id, ...pet }),
    insert: async (_, pet) => pets.insert(pet, undo),
  },
})
