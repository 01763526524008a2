/** The pets in the database. */
import { retry } from '../../db/retry.ts'
import type { Database } from '../../db/tables.ts'
import type { OnceStore } from '../idempotency/store.ts'
import type { NewPet, PetStore } from './schema.ts'

const columns = ['id', 'name', 'category_id as categoryId', 'status'] as const

/** The pets of a database. Everything it does may throw DatabaseUnavailableError. */
export function petStore(db: Database, { once }: OnceStore): PetStore {
  return {
    async list({ limit, status, cursor }, signal) {
      let query = db
        .selectFrom('pets')
        .select(columns)
        .orderBy('id')
        // One more than asked for tells whether another page follows.
        .limit(limit + 1)
      if (status !== undefined) query = query.where('status', '=', status)
      if (cursor !== undefined) query = query.where('id', '>', cursor)
      const rows = await retry(() => query.execute({ signal }), { repeatable: true, signal })
      const pets = rows.slice(0, limit)
      return { pets, next: rows.length > limit ? pets.at(-1)?.id : undefined }
    },

    async create(pet, signal, idempotency) {
      if (!idempotency) {
        const insert = () => insertPet(db, pet, signal)
        return { id: await retry(insert, { repeatable: false, signal }), ...pet }
      }
      const request = [pet.name, String(pet.categoryId), pet.status]
      const create = () =>
        once({ ...idempotency, request }, signal, (transaction) =>
          insertPet(transaction, pet, signal),
        )
      const outcome = await retry(create, { repeatable: true, signal })
      return typeof outcome === 'string' ? outcome : { id: outcome.id, ...pet }
    },

    async get(id, signal) {
      const query = db.selectFrom('pets').select(columns).where('id', '=', id)
      const find = () => query.executeTakeFirst({ signal })
      return await retry(find, { repeatable: true, signal })
    },
  }
}

async function insertPet(
  db: Database,
  { name, categoryId, status }: NewPet,
  signal: AbortSignal,
): Promise<bigint> {
  const { insertId } = await db
    .insertInto('pets')
    .values({ name, category_id: categoryId, status })
    .executeTakeFirstOrThrow({ signal })
  if (insertId === undefined) throw new Error('The database gave no id for a new pet')
  return insertId
}
