/** Pets that are there before a test begins, put into the database beside the service. */
import type { Sql } from './sql.ts'

export type Status = 'available' | 'pending' | 'sold'

export interface StoredPet {
  name: string
  categoryId: bigint
  status: Status
}

/** Adds pets in one statement, in this order. */
export async function storePets(sql: Sql, pets: readonly StoredPet[]): Promise<void> {
  if (pets.length === 0) return
  await sql(
    `insert into pets (name, category_id, status) values ${pets.map(() => '(?, ?, ?)').join()}`,
    pets.flatMap(({ name, categoryId, status }) => [name, categoryId, status]),
  )
}

/** How many pets there are. */
export async function countPets(sql: Sql): Promise<number> {
  const [row] = await sql('select count(*) as count from pets')
  return Number(row?.count)
}
