/** The tables of owners and of visits. */
import type { ColumnDefinitionBuilder } from 'kysely'
import { addColumn, addIndex, createTable, type Database } from '../../../db/columns.ts'

export const tables = ['owners', 'visits']

export async function up(db: Database): Promise<void> {
  const notNull = (column: ColumnDefinitionBuilder) => column.notNull()
  await createTable(db, 'owners', (table) =>
    table
      .addColumn('name', 'varchar(40)', notNull)
      .addColumn('closed', 'bigint', notNull)
      .addUniqueConstraint('owners_name', ['name', 'id']),
  )
  await createTable(db, 'visits', (table) =>
    table
      .addColumn('owner_id', 'bigint', notNull)
      .addColumn('reference', 'varchar(40)', notNull)
      .addColumn('at', 'bigint', notNull)
      .addColumn('urgent', 'bigint', notNull)
      .addColumn('note', 'varchar(255)')
      .addUniqueConstraint('visits_reference', ['reference']),
  )
  // As a later migration would change the table.
  await addColumn(db, 'visits', 'closed_at', 'bigint')
  await addIndex(db, 'visits', 'visits_owner', ['owner_id', 'id'])
}
