/** The store of pets: their table and its statements. */
import type { Generated } from 'kysely'
import type { Deadline } from '../../../db/deadline.ts'
import { gather } from '../../../db/gather.ts'
import { readBy } from '../../../db/index-hint.ts'
import { inserts } from '../../../db/inserts.ts'
import { BY_ID, type Page } from '../../../db/order.ts'
import { pages } from '../../../db/pages.ts'
import { retry } from '../../../db/retry.ts'
import { statement, type Value } from '../../../db/statement.ts'
import type { Database } from '../../../db/tables.ts'
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

/** Ids in one query. */
const MAX_IDS = 100

/** The store of pets. All methods throw DatabaseUnavailableError, also at the deadline. */
export interface PetStore {
  /** Returns up to `limit` pets after `cursor`, by ascending id; with `status`, only those that have it. */
  list(query: ListPets, deadline: Deadline): Promise<Page<Pet, bigint>>
  /** Returns the pet with this id, or undefined. */
  get(id: bigint, deadline: Deadline): Promise<Pet | undefined>
  /** Inserts a pet, and returns it with its new id. */
  create(pet: NewPet, deadline: Deadline): Promise<Pet>
}

/** Returns the store of pets of a database, or of a transaction. */
export const petStore = (db: Database): PetStore => ({
  list: (query, deadline) => listPets(db, query, deadline),
  get: (id, deadline) => getPet(db, id, deadline),
  async create(pet, deadline) {
    return { id: await insertPet(db, pet, deadline), ...pet }
  },
})

const insertPet = inserts('pets', ({ name, categoryId, status }: NewPet) => ({
  name,
  category_id: categoryId,
  status,
}))

const columns = ['id', 'name', 'category_id as categoryId', 'status'] as const

const readPage = pages({
  order: BY_ID,
  select(db, value: Value<ListPets>, has) {
    if (!has('status')) return db.selectFrom('pets').select(columns)
    const status = value((query) => query.status as PetStatus)
    const pets = db.selectFrom(readBy(db, 'pets', 'pets_status_id'))
    return pets.select(columns).where('status', '=', status)
  },
  item: (pet) => pet,
})

const listPets = gather<ListPets, Page<Pet, bigint>>({
  most: Number.POSITIVE_INFINITY,
  lane: ({ limit, status, cursor }) => `${limit} ${status} ${cursor}`,
  async ask(db, queries, deadline) {
    const page = await readPage(db, queries[0] as ListPets, deadline) // `lane` makes all equal
    return queries.map(() => page)
  },
})

const getPet = gather<bigint, Pet | undefined>({
  most: MAX_IDS,
  lane: () => '',
  async ask(db, ids, deadline) {
    const pets = await readPets(db, ids, deadline)
    if (ids.length === 1) return pets
    const byId = new Map(pets.map((pet) => [pet.id, pet]))
    return ids.map((id) => byId.get(id))
  },
})

async function readPets(db: Database, ids: bigint[], deadline: Deadline): Promise<Pet[]> {
  // The number of ids is rounded up to a power of two, so that few statements have to be compiled. The
  // first id fills the rest.
  const size = Math.min(2 ** Math.ceil(Math.log2(ids.length)), MAX_IDS)
  const select = selects.get(size) ?? selectPets(size)
  selects.set(size, select)
  const { rows } = await retry(() => select(db, ids, deadline), { repeatable: true, deadline })
  return rows
}

const selects = new Map<number, ReturnType<typeof selectPets>>()

const selectPets = (size: number) =>
  statement((db, value: Value<bigint[]>) => {
    const id = (index: number) => value((ids) => ids[index] ?? (ids[0] as bigint)) // never empty
    const query = db.selectFrom('pets').select(columns)
    return size === 1
      ? query.where('id', '=', id(0))
      : query.where(
          'id',
          'in',
          Array.from({ length: size }, (_, index) => id(index)),
        )
  })
