/** The router: all operations of the service, for tRPC and for REST. */
import { router } from '../procedure/procedure.ts'
import { createPet, getPet, listPets } from './pets/procedures.ts'
import type {} from './stores.ts' // declares the types of `ctx.stores`

export const appRouter = router({ listPets, createPet, getPet })
