/** The service with these resources, and a stand-in for it: see test/support/both.ts. */
import { handlersOf } from '../../client/src/memory/handlers.ts'
import { sharedOf } from '../../client/src/memory/shared.ts'
import { Table, type Undo } from '../../client/src/memory/table.ts'
import { standInOf } from '../support/both.ts'
import { serviceForFile, trpcClient } from '../support/service.ts'
import type { Helper } from './helpers/schema.ts'
import { helpersInMemory, type LinkRow } from './memory/helpers.ts'
import { toursInMemory } from './memory/tours.ts'
import { type OwnerRow, ownersInMemory, type VisitRow, visitsInMemory } from './memory/visits.ts'
import { type createVisitStores, up, visitResources, visitRouter } from './router.ts'
import type { Tour } from './tours/schema.ts'

/** As client/src/memory/stores.ts. */
function visitStoresInMemory() {
  const owners = new Table<OwnerRow>()
  const visits = new Table<VisitRow>([], ['reference'])
  const helpers = new Table<Helper>()
  const links = new Table<LinkRow>()
  const tours = new Table<Tour>()
  return (undo?: Undo[]): ReturnType<typeof createVisitStores> => ({
    owners: ownersInMemory(owners, undo),
    visits: visitsInMemory(visits, undo),
    helpers: helpersInMemory(helpers, links, visits, undo),
    tours: toursInMemory(tours, undo),
  })
}

/** As `serveBoth` of test/support/both.ts. */
export async function serveBoth() {
  const service = await serviceForFile({}, { resources: visitResources, prepare: up })
  const client = trpcClient<typeof visitRouter>(service.origin, service.key)
  const shared = sharedOf(visitStoresInMemory())
  const standIn = standInOf<typeof visitRouter>((url) => handlersOf(visitRouter, shared, { url }))
  return { service, client, standIn }
}
