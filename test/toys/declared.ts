/** The router with toys as its clients would see it, for its declaration. */
import { forClients } from '../../client/src/interface.ts'
import { routerWithToys } from './router.ts'

export const declaredRouter = forClients(routerWithToys)
