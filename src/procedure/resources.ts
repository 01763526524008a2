/** What a service serves, beside what every service has. */
import type { AnyTRPCRouter } from '@trpc/server'
import type { Database } from '../../db/tables.ts'
import type { Stores } from './context.ts'

export interface Resources {
  router: AnyTRPCRouter
  /** What the document says of the headings of its operations. */
  tags: Record<string, string>
  /** What the document begins with, in Markdown. */
  description: string
  /** The package of the TypeScript client, and its function that makes one; undefined for none. */
  client?: { module: string; create: string }
  /** The stores of a database, and of each transaction on it. */
  createStores(db: Database): Stores
}
