/** The resources that the tests serve in place of those of the service: see src/petstore/resources.ts. */
import { type Database, MIGRATIONS } from '../../db/index.ts'
import { router } from '../../src/procedure/procedure.ts'
import { resourcesOf } from '../support/procedures.ts'
import { helperProcedures } from './helpers/procedures.ts'
import { helperStore } from './helpers/store.ts'
import * as helpers from './migrations/helpers.ts'
import * as tours from './migrations/tours.ts'
import * as visits from './migrations/visits.ts'
import { tourProcedures } from './tours/procedures.ts'
import { tourStore } from './tours/store.ts'
import { visitProcedures } from './visits/procedures.ts'
import { ownerStore, visitStore } from './visits/store.ts'

export const visitRouter = router({ ...visitProcedures, ...helperProcedures, ...tourProcedures })

export const createVisitStores = (db: Database) => ({
  owners: ownerStore(db),
  visits: visitStore(db),
  helpers: helperStore(db),
  tours: tourStore(db),
})

const migrations = [visits, helpers, tours]

/** The tables of the resources. */
export const tables = migrations.flatMap(({ tables }) => tables)

/** All migrations; none whose tables the service has, because its resources may be these. */
export async function up(db: Database): Promise<void> {
  const known = MIGRATIONS.flatMap(({ tables = [] }) => tables)
  for (const { tables, up } of migrations) if (!known.includes(`${tables[0]}`)) await up(db)
}

export const visitResources = resourcesOf(visitRouter, createVisitStores)
