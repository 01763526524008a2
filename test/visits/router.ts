/** The resources that the tests serve in place of those of the service: see src/petstore/resources.ts. */
import type { Database } from '../../db/index.ts'
import { router } from '../../src/procedure/procedure.ts'
import { resourcesOf } from '../support/procedures.ts'
import { helperProcedures } from './helpers/procedures.ts'
import * as helpers from './helpers/store.ts'
import { visitProcedures } from './procedures.ts'
import * as visits from './store.ts'
import * as tourTables from './tours/migration.ts'
import { tourProcedures } from './tours/procedures.ts'
import { tourStore } from './tours/store.ts'

export const visitRouter = router({ ...visitProcedures, ...helperProcedures, ...tourProcedures })

export const createVisitStores = (db: Database) => ({
  owners: visits.ownerStore(db),
  visits: visits.visitStore(db),
  helpers: helpers.helperStore(db),
  tours: tourStore(db),
})
export type Stores = ReturnType<typeof createVisitStores>

export const visitResources = resourcesOf(visitRouter, createVisitStores)

/** The tables of the resources. */
export const tables = [
  'test_owners',
  'test_visits',
  'test_helpers',
  'test_links',
  ...tourTables.tables,
]

/** All migrations. */
export async function up(db: Database): Promise<void> {
  await visits.up(db)
  await helpers.up(db)
  await tourTables.up(db)
}
