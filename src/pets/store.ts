/** The pets in the database. */
import type { Database } from '../../db/tables.ts'
import type { PetStore } from './schema.ts'

const columns = ['id', 'name', 'category_id as categoryId', 'status'] as const

/** The pets of a database. Everything it does may throw DatabaseUnavailableError. */
export function petStore(db: Database): PetStore {
  return {
    async list({ limit, status, cursor }) {
      let query = db
        .selectFrom('pets')
        .select(columns)
        .orderBy('id')
        // One more than asked for tells whether another page follows.
        .limit(limit + 1)
      if (status !== undefined) query = query.where('status', '=', status)
      if (cursor !== undefined) query = query.where('id', '>', cursor)
      const rows = await query.execute()
      const pets = rows.slice(0, limit)
      return { pets, next: rows.length > limit ? pets.at(-1)?.id : undefined }
    },

    async create(pet) {
      const { name, categoryId, status } = pet
      const { insertId } = await db
        .insertInto('pets')
        .values({ name, category_id: categoryId, status })
        .executeTakeFirstOrThrow()
      if (insertId === undefined) throw new Error('The database gave no id for a new pet')
      return { id: insertId, name, categoryId, status }
    },

    async get(id) {
      return await db.selectFrom('pets').select(columns).where('id', '=', id).executeTakeFirst()
    },
  }
}
