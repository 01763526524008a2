/** The tables of helpers, and of their links to visits. */
import type { ColumnDefinitionBuilder } from 'kysely'
import { createTable, type Database } from '../../../db/columns.ts'

export const tables = ['helpers', 'links']

export async function up(db: Database): Promise<void> {
  const notNull = (column: ColumnDefinitionBuilder) => column.notNull()
  await createTable(db, 'helpers', (table) =>
    table.addColumn('name', 'varchar(40)', notNull).addColumn('visits', 'bigint', notNull),
  )
  await createTable(db, 'links', (table) =>
    table
      .addColumn('visit_id', 'bigint', notNull)
      .addColumn('helper_id', 'bigint', notNull)
      // Each begins with what its list is of.
      .addUniqueConstraint('links_visit', ['visit_id', 'helper_id'])
      .addUniqueConstraint('links_helper', ['helper_id', 'visit_id']),
  )
}
