/** Names the index that a query reads, for the engines that may choose a slower one. */
import { sql } from 'kysely'
import { isSqlite } from './columns.ts'
import type { Database, Tables } from './tables.ts'

/**
 * The table for `selectFrom`, read by an index whose columns are those of the condition, and then
 * those of the order. MariaDB would use its first column alone, and pass over all rows before the
 * cursor; MySQL would walk the primary key, and pass over all rows of other statuses:
 * https://dev.mysql.com/doc/refman/9.4/en/index-hints.html
 * SQLite uses all columns, and knows the index of a constraint by no name.
 */
export function readBy<Table extends keyof Tables>(
  db: Database,
  table: Table,
  index: string,
): Table {
  if (isSqlite(db)) return table
  // The hint follows the table's alias, which is its own name.
  const hint = sql`${sql.id(table)} force index (${sql.id(index)})`
  // To a query, the columns and the name of the table are all that it is.
  return sql.table(table).as(hint) as unknown as Table
}
