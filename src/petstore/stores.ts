/** The stores of all resources, made in one place; procedures find them in `ctx.stores`. */
import type { Database } from '../../db/tables.ts'
import type { Stores } from '../procedure/context.ts'
import { type PetStore, petStore } from './pets/store.ts'

declare module '../procedure/context.ts' {
  interface Stores {
    pets: PetStore
  }
}

/** The stores of a database or of a transaction, of which each has its own: they cost next to nothing. */
export const createStores = (db: Database): Stores => ({
  pets: petStore(db),
})
