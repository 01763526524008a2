/** The schemas and queries of the peers with zod and Kysely, written as in their guides. */
import { type Generated, Kysely, MysqlDialect } from 'kysely'
import { createPool } from 'mysql2'
import { z } from 'zod'

const PetStatus = z.enum(['available', 'pending', 'sold'])

export const NewPet = z.object({
  name: z.string().min(1).max(255),
  categoryId: z.number().int(),
  status: PetStatus.default('available'),
})

export const Pet = z.object({
  id: z.number().int(),
  name: z.string(),
  categoryId: z.number().int(),
  status: PetStatus,
})

export const ListPets = z.object({
  limit: z.coerce.number().int().min(1).max(100).default(20),
  status: PetStatus.optional(),
  cursor: z.coerce.number().int().optional(),
})

export const GetPet = z.object({ petId: z.coerce.number().int() })

interface Tables {
  pets: {
    id: Generated<number>
    name: string
    category_id: number
    status: z.output<typeof PetStatus>
  }
}

const pool = createPool({ uri: process.env.DATABASE_URL ?? '', connectionLimit: 10 })
const db = new Kysely<Tables>({ dialect: new MysqlDialect({ pool }) })
const columns = ['id', 'name', 'category_id as categoryId', 'status'] as const

export function listPets({ limit, status, cursor }: z.output<typeof ListPets>) {
  let query = db.selectFrom('pets').select(columns).orderBy('id').limit(limit)
  if (status !== undefined) query = query.where('status', '=', status)
  if (cursor !== undefined) query = query.where('id', '>', cursor)
  return query.execute()
}

export async function createPet({ name, categoryId, status }: z.output<typeof NewPet>) {
  const { insertId } = await db
    .insertInto('pets')
    .values({ name, category_id: categoryId, status })
    .executeTakeFirstOrThrow()
  return { id: Number(insertId), name, categoryId, status }
}

export function getPet({ petId }: z.output<typeof GetPet>) {
  return db.selectFrom('pets').select(columns).where('id', '=', petId).executeTakeFirst()
}
