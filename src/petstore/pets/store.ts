/** The store of pets: their table and its statements. */
import type { Generated } from 'kysely'
import type { Database } from '../../../db/database.ts'
import type { WithDeadline } from '../../../db/deadline.ts'
import type { Value } from '../../../db/plan.ts'
import { creation } from '../../../db/plans/creations.ts'
import { lookUp } from '../../../db/plans/lookup.ts'
import { type Has, pages } from '../../../db/plans/pages.ts'
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
  (value: Value<NewPet>) => ({
    name: value(({ name }) => name),
    category_id: value(({ categoryId }) => categoryId),
    status: value(({ status }) => status),
  }),
  (id, pet): Pet => ({ id, ...pet }),
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

const petById = lookUp<bigint, Pet>({
  select({ kysely }, ids) {
    const wanted = ids.map((value) => value((id) => id))
    return kysely
      .selectFrom('pets')
      .select(['id', ...columns])
      .where('id', 'in', wanted)
  },
  identityOf: (pet) => (typeof pet === 'bigint' ? pet : pet.id),
})
