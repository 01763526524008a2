/** The resources that the tests serve in place of those of the service: see src/petstore/resources.ts. */
import type { Database } from '../../db/index.ts'
import { router } from '../../src/procedure/procedure.ts'
import { resourcesOf } from '../support/procedures.ts'
import { helperProcedures } from './helpers/procedures.ts'
import * as helpers from './helpers/store.ts'
import { visitProcedures } from './procedures.ts'
import * as visits from './store.ts'

export const visitRouter = router({ ...visitProcedures, ...helperProcedures })

export const createVisitStores = (db: Database) => ({
  owners: visits.ownerStore(db),
  visits: visits.visitStore(db),
  helpers: helpers.helperStore(db),
})
export type Stores = ReturnType<typeof createVisitStores>

export const visitResources = resourcesOf(visitRouter, createVisitStores)

/** Both migrations. */
export async function up(db: Database): Promise<void> {
  await visits.up(db)
  await helpers.up(db)
}
