/** The table of pets. Its two indexes order all pets, and the pets with one status. */
import { createTable, type Database } from '../columns.ts'

export const tables = ['pets']

export const up = (db: Database): Promise<void> =>
  createTable(db, 'pets', (table) =>
    table
      .addColumn('name', 'varchar(255)', (column) => column.notNull())
      .addColumn('category_id', 'bigint', (column) => column.notNull())
      .addColumn('status', 'varchar(16)', (column) => column.notNull())
      // An index in the form of a constraint, because only constraints can be part of `create table` in all
      // databases. One statement leaves no incomplete table.
      .addUniqueConstraint('pets_status_id', ['status', 'id']),
  )
