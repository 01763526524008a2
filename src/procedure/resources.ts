/** What a product hands to the chassis: its router, its stores, and texts of the OpenAPI document. */
import type { AnyTRPCRouter } from '@trpc/server'
import type { Database } from '../../db/tables.ts'
import type { Stores } from './context.ts'

export interface Resources {
  router: AnyTRPCRouter
  /** The description of each tag of the document, by name. */
  tags: Record<string, string>
  /** The description of the API, in Markdown; `{{baseUrl}}` and `{{trpcUrl}}` are the public URLs. */
  description: string
  /** The program in TypeScript before the `sample` of each operation, with the same URLs. */
  sample?: string
  /** Returns the stores of a database or of a transaction. It is called for each transaction. */
  createStores(db: Database): Stores
}
