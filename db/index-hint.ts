/** Names the index that a query reads, because some engines choose a slower one. */
import { engineOf } from './engine.ts'
import type { Database, Tables } from './tables.ts'

/**
 * The table for `selectFrom`, read by an index whose columns are those of the condition, and then
 * those of the order.
 */
export const readBy = <Table extends keyof Tables>(
  db: Database,
  table: Table,
  index: string,
): Table => engineOf(db).readBy(table, index)
