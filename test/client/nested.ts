/** The router of the visits in routers, as teams nest theirs, beside a procedure of tRPC alone. */
import { router } from '../../src/procedure/procedure.ts'
import { procedure } from '../support/procedures.ts'
import { visitRouter } from '../visits/router.ts'

export const nestedRouter = router({
  shop: router({ 'day-time': { diary: visitRouter } }),
  days: procedure.query(() => new Map([[1n, new Date(0)]])),
})
