/** Pets that tests store directly in the database, or by the store of pets. */
import type { WithDeadline } from '../../db/deadline.ts'
import type { NewPet, Pet } from '../../src/petstore/pets/schema.ts'
import type { PetStore } from '../../src/petstore/pets/store.ts'
import type { Sql } from './sql.ts'

/** Stores pets in one statement, in this order. */
export async function storePets(sql: Sql, pets: readonly NewPet[]): Promise<void> {
  if (pets.length === 0) return
  await sql(
    `insert into pets (name, category_id, status) values ${pets.map(() => '(?, ?, ?)').join()}`,
    pets.flatMap(({ name, categoryId, status }) => [name, categoryId, status]),
  )
}

/** Adds a pet by its store, and returns it. */
export const addPet = async (pets: PetStore, call: WithDeadline, pet: NewPet): Promise<Pet> => ({
  id: await pets.newPet.insert(call, pet),
  ...pet,
})

/** The number of pets. */
export async function countPets(sql: Sql): Promise<number> {
  const [row] = await sql('select count(*) as count from pets')
  return Number(row?.count)
}

const statuses = ['available', 'pending', 'sold'] as const

/** Stores pets with the names `Pet 1`, `Pet 2` and so on, the categories from 0, and each status in turn. */
export async function storeNumberedPets(sql: Sql, count: number): Promise<void> {
  const pets = Array.from({ length: count }, (_, index) => ({
    name: `Pet ${index + 1}`,
    categoryId: BigInt(index),
    status: statuses[index % 3] ?? 'available',
  }))
  await storePets(sql, pets)
}
