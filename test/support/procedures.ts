/** The description of procedures in tests, with words for those that no test reads. */
import type { AnyTRPCRouter } from '@trpc/server'
import type { Database } from '../../db/database.ts'
import { createStores } from '../../src/petstore/resources.ts'
import { type RestMeta, restMeta } from '../../src/procedure/meta.ts'
import { proceduresWith } from '../../src/procedure/procedure.ts'

/** The stores of the service. */
export type Stores = ReturnType<typeof createStores>

/** The builder of procedures that use the stores of the service. */
export const { procedure } = proceduresWith<Stores>()

type Words = 'tag' | 'summary' | 'description'
type More = Omit<RestMeta, 'method' | 'path' | Words> & Partial<Pick<RestMeta, Words>>

const things = { name: 'things', description: 'Things.' }

/** The meta of a procedure. */
export const described = (method: RestMeta['method'], path: RestMeta['path'], more: More) =>
  restMeta({ method, path, tag: things, summary: 'A call', description: 'A call.', ...more })

/** The resources of a service that serves this router. */
export const resourcesOf = (
  router: AnyTRPCRouter,
  stores: (db: Database) => object = createStores,
) => ({ router, createStores: stores })
