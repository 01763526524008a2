/** The stores of all resources: `ctx.stores` in procedures. */
import type { Database } from '../../db/database.ts'
import type { Stores } from '../procedure/call.ts'
import { type PetStore, petStore } from './pets/store.ts'

declare module '../procedure/call.ts' {
  interface Stores {
    pets: PetStore
  }
}

/** Returns the stores of a database or of a transaction. It is called for each transaction. */
export const createStores = (db: Database): Stores => ({
  pets: petStore(db),
})
