/** The router of the visits as its clients would see it, for its declaration. */
import { forClients } from '../../client/src/interface.ts'
import { visitRouter } from '../visits/router.ts'

export const declaredRouter = forClients(visitRouter)
