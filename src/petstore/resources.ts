/**
 * The resources of the service: a new one adds its procedures and its store here. `main.ts` hands over all of this file,
 * so that a `createContext` or an `authentication` of the product stands here, too (process/start.ts).
 */
import type { Database } from '../../db/index.ts'
import { router } from '../procedure/procedure.ts'
import { petProcedures } from './pets/procedures.ts'
import { petStore } from './pets/store.ts'

/** The router: all operations of the service, for tRPC and for REST. */
export const appRouter = router({
  ...petProcedures,
})

/** Returns the stores of a database or of a transaction. It is called for each transaction. */
export const createStores = (db: Database) => ({
  pets: petStore(db),
})
