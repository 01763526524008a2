/** The tables of tours. */
import type { ColumnDefinitionBuilder } from 'kysely'
import { createTable, type Database } from '../../../db/columns.ts'

export const tables = ['tours', 'stops']

export async function up(db: Database): Promise<void> {
  const notNull = (column: ColumnDefinitionBuilder) => column.notNull()
  await createTable(db, 'tours', (table) =>
    table
      .addColumn('driver', 'varchar(40)', notNull)
      .addColumn('vehicle', 'varchar(10)', notNull)
      .addColumn('begins_at', 'bigint', notNull)
      .addColumn('ends_at', 'bigint', notNull)
      .addColumn('state', 'varchar(10)', notNull)
      .addUniqueConstraint('tours_begins_at', ['begins_at', 'id']),
  )
  await createTable(db, 'stops', (table) =>
    table
      .addColumn('tour_id', 'bigint', notNull)
      .addColumn('place', 'bigint', notNull)
      .addColumn('visit_id', 'bigint', notNull)
      .addUniqueConstraint('stops_tour', ['tour_id', 'place'])
      .addUniqueConstraint('stops_visit', ['visit_id', 'tour_id']),
  )
}
