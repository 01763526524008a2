/** The store of pets: their table and its statements. */
import type { Generated } from 'kysely'
import {
  creation,
  type Database,
  type Has,
  pages,
  rowById,
  type WithDeadline,
} from '../../../db/index.ts'
import type { ListPets, NewPet, Pet, PetStatus } from './schema.ts'

declare module '../../../db/tables.ts' {
  interface Tables {
    pets: {
      id: Generated<bigint>
      name: string
      category_id: bigint
      status: PetStatus
    }
  }
}

export type PetStore = ReturnType<typeof petStore>

/** Returns the store of a database or transaction. All methods throw DatabaseUnavailableError. */
export const petStore = (db: Database) => ({
  /** Returns up to `limit` pets after `cursor`, by ascending id; with `status`, only those that have it. */
  list: (call: WithDeadline, query: ListPets) => db.runner.run(pageOfPets, query, call.deadline),
  /** Returns the pet with this id, or undefined. */
  get: (call: WithDeadline, id: bigint) => db.runner.run(petById, id, call.deadline),
  newPet: newPet(db),
})

const newPet = creation(
  'pets',
  { name: 'name', category_id: 'categoryId', status: 'status' },
  (id: bigint, pet: NewPet): Pet => ({ id, ...pet }),
)

const columns = ['name', 'category_id as categoryId', 'status'] as const

const pageOfPets = pages({
  id: 'pets.id',
  select({ kysely, engine }, has: Has<ListPets>) {
    const byStatus = () => engine.forceIndex('pets', 'pets_status_id')
    return kysely.selectFrom(has('status') ? byStatus() : 'pets').select(columns)
  },
  where(pets, value, has) {
    const status = value((query) => query.status as PetStatus)
    return has('status') ? pets.where('status', '=', status) : pets
  },
  item: ({ id, name, categoryId, status }) => ({ id, name, categoryId, status }),
})

const petById = rowById('pets', columns)
