/** The nested router as its clients would see it, for its declaration. */
import { forClients } from '../../client/src/interface.ts'
import { nestedRouter } from './nested.ts'

export const declaredRouter = forClients(nestedRouter)
