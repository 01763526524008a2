/** The routers of the visits and of a team in routers, as teams nest theirs, beside a procedure of tRPC alone. */
import { router } from '../../src/procedure/procedure.ts'
import { procedure } from '../support/procedures.ts'
import { teamRouter } from '../teams/router.ts'
import { visitRouter } from '../visits/router.ts'

export const nestedRouter = router({
  shop: router({ 'day-time': { diary: visitRouter } }),
  team: teamRouter, // of which ctx has what createContext returns
  days: procedure.query(() => new Map([[1n, new Date(0)]])),
})
