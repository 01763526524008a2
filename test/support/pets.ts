/** Pets of tests: what a test does not name of a pet has the value that its schema gives. */
import type { WithDeadline } from '../../db/deadline.ts'
import { NewPet, type Pet } from '../../src/petstore/pets/schema.ts'
import type { PetStore } from '../../src/petstore/pets/store.ts'
import type { Sql } from './sql.ts'

/** The fields of a pet that a test names. */
type Fields = Partial<NewPet>

/** Returns a pet to add, as the service reads it: Rex of the category 3, unless these fields say otherwise. */
export const newPet = (fields: Fields = {}): NewPet => ({
  ...NewPet.parse({ name: 'Rex', categoryId: 3n }),
  ...fields,
})

/** Returns a pet, as the service returns it. */
export const petOf = (id: bigint, fields?: Fields): Pet => ({ id, ...newPet(fields) })

/** Stores pets in one statement, in this order. */
export async function storePets(sql: Sql, pets: readonly Fields[]): Promise<void> {
  if (pets.length === 0) return
  await sql(
    `insert into pets (name, category_id, status) values ${pets.map(() => '(?, ?, ?)').join()}`,
    pets.flatMap((fields) => {
      const { name, categoryId, status } = newPet(fields)
      return [name, categoryId, status]
    }),
  )
}

/** Adds a pet by its store, and returns it. */
export async function addPet(pets: PetStore, call: WithDeadline, fields?: Fields): Promise<Pet> {
  const pet = newPet(fields)
  return { id: await pets.newPet.insert(call, pet), ...pet }
}

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
