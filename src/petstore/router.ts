/** THE router: every operation of the service, once, for tRPC and for REST. */
import { router } from '../procedure/procedure.ts'
import { createPet, getPet, listPets } from './pets/procedures.ts'
import type {} from './stores.ts' // declares `ctx.stores` wherever the router is compiled

export const appRouter = router({ listPets, createPet, getPet })

export type AppRouter = typeof appRouter
