/** The stores of the service in memory, for the stand-in: a new resource adds its table and its store here. */
import type { NewPet, Pet } from '../../../src/petstore/pets/schema.ts'
import type { createStores } from '../../../src/petstore/resources.ts'
import { petsInMemory } from './pets.ts'
import { Table, type Undo } from './table.ts'

/** The stores of the service. */
export type Stores = ReturnType<typeof createStores>

/**
 * Returns a function that makes the stores on tables of their own, which have these pets. In a transaction,
 * each change adds to `undo`.
 */
export function storesInMemory(initial: NewPet[]): (undo?: Undo[]) => Stores {
  const pets = new Table<Pet>(initial)
  return (undo) => ({
    pets: petsInMemory(pets, undo),
  })
}
