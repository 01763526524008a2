/** The router of the visits in routers, as teams nest theirs. */
import { router } from '../../src/procedure/procedure.ts'
import { visitRouter } from '../visits/router.ts'

export const nestedRouter = router({ shop: router({ 'day-time': { diary: visitRouter } }) })
